//go:build proof

package admin_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
	faultpath "github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// metric reads one series of the node.
func (n *node) metric(series string) float64 {
	n.t.Helper()
	_, rest, ok := strings.Cut(n.scrape(), "\n"+series+" ")
	require.True(n.t, ok, "there is no series %s", series)
	text, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(text, 64)
	require.NoError(n.t, err)
	return v
}

// redisKeys are the keys of all hot stores, or those that are no sets of late ones.
func redisKeys(t *testing.T, server *redis.Client, pages bool) (keys []string) {
	all, err := server.Keys(t.Context(), "carillon:*").Result()
	require.NoError(t, err)
	for _, key := range all {
		if !pages || !strings.HasSuffix(key, ":late") {
			keys = append(keys, key)
		}
	}
	return keys
}

// Whatever happens to Redis while timers fire, that were copied to it before and that
// are set meanwhile: each fires once, and not before its time.
func TestTimersFireWhateverHappensToRedis(t *testing.T) {
	t.Parallel()
	broker := testenv.Redis(t)
	server := redis.NewClient(&redis.Options{Addr: broker.Addr, Password: broker.Password})
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	config := func(t *testing.T, key, value string) {
		require.NoError(t, server.ConfigSet(context.Background(), key, value).Err())
	}
	everywhere := func(t *testing.T, change func(p redis.Pipeliner, key string, members []redis.Z)) {
		for _, key := range redisKeys(t, server, false) {
			members, err := server.ZRangeWithScores(t.Context(), key, 0, -1).Result()
			if err == nil {
				_, err = server.Pipelined(t.Context(), func(p redis.Pipeliner) error { change(p, key, members); return nil })
			}
			if !redis.HasErrorPrefix(err, "WRONGTYPE") { // another one has made it of another type
				require.NoError(t, err)
			}
		}
	}
	for name, fault := range map[string]func(t *testing.T, p *faultpath.Proxy){
		"none":        func(*testing.T, *faultpath.Proxy) {},
		"never there": func(*testing.T, *faultpath.Proxy) {},
		"flushed":     func(t *testing.T, _ *faultpath.Proxy) { require.NoError(t, server.FlushAll(t.Context()).Err()) },
		"half of it is gone": func(t *testing.T, _ *faultpath.Proxy) {
			everywhere(t, func(p redis.Pipeliner, key string, members []redis.Z) {
				p.ZPopMax(t.Context(), key, int64(len(members)+1)/2)
			})
		},
		"all due now": func(t *testing.T, _ *faultpath.Proxy) {
			everywhere(t, func(p redis.Pipeliner, key string, members []redis.Z) {
				for _, m := range members {
					p.ZAdd(t.Context(), key, redis.Z{Member: m.Member})
				}
			})
		},
		"all due next year": func(t *testing.T, _ *faultpath.Proxy) {
			everywhere(t, func(p redis.Pipeliner, key string, members []redis.Z) {
				for _, m := range members {
					p.ZAdd(t.Context(), key, redis.Z{Member: m.Member, Score: float64(time.Now().AddDate(1, 0, 0).UnixMilli())})
				}
			})
		},
		"other ids": func(t *testing.T, _ *faultpath.Proxy) {
			everywhere(t, func(p redis.Pipeliner, key string, members []redis.Z) {
				for i, m := range members {
					p.ZRem(t.Context(), key, m.Member)
					p.ZAdd(t.Context(), key, redis.Z{Member: i + 1, Score: m.Score})
				}
			})
		},
		"killed": func(_ *testing.T, p *faultpath.Proxy) { p.Silence(); p.Reset() },
		"5 s late": func(t *testing.T, p *faultpath.Proxy) {
			p.Delay(5 * time.Second)
			t.Cleanup(func() { p.Delay(0); p.Reset() })
		},
		"full": func(t *testing.T, _ *faultpath.Proxy) {
			config(t, "maxmemory", "1")
			t.Cleanup(func() { config(t, "maxmemory", "0") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "none" && name != "full" { // what happens to Redis happens to all that run beside
				t.Parallel()
			}
			p, err := faultpath.New(broker.Addr, faultpath.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			if name == "never there" {
				p.Silence()
			}
			address := (&url.URL{Scheme: "redis", User: url.UserPassword("default", broker.Password), Host: p.Addr(), Path: "/0"}).String()
			dir := t.TempDir()
			n := startNode(t, func(c *admin.Config) { c.DataDir = dir })
			seen := newFired()
			const before, every = 200, 20 * time.Millisecond
			at := map[string]time.Time{}
			first := time.Now().Add(5 * time.Second).Truncate(10 * time.Millisecond)
			for i := range before {
				at[fmt.Sprint("order ", i)] = first.Add(time.Duration(i) * every)
			}
			n.startExecutor("shop", nil, func(ex *executor.Executor) { executor.HandleFunc(ex, "cancel-order", seen.handle) })
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", at))
			n.stop()

			n = startNode(t, func(c *admin.Config) { c.DataDir, c.HotStore = dir, address })
			n.startExecutor("shop", nil, func(ex *executor.Executor) { executor.HandleFunc(ex, "cancel-order", seen.handle) })
			// Others' faults concern this node too: it has used Redis, or not.
			n.eventually(func() bool {
				return n.metric(`carillon_hot_store_looks_total{result="redis"}`) > 0 || seen.count() > before/4
			},
				func() string { return "no timer is known to Redis" })
			late := map[string]time.Time{}
			for i := range 40 { // due at once, within the look-ahead, and later
				late[fmt.Sprint("late ", i)] = time.Now().Truncate(10 * time.Millisecond).Add(time.Duration(i)*100*time.Millisecond + 5*time.Millisecond)
			}
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", late))
			fault(t, p)
			all := before + len(late)
			n.eventually(func() bool { return seen.count() >= all }, func() string { return fmt.Sprintf("%d have fired", seen.count()) })
			seen.check(t, all)
			if name == "none" {
				for _, result := range []string{"copied", "added", "named"} {
					require.NotZero(t, n.metric(`carillon_hot_store_timers_total{result="`+result+`"}`), result)
				}
			}
		})
	}
}
