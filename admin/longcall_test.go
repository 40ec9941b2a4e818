package admin_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestACallMayTakeLongerThanItsBody: five seconds bound the reading of a
// request's body, not the answer.
func TestACallMayTakeLongerThanItsBody(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "count", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(5500 * time.Millisecond):
			}
			return ctx.Err()
		})
	})
	job := n.newJob("shop", "count", nil)
	for name, body := range map[string]any{"a body": map[string]any{}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			var r run
			n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run?wait=30s", body, &r, 201)
			require.Equal(t, "succeeded", r.State)
		})
	}
}
