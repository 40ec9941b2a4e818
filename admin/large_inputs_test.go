package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// TestManyLargeInputsComeAtOnce: what waited for an executor is five times what an
// instance is offered at once, and the first one that comes takes it all.
func TestManyLargeInputsComeAtOnce(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manyLargeInputsComeAtOnce(t, database)
		})
	}
}

func manyLargeInputsComeAtOnce(t *testing.T, database func(*testing.T, string) string) {
	const runs = 40
	n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
	_, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	job := n.newJob("shop", "import", map[string]any{"blocking": "parallel", "parallelism": runs})
	input := strings.Repeat("x", proto.MaxInput-2)
	for range runs {
		n.runNow(job, input)
	}
	var read atomic.Int32
	all := make(chan struct{})
	var log logLines
	n.startExecutor("shop", func(c *executor.Config) {
		c.Slots, c.Logger = runs, slog.New(slog.NewTextHandler(&log, nil))
	}, func(ex *executor.Executor) {
		executor.HandleIn(ex, "import", func(_ context.Context, in string) error {
			if in != input {
				return fmt.Errorf("%d bytes came", len(in))
			}
			if read.Add(1) == runs {
				close(all)
			}
			return nil
		})
	})
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatalf("%d inputs came", read.Load())
	}
	var list struct{ Items []run }
	n.eventually(func() bool {
		list.Items = nil
		n.do(http.MethodGet, fmt.Sprintf("/api/v1/runs?limit=%d&jobId=%s&state=succeeded", runs, job), nil, &list, 200)
		return len(list.Items) == runs
	}, func() string { return fmt.Sprintf("%d runs succeeded", len(list.Items)) })
	for _, r := range list.Items {
		require.Equal(t, 1, r.Attempt)
	}
	require.EqualValues(t, runs, read.Load())
	require.Equal(t, 1, log.count(connected), "the session stood")
}
