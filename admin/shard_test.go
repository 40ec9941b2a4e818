package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// family is a run with its parts, as the API tells.
type family struct {
	Items []struct {
		run
		Part     string
		Shard    *struct{ Index, Total int }
		Instance *struct{ Name string }
	}
	Living int
	Shards map[string]int
}

func (n *node) family(id string) (f family) {
	n.t.Helper()
	n.do(http.MethodGet, "/api/v1/runs/"+id+"/parts", nil, &f, 200)
	return f
}

// explained returns what the API says of a run, in English.
func (n *node) explained(id string) string {
	n.t.Helper()
	var why struct{ Summary struct{ En, Zh string } }
	n.do(http.MethodGet, "/api/v1/runs/"+id+"/explain", nil, &why, 200)
	require.NotEmpty(n.t, why.Summary.Zh)
	return why.Summary.En
}

// seen is what handlers saw.
type seen struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (s *seen) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, fmt.Sprintf(format, args...))
}

func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.list
	s.list = nil
	slices.Sort(out)
	return out
}

// twoNodes are two nodes on one database, or the same one twice on SQLite.
func twoNodes(t *testing.T, name string) (a, b *node) {
	t.Helper()
	dir := t.TempDir()
	dsn := databases[name](t, dir)
	a = startNode(t, func(c *admin.Config) { c.Database = dsn; c.DataDir = dir })
	if name == "sqlite" {
		return a, a
	}
	return a, startNode(t, func(c *admin.Config) { c.Database = dsn; c.DataDir = dir })
}

// TestABroadcastRunsOnEveryInstance: hooks, index and total, results, one alert
// and a retry of what failed, with two nodes on MariaDB.
func TestABroadcastRunsOnEveryInstance(t *testing.T) {
	t.Parallel()
	for name := range databases {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t, name)
			var saw seen
			var broken atomic.Bool
			broken.Store(true)
			for i, n := range []*node{a, b, b} {
				me := fmt.Sprintf("till-%d", i)
				a.startExecutor("shop", func(c *executor.Config) {
					c.Addresses = []string{n.admin.ExecutorAddress()}
					c.InstanceName = me
				}, func(ex *executor.Executor) {
					executor.Handle(ex, "clear", func(ctx context.Context, _ struct{}) (string, error) {
						task := executor.TaskFrom(ctx)
						saw.add("%s %d/%d", task.Part, task.Shard().Index, task.Shard().Total)
						if broken.Load() && task.ShardIndex == 1 {
							return "", executor.Permanent(errors.New("disk full"))
						}
						return me, nil
					})
					executor.HandleFunc(ex, "prepare", func(ctx context.Context) error {
						saw.add("%s", executor.TaskFrom(ctx).Part)
						return nil
					})
					executor.Handle(ex, "collect", func(ctx context.Context, in executor.ShardResults) (int, error) {
						text := ""
						for _, s := range in.Shards {
							text += s.Error
						}
						saw.add("%s %d of %d, %q", executor.TaskFrom(ctx).Part, in.Succeeded, in.Total, text)
						return in.Succeeded, nil
					})
				})
			}
			job := a.newJob("shop", "clear", map[string]any{"blocking": "serial", "sharding": map[string]any{
				"mode": "broadcast", "before": "prepare", "after": "collect",
			}})
			first := a.runNow(job, nil)
			r := a.until(first, "failed")
			require.Equal(t, "shards_failed", r.Reason)
			require.Equal(t, "2 of 3 shards succeeded, 1 failed", r.Message)
			require.Equal(t, []string{`after 2 of 3, "disk full"`, "before", "shard 0/3", "shard 1/3", "shard 2/3"}, saw.take())
			f := b.family(first)
			require.Equal(t, map[string]int{"succeeded": 2, "failed": 1}, f.Shards)
			instances := map[string]bool{}
			for _, p := range f.Items[:3] {
				instances[p.Instance.Name] = true
			}
			require.Len(t, instances, 3, "each instance has its shard")
			require.Contains(t, b.explained(first), "2 of 3 shards succeeded, 1 failed")
			require.Contains(t, b.explained(f.Items[1].ID), "Shard 1 of 3 of run "+first+", for instance")

			broken.Store(false)
			var again run
			a.do(http.MethodPost, "/api/v1/runs/"+first+"/retry", map[string]any{"onlyFailed": true}, &again, 201)
			r = a.until(again.ID, "succeeded")
			require.Equal(t, "1 of 1 shards succeeded", r.Message)
			require.Equal(t, []string{"shard 1/3"}, slices.DeleteFunc(saw.take(), func(s string) bool { return !strings.HasPrefix(s, "shard") }))
			a.do(http.MethodPost, "/api/v1/runs/"+again.ID+"/retry", map[string]any{"onlyFailed": true}, nil, 409)

			var list struct{ Items []run }
			a.do(http.MethodGet, "/api/v1/runs?jobId="+job, nil, &list, 200)
			require.Len(t, list.Items, 2, "parts are no runs of the list")
		})
	}
}

