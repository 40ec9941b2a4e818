package admin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// fired is what a handler of timers saw.
type fired struct {
	mu    sync.Mutex
	times map[time.Time]int // guarded by mu: by fire time
	early []string          // guarded by mu
	cause map[string]bool   // guarded by mu
}

func (f *fired) handle(ctx context.Context) error {
	task, now := executor.TaskFrom(ctx), time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times[task.FireTime]++
	f.cause[task.Cause] = true
	if now.Before(task.FireTime) {
		f.early = append(f.early, fmt.Sprintf("%s at %s", task.FireTime, now))
	}
	return nil
}

func (f *fired) count() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.times) }

// check wants n fire times, each once and none early.
func (f *fired) check(t *testing.T, n int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Empty(t, f.early)
	require.Len(t, f.times, n)
	for at, times := range f.times {
		require.Equal(t, 1, times, "%s", at)
	}
	require.Equal(t, map[string]bool{"timer": true}, f.cause)
}

func newFired() *fired { return &fired{times: map[time.Time]int{}, cause: map[string]bool{}} }

// A timer fires once, and not before its time, also one that is due at once.
func TestTimersFire(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			seen := newFired()
			n.startExecutor("shop", nil, func(ex *executor.Executor) { executor.HandleFunc(ex, "cancel-order", seen.handle) })
			const timers = 200
			at := map[string]time.Time{}
			now := time.Now()
			for i := range timers { // from one that has passed to some beyond the look-ahead
				at[fmt.Sprint("order ", i)] = now.Add(time.Duration(i-10) * 25 * time.Millisecond)
			}
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", at))
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", at), "the same requests again")
			n.eventually(func() bool { return seen.count() >= timers }, func() string { return fmt.Sprintf("%d have fired", seen.count()) })
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", at), "and when they have run")
			last := map[string]time.Time{"last": time.Now().Add(10 * time.Millisecond)}
			require.NoError(t, n.admin.SetTimers(t.Context(), "shop", "cancel-order", last))
			n.eventually(func() bool { return seen.count() >= timers+1 }, func() string { return fmt.Sprintf("%d have fired", seen.count()) })
			seen.check(t, timers+1)
		})
	}
}

// One node stops and one is cut off from the database while timers fire: whoever
// takes their partitions over fires what they had claimed and what they had not.
func TestTimersFireWhileNodesGo(t *testing.T) {
	t.Parallel()
	dsn := testenv.Database(t)
	key := filepath.Join(t.TempDir(), "sealing.key")
	start := func(name, dsn string) *node {
		return startNode(t, func(c *admin.Config) { c.Database, c.SealingKeyFile, c.NodeName = "mysql:"+dsn, key, name })
	}
	before, rest, _ := strings.Cut(dsn, "tcp(")
	address, after, _ := strings.Cut(rest, ")")
	way := newLine(t, address)
	one, two := start("one", dsn), start("two", dsn)
	three := start("three", before+"tcp("+way.listener.Addr().String()+")"+after)
	one.untilShared(map[string]int{"one": 21, "two": 21, "three": 21})
	seen := newFired()
	one.startExecutor("shop", func(c *executor.Config) {
		c.Addresses = append(c.Addresses, two.admin.ExecutorAddress(), three.admin.ExecutorAddress())
	}, func(ex *executor.Executor) { executor.HandleFunc(ex, "cancel-order", seen.handle) })

	const each, every = 400, 25 * time.Millisecond
	nodes := []*node{one, two, three}
	failed := make([]error, len(nodes))
	begin := time.Now().Add(time.Second)
	var setters sync.WaitGroup
	for i, n := range nodes {
		setters.Go(func() {
			at := map[string]time.Time{}
			for k := range each {
				at[fmt.Sprintf("node %d order %d", i, k)] = begin.Add(time.Duration(k)*every + time.Duration(i)*time.Millisecond)
			}
			failed[i] = n.admin.SetTimers(t.Context(), "shop", "cancel-order", at)
		})
	}
	setters.Wait()
	require.NoError(t, errors.Join(failed...))
	reached := func(n int) {
		t.Helper()
		one.eventually(func() bool { return seen.count() >= n }, func() string { return fmt.Sprintf("%d have fired, want %d", seen.count(), n) })
	}
	reached(each / 4)
	two.stop()
	reached(each)
	way.set(true)
	reached(2 * each)
	way.set(false)
	reached(3 * each)
	seen.check(t, 3*each)
}

// A node is killed that has claimed some timers whose time has not come, and stays
// away for longer than it looks ahead: for two hours, in which others come due. Each
// calls once when a node is there again, and none before its time.
func TestTimersOutliveTheirNode(t *testing.T) {
	t.Parallel()
	const claimed, overdue = 20, 20
	to := newReceiver(t, func(http.ResponseWriter, *http.Request, int) {})
	dir := t.TempDir()
	first, kill := startProcess(t, dir)
	first.allowCallbacks(nil, "127.0.0.1")
	now := time.Now().UTC().Truncate(time.Millisecond)
	want := map[string]time.Time{} // by path
	var timers []map[string]any
	for i := range claimed + overdue {
		at := now.Add(2900*time.Millisecond + time.Duration(i)*time.Millisecond)
		if i >= claimed {
			at = now.Add(time.Hour + time.Duration(i)*time.Minute)
		}
		path := fmt.Sprint("/", i)
		want[path] = at
		timers = append(timers, map[string]any{"executor": "carillon", "handler": "http", "key": path, "at": at, "input": map[string]any{"url": to.url(1, path)}})
	}
	first.do(http.MethodPost, "/api/v1/timers/batch", map[string]any{"timers": timers}, nil, 200)
	var count struct{ Pending int }
	first.eventually(func() bool {
		first.do(http.MethodGet, "/api/v1/timers/count", nil, &count, 200)
		return count.Pending <= overdue
	}, func() string { return fmt.Sprintf("%d are pending", count.Pending) })
	kill()

	db, err := sql.Open("sqlite", filepath.Join(dir, "carillon.db"))
	require.NoError(t, err)
	moved, err := db.ExecContext(t.Context(), "UPDATE timers SET fire_at = fire_at - ?", (2 * time.Hour).Milliseconds())
	require.NoError(t, err)
	n, err := moved.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, overdue, n)
	require.NoError(t, db.Close())
	for i := range overdue {
		path := fmt.Sprint("/", claimed+i)
		want[path] = want[path].Add(-2 * time.Hour)
	}

	second := startNode(t, func(c *admin.Config) { c.DataDir = dir })
	calls := func() map[string]map[string]bool { // keys of calls, by path
		out := map[string]map[string]bool{}
		for _, g := range to.all() {
			require.True(t, g.planned(t).Equal(want[g.path]), "%s is planned for %s, not %s", g.path, g.planned(t), want[g.path])
			require.False(t, g.at.Before(want[g.path]), "%s came at %s, before %s", g.path, g.at, want[g.path])
			if out[g.path] == nil {
				out[g.path] = map[string]bool{}
			}
			out[g.path][g.header.Get("Idempotency-Key")] = true
		}
		return out
	}
	second.eventually(func() bool { return len(calls()) == claimed+overdue }, func() string { return fmt.Sprintf("%d have called", len(calls())) })
	for path, keys := range calls() {
		require.Len(t, keys, 1, "runs of %s", path)
	}
}
