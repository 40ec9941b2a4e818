package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

var discard = slog.New(slog.DiscardHandler)

// instance is what the tests of crowds look at.
type instance struct {
	ID, Name, State, BootID, Build string
	Slots, Running                 int
}

func (n *node) instancesOf(executorName string) map[string]instance {
	n.t.Helper()
	var executors struct {
		Items []struct{ ID, Name string }
	}
	n.do(http.MethodGet, "/api/v1/executors", nil, &executors, 200)
	out := map[string]instance{}
	for _, e := range executors.Items {
		if e.Name != executorName {
			continue
		}
		var list struct{ Items []instance }
		n.do(http.MethodGet, "/api/v1/executors/"+e.ID+"/instances", nil, &list, 200)
		for _, i := range list.Items {
			out[i.Name] = i
		}
	}
	return out
}

// TestACrowdComesBack: when a node was restarted all of its instances come at
// once, each gets its own row and keeps what it runs; and whoever has no business
// there, or is of a build that nobody knows, concerns nobody else.
func TestACrowdComesBack(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) { crowdComesBack(t, database) })
	}
}

func crowdComesBack(t *testing.T, database func(*testing.T, string) string) {
	const crowd, busy = 150, 20
	var dsn string
	dir := t.TempDir()
	address := freeAddress(t)
	start := func() *node {
		return startNode(t, func(c *admin.Config) {
			if c.DataDir = dir; dsn == "" {
				dsn = database(t, dir)
			}
			c.Database, c.ExecutorAddress = dsn, address
		})
	}
	n := start()
	var started atomic.Int64
	release := make(chan struct{})
	work := func(ex *executor.Executor) {
		executor.HandleFunc(ex, "work", func(ctx context.Context) error {
			started.Add(1)
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	for i := range crowd {
		n.startExecutor("shop", func(c *executor.Config) {
			c.InstanceName, c.Slots, c.DrainTimeout, c.Logger = fmt.Sprintf("i-%03d", i), 1+i%7, -1, discard
		}, work)
	}
	job := n.newJob("shop", "work", map[string]any{"blocking": "parallel", "parallelism": busy})
	var runs []string
	for range busy {
		runs = append(runs, n.runNow(job, nil))
	}
	for _, id := range runs {
		n.until(id, "running")
	}
	before := n.instancesOf("shop")
	require.Len(t, before, crowd)
	n.stop()

	// These come along with the crowd.
	stranger := newExecutor(t, address, "cjt_"+strings.Repeat("x", 43), "stranger", work)
	n = start()
	other := n.startExecutor("shop", func(c *executor.Config) { c.InstanceName, c.Logger = "other-build", discard }, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "another", func(context.Context) error { return nil })
	})
	n.eventually(func() bool { return n.sessions() == crowd+1 }, func() string { return fmt.Sprintf("%d sessions stand", n.sessions()) })
	refused := func() bool {
		return stranger.Health() != nil && strings.Contains(stranger.Health().Error(), "bad_token")
	}
	n.eventually(refused, func() string { return fmt.Sprintf("the stranger has heard %v", stranger.Health()) })
	require.NoError(t, other.Health())

	after := n.instancesOf("shop")
	require.Len(t, after, crowd+1)
	require.NotEqual(t, before["i-000"].Build, after["other-build"].Build)
	for name, was := range before {
		is := after[name]
		require.Equal(t, []any{was.ID, was.BootID, was.Build, was.Slots, "online"}, []any{is.ID, is.BootID, is.Build, is.Slots, is.State}, name)
	}
	for _, id := range runs { // nobody's verdict was another one's
		require.Equal(t, "running", n.run(id).State)
	}
	close(release)
	for _, id := range runs {
		require.Len(t, n.until(id, "succeeded").Attempts, 1)
	}
	require.EqualValues(t, busy, started.Load())
}

// newExecutor runs one that need not register.
func newExecutor(t *testing.T, address, token, name string, register func(*executor.Executor)) *executor.Executor {
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{address}, Token: executor.Secret(token), InstanceName: name, JournalDir: t.TempDir(), DrainTimeout: -1, Logger: discard,
	})
	require.NoError(t, err)
	register(ex)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return ex
}
