package admin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// sessions is how many the node has.
func (n *node) sessions() int {
	n.t.Helper()
	m, err := lab.NewAPI(n.admin.URL()).Metrics(n.t.Context())
	require.NoError(n.t, err)
	return int(m["carillon_sessions"])
}

// TestParkedExecutorsAreWanted: executors that have nothing to do keep a session
// to one of two nodes; runs of jobs of both nodes reach them all the same.
func TestParkedExecutorsAreWanted(t *testing.T) {
	t.Parallel()
	dsn, key := "mysql:"+testenv.Database(t), filepath.Join(t.TempDir(), "sealing.key")
	share := func(c *admin.Config) { c.Database, c.SealingKeyFile = dsn, key }
	a, b := startNode(t, share), startNode(t, share)
	var jobs []string
	const executors, each = 3, 4
	for i := range executors {
		name := fmt.Sprintf("shop-%d", i)
		a.startExecutor(name, func(c *executor.Config) { c.IdleAfter = 10 * time.Second }, func(ex *executor.Executor) {
			executor.HandleFunc(ex, "sell", func(context.Context) error { return nil })
		})
		for k := range each {
			jobs = append(jobs, a.newJob(name, "sell", map[string]any{"name": fmt.Sprintf("sell-%d-%d", i, k)}))
		}
	}
	sum := func() int { return a.sessions() + b.sessions() }
	for range 2 {
		a.eventually(func() bool { return sum() == executors }, func() string { return fmt.Sprintf("%d sessions stand", sum()) })
		var runs []string
		for i, job := range jobs {
			runs = append(runs, []*node{a, b}[i%2].runNow(job, nil))
		}
		for _, id := range runs {
			a.until(id, "succeeded")
		}
	}
}
