package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// A node writes events of runs that have succeeded if a rule names them, and counts them in
// an incident.
func TestARuleHearsOfSuccesses(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "quick", func(context.Context) error { return nil })
	})
	n.do(http.MethodPost, "/api/v1/alert-rules", map[string]any{
		"name": "done", "enabled": true, "match": map[string]any{"kinds": []string{"run_succeeded"}}, "condition": map[string]any{"kind": "events"},
	}, nil, 201)
	id := n.newJob("shop", "quick", map[string]any{"schedule": map[string]any{"kind": "fixed_rate", "every": "1s"}})
	var list struct {
		Items []struct{ Kind, JobID string }
	}
	n.eventually(func() bool {
		n.do(http.MethodGet, "/api/v1/alert-incidents", nil, &list, 200)
		return len(list.Items) > 0
	}, func() string { return fmt.Sprint(list) })
	require.Equal(t, "run_succeeded", list.Items[0].Kind)
	require.Equal(t, id, list.Items[0].JobID)
}
