package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// TestManyLargeInputsComeAtOnce: what waited for an executor is more than a
// session lets pile up, and the first instance that comes takes it all.
func TestManyLargeInputsComeAtOnce(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manyLargeInputsComeAtOnce(t, database)
		})
	}
}

func manyLargeInputsComeAtOnce(t *testing.T, database func(*testing.T, string) string) {
	const runs = 100
	n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
	_, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	job := n.newJob("shop", "import", map[string]any{"blocking": "parallel", "parallelism": runs})
	input := strings.Repeat("x", proto.MaxInput-2)
	ids := make([]string, runs)
	for i := range ids {
		ids[i] = n.runNow(job, input)
	}
	var read atomic.Int32
	var log logLines
	n.startExecutor("shop", func(c *executor.Config) {
		c.Slots, c.Logger = runs, slog.New(slog.NewTextHandler(&log, nil))
	}, func(ex *executor.Executor) {
		executor.HandleIn(ex, "import", func(_ context.Context, in string) error {
			if in != input {
				return fmt.Errorf("%d bytes came", len(in))
			}
			read.Add(1)
			return nil
		})
	})
	for _, id := range ids {
		r := n.until(id, "succeeded")
		require.Len(t, r.Attempts, 1)
	}
	require.EqualValues(t, runs, read.Load())
	require.Equal(t, 1, log.count(connected), "the session stood")
}
