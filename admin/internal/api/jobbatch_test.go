package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Many jobs are judged one by one, as POST /jobs judges them.
func TestManyJobsAtOnce(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	w.job("acme", "there", e)
	byName := func(b map[string]any) { b["executor"] = map[string]any{"name": "shop"} }
	items := []any{
		jobBody(" first ", e), jobBody("there", e), jobBody("second", e, byName, with("state", "paused")), jobBody("first", e),
		jobBody("bad", e, with("schedule", map[string]any{"kind": "cron", "expr": "0 61 * * *"})), jobBody("unknown", e, with("handler", "recon")),
	}
	changed := w.changed
	out := into[JobBatch](w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": items}).is(200))
	require.Equal(t, []int{2, 4}, []int{out.Created, out.Failed})
	require.Equal(t, changed+1, w.changed, "the scheduler is told once")
	status := make([]int, len(out.Items))
	for i, item := range out.Items {
		status[i] = item.Status
		require.Equal(t, item.Status == 201, item.ID != "")
		require.Equal(t, item.Status != 201, item.Problem != nil)
	}
	require.Equal(t, []int{201, 409, 201, 409, 422, 422}, status)
	require.Equal(t, "body.schedule.expr", out.Items[4].Problem.Errors[0].Location)
	require.Equal(t, "unknown_handler", out.Items[5].Problem.Code)
	for i, state := range map[int]string{0: "enabled", 2: "paused"} {
		job := into[Job](w.call("acme/viewer", "GET", "/jobs/"+out.Items[i].ID, nil).is(200))
		require.Equal(t, []any{out.Items[i].Name, state, "reconcile", int64(1)}, []any{job.Name, job.State, job.Handler, job.Revision})
	}

	p := w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": []any{jobBody("fine", e), jobBody("odd", e, with("priority", "high"))}}).problem(422, "validation_failed")
	require.Contains(t, p.Errors[0].Location, "body.items[1].priority")
	w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": []any{}}).problem(422, "validation_failed")
	w.call("acme/viewer", "POST", "/jobs/batch", map[string]any{"items": items}).problem(403, "permission_denied")
	other := into[JobBatch](w.call("beta/editor", "POST", "/jobs/batch", map[string]any{"items": items[:1]}).is(200))
	require.Equal(t, 404, other.Items[0].Status, "an executor of another tenant")

	many := make([]any, 1001)
	for i := range many {
		many[i] = jobBody(fmt.Sprintf("job %d", i), e)
	}
	out = into[JobBatch](w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": many[:1000]}).is(200))
	require.Equal(t, 1000, out.Created)
	w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": many}).problem(422, "validation_failed")
}
