package admin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// TestSampleHandlers: a server without an application runs the samples of the built-in executor,
// unless its operator has switched them off.
func TestSampleHandlers(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	var samples struct {
		Executor string
		Handlers []string
	}
	for range 2 {
		n.do("POST", "/api/v1/samples", nil, &samples, http.StatusOK)
		require.Equal(t, "carillon", samples.Executor)
	}
	hello := n.newJob(samples.Executor, samples.Handlers[0], map[string]any{"name": "hello"})
	require.JSONEq(t, `{"greeting":"Hello, Anna!"}`, string(n.until(n.runNow(hello, map[string]any{"name": "Anna"}), "succeeded").Output))
	sleeping := n.newJob(samples.Executor, samples.Handlers[1], map[string]any{"name": "sleep", "input": map[string]any{"seconds": 1}})
	require.JSONEq(t, `{"greeting":"Good morning, after 1 s"}`, string(n.until(n.runNow(sleeping, nil), "succeeded").Output))
	failing := n.newJob(samples.Executor, samples.Handlers[2], map[string]any{"name": "fail", "input": map[string]any{"message": "the bank is closed"}})
	require.Equal(t, "the bank is closed", n.until(n.runNow(failing, nil), "failed").Error)

	off := startNode(t, func(c *admin.Config) { c.AddOns = admin.Settings{"sample-handlers": {"off"}} })
	off.do("POST", "/api/v1/samples", nil, nil, http.StatusForbidden)
	_, err := admin.New(t.Context(), admin.Config{DataDir: t.TempDir(), AddOns: admin.Settings{"sample-handlers": {"maybe"}}})
	require.ErrorContains(t, err, `invalid value "maybe" of sample-handlers: use on or off`)
}