// TestACancelEndsAllShards: handlers that run, and shards that wait for room.
func TestACancelEndsAllShards(t *testing.T) {
	t.Parallel()
	for name := range databases {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t, name)
			entered, cancelled := make(chan int, 10), make(chan int, 10)
			a.startExecutor("shop", func(c *executor.Config) {
				c.Slots = 2
				c.Addresses = []string{b.admin.ExecutorAddress()} // the other node has to pass it on
			}, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "long", func(ctx context.Context) error {
					entered <- executor.TaskFrom(ctx).ShardIndex
					<-ctx.Done()
					cancelled <- executor.TaskFrom(ctx).ShardIndex
					return context.Cause(ctx)
				})
			})
			job := a.newJob("shop", "long", map[string]any{"blocking": "serial", "sharding": map[string]any{"mode": "fixed", "shards": 3}})
			id := a.runNow(job, nil)
			<-entered
			<-entered
			next := a.runNow(job, nil)
			a.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", map[string]any{"reason": "enough"}, nil, 202)
			r := a.until(id, "cancelled")
			require.Contains(t, r.Message, "enough")
			<-cancelled
			<-cancelled
			require.Equal(t, map[string]int{"cancelled": 3}, a.family(id).Shards)
			<-entered // the slot is the next one's
			a.do(http.MethodPost, "/api/v1/runs/"+next+"/cancel", nil, nil, 202)
			a.until(next, "cancelled")
		})
	}
}

// TestAShardOfADeadInstance: one that never ran there is missed or moved, as the
// job says; one that ran is lost, or retried.
func TestAShardOfADeadInstance(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]string{"sqlite": "miss", "mysql": "move"} {
		t.Run(name+" "+gone, func(t *testing.T) {
			t.Parallel()
			a, _ := twoNodes(t, name)
			w := newWorker(t, a, a.admin.ExecutorAddress()) // its first attempt waits for a word
			a.registered()
			blocker := a.runNow(a.newJob("shop", "till", map[string]any{"name": "blocker", "onLost": "fail"}), nil)
			w.entered()
			var ran atomic.Int32
			a.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "till", func(context.Context) error { ran.Add(1); return nil })
			})
			job := a.newJob("shop", "till", map[string]any{"onLost": "retry", "retry": map[string]any{"maxAttempts": 2, "delay": "10ms"},
				"sharding": map[string]any{"mode": "broadcast", "onGone": gone}})
			id := a.runNow(job, nil)
			w.entered() // its shard runs there
			a.eventually(func() bool { return ran.Load() == 1 }, func() string { return "the other shard does not run" })
			w.kill()
			a.until(blocker, "lost")
			if gone == "miss" {
				r := a.until(id, "failed")
				require.Equal(t, "1 of 2 shards succeeded, 1 failed", r.Message)
				f := a.family(id)
				reasons := []string{f.Items[0].Reason, f.Items[1].Reason}
				require.Contains(t, reasons, "instance_gone")
				return
			}
			a.until(id, "succeeded")
			require.Equal(t, int32(2), ran.Load(), "its retry has moved")
		})
	}
}

// TestTheWholeFireHasATimeout beside that of each attempt.
func TestTheWholeFireHasATimeout(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "slow", func(ctx context.Context) error {
			if executor.TaskFrom(ctx).ShardIndex == 0 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}, executor.Job("declared", executor.Shards(2), executor.FireTimeout(500*time.Millisecond), executor.AfterShards("slow")))
	})
	var jobs struct{ Items []struct{ ID, Name string } }
	n.do(http.MethodGet, "/api/v1/jobs?q=declared", nil, &jobs, 200)
	require.Len(t, jobs.Items, 1)
	id := n.runNow(jobs.Items[0].ID, nil)
	r := n.until(id, "timed_out")
	require.Equal(t, "timeout", r.Reason)
	require.Equal(t, map[string]int{"succeeded": 1, "timed_out": 1}, n.family(id).Shards)
}
