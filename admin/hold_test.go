//go:build proof

package admin_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// ticking is an executor whose job fires every second.
type ticking struct {
	mu   sync.Mutex
	seen []time.Time // guarded by mu: fire times of what started
}

func (k *ticking) start(n *node, change func(*executor.Config)) {
	n.startExecutor("shop", change, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.seen = append(k.seen, executor.TaskFrom(ctx).FireTime)
			return nil
		})
	})
}

func (n *node) newTicking() *ticking {
	k := &ticking{}
	k.start(n, nil)
	n.newJob("shop", "tick", map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC"}})
	return k
}

// after returns the fire times after an instant of what has started.
func (k *ticking) after(at time.Time) (out []time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.seen {
		if f.After(at) {
			out = append(out, f)
		}
	}
	return out
}

// more waits for fires that are due from now on.
func (k *ticking) more(n *node, count int) {
	n.t.Helper()
	since := time.Now()
	n.eventually(func() bool { return len(k.after(since)) >= count }, func() string { return "the job does not fire" })
}

type history struct {
	Held   bool
	Reason string
	Epoch  string
}

func (n *node) history() history {
	n.t.Helper()
	var c struct{ History history }
	n.do(http.MethodGet, "/api/v1/cluster", nil, &c, 200)
	return c.History
}

// standsStill waits while three fire times pass, and says that none started.
func (k *ticking) standsStill(n *node) {
	n.t.Helper()
	since := time.Now().Add(time.Second) // what is on its way may arrive
	n.eventually(func() bool { return time.Since(since) > 3*time.Second }, func() string { return "" })
	require.Empty(n.t, k.after(since))
	var ready struct{ Status, Held string }
	n.do(http.MethodGet, "/readyz", nil, &ready, 200)
	require.Equal(n.t, "db_rollback", ready.Held)
}

// accepts goes on with the database as it is.
func (n *node) accepts(k *ticking) {
	n.t.Helper()
	n.do(http.MethodPost, "/api/v1/cluster/accept-history", nil, nil, 200)
	require.Equal(n.t, history{Epoch: "1"}, n.history())
	k.more(n, 2)
	n.do(http.MethodPost, "/api/v1/cluster/accept-history", nil, nil, 409)
}

// TestABackupIsPutBackUnderARunningNode: it starts nothing, tells the
// operators, and goes on when they say so.
func TestABackupIsPutBackUnderARunningNode(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t)
	dsn := server.Database(t)
	hook := testenv.HTTPSink(t)
	n := startNode(t, func(c *admin.Config) {
		c.Database, c.AddOns = "mysql:"+dsn, admin.Settings{"operator-webhook": {hook.URL}}
	})
	k := n.newTicking()
	k.more(n, 1)
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, server.Stop())
	require.NoError(t, server.Save(backup))
	require.NoError(t, server.Start())
	k.more(n, 3)
	require.False(t, n.history().Held, "a restart is no loss")

	putBack(t, server, backup)
	n.eventually(func() bool { return n.history().Held }, func() string { return "nobody noticed" })
	require.Contains(t, string(hook.Wait(t, 1)[0].Body), "db_rollback")
	k.standsStill(n)
	n.accepts(k)
	require.Len(t, hook.Wait(t, 1), 1, "they were told once")
}

// putBack replaces the database under running nodes by a backup of it.
func putBack(t *testing.T, server *testenv.Server, backup string) {
	t.Helper()
	require.NoError(t, server.Stop())
	require.NoError(t, server.Restore(backup))
	require.NoError(t, server.Start())
}

// TestABackupCallsAttemptsRunning that have ended since: their executor has
// forgotten them, says so when the database is accepted, and their jobs go on.
// What runs through all of it is left alone.
func TestABackupCallsAttemptsRunning(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t)
	dsn := server.Database(t)
	hook := testenv.HTTPSink(t)
	n := startNode(t, func(c *admin.Config) { c.Database = "mysql:" + dsn })
	entered := make(chan string, 16)
	gates := map[string]chan struct{}{"fail": make(chan struct{}), "retry": make(chan struct{}), "through": make(chan struct{})}
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.Handle(ex, "hold", func(ctx context.Context, in greeting) (reply, error) {
			entered <- in.Name
			select {
			case <-gates[in.Name]:
			case <-ctx.Done():
			}
			return reply{}, ctx.Err()
		})
	})
	jobs, runs := map[string]string{}, map[string]string{}
	for name, onLost := range map[string]string{"fail": "fail", "retry": "retry", "through": "fail"} {
		jobs[name] = n.newJob("shop", "hold", map[string]any{
			"name": name, "blocking": "serial", "onLost": onLost, "retry": map[string]any{"maxAttempts": 2, "delay": "1ms"},
			"alert": map[string]any{"onFailure": true, "webhookUrl": hook.URL, "webhookSecret": "whsec-0123456789abcdef"},
		})
		runs[name] = n.runNow(jobs[name], greeting{name})
		<-entered
		n.until(runs[name], "running")
	}
	backup := filepath.Join(t.TempDir(), "backup")
	require.NoError(t, server.Stop())
	require.NoError(t, server.Save(backup))
	require.NoError(t, server.Start())
	for _, name := range []string{"fail", "retry"} {
		close(gates[name])
		n.until(runs[name], "succeeded")
		n.until(n.runNow(jobs[name], greeting{name}), "succeeded") // the acknowledgements were sent before its offer
	}

	putBack(t, server, backup)
	n.eventually(func() bool { return n.history().Held }, func() string { return "nobody noticed" })
	require.Equal(t, "running", n.until(runs["fail"], "running").State)
	n.do(http.MethodPost, "/api/v1/cluster/accept-history", nil, nil, 200)
	require.Equal(t, "db_rollback", n.until(runs["fail"], "lost").Reason)
	require.Equal(t, "lost", n.until(runs["retry"], "succeeded").Attempts[0].State)
	for _, name := range []string{"fail", "retry"} {
		n.until(n.runNow(jobs[name], greeting{name}), "succeeded")
	}
	close(gates["through"])
	require.Equal(t, 1, n.until(runs["through"], "succeeded").Attempt)
	require.Contains(t, string(hook.Wait(t, 1)[0].Body), runs["fail"])
	require.Equal(t, []string{"run_lost"}, slices.Compact(n.deliveries(jobs["fail"])), "perhaps also that it is well again")
	require.Empty(t, n.deliveries(jobs["retry"]))
	require.Empty(t, n.deliveries(jobs["through"]))
}

// TestABackupIsPutBackWhileTheNodeIsDown: its data directory remembers.
func TestABackupIsPutBackWhileTheNodeIsDown(t *testing.T) {
	t.Parallel()
	address, dir := freeAddress(t), t.TempDir()
	start := func() *node {
		return startNode(t, func(c *admin.Config) { c.DataDir, c.ExecutorAddress = dir, address })
	}
	n := start()
	k := n.newTicking()
	k.more(n, 1)
	n.stop()
	file := filepath.Join(dir, "carillon.db")
	backup, err := os.ReadFile(file)
	require.NoError(t, err)
	n = start()
	k.more(n, 2)
	require.False(t, n.history().Held)
	n.stop()

	require.NoError(t, os.WriteFile(file, backup, 0o600))
	n = start()
	require.True(t, n.history().Held, "before anything is started")
	k.standsStill(n)
	n.stop()
	n = start()
	require.True(t, n.history().Held, "also after a restart")
	n.accepts(k)

	// Another database is not an old copy of this one.
	n.stop()
	require.NoError(t, os.Remove(file))
	n = start()
	require.False(t, n.history().Held)
}
