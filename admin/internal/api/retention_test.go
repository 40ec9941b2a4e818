package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestRetention(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.RunRetention, d.LogRetention = 90*24*time.Hour, 30*24*time.Hour })
	job := w.job("acme", "nightly", w.executor("acme", "shop"))
	of := func(path string) Retention { return into[Retention](w.call("acme/viewer", "GET", path, nil).is(200)) }
	require.Equal(t, Retention{Effective: RetentionHold{Runs: "2160h", Logs: "720h"}}, of("/retention"))
	set := w.call("acme/admin", "PUT", "/retention", map[string]any{"runDays": 10, "logDays": 5}).is(200)
	require.Equal(t, `"1"`, set.header.Get("ETag"))
	got := into[Retention](w.call("acme/editor", "PUT", "/jobs/"+job.ID+"/retention", map[string]any{"runCount": 100, "logDays": 20}).is(200))
	require.Equal(t, RetentionHold{Runs: "240h", Logs: "120h", RunCount: 100}, got.Effective)
	require.Equal(t, got, of("/jobs/"+job.ID+"/retention"))
	require.Len(t, into[web.Page[Retention]](w.call("acme/viewer", "GET", "/retention/rules", nil).is(200)).Items, 2)

	w.call("acme/editor", "PUT", "/retention", map[string]any{"runDays": 1}).problem(403, "permission_denied")
	w.call("acme/admin", "PUT", "/retention", map[string]any{"runDays": 1}, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	for field, days := range map[string]int{"runDays": 91, "logDays": 31} {
		p := w.call("acme/admin", "PUT", "/retention", map[string]any{field: days}).problem(422, "validation_failed")
		require.Equal(t, "body."+field, p.Errors[0].Location)
	}
	w.call("acme/admin", "PUT", "/retention", map[string]any{"runCount": 10_001}).problem(422, "validation_failed")
	w.call("acme/admin", "PUT", "/retention", map[string]any{}).is(200)
	require.Len(t, into[web.Page[Retention]](w.call("acme/viewer", "GET", "/retention/rules", nil).is(200)).Items, 1, "all 0 takes it away")
}

func TestRunPurge(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	job := w.job("acme", "nightly", shop)
	w.instance(shop, "one", "reconcile")
	run := w.ran("acme", job, domain.Report{Outcome: domain.OutcomeSucceeded})
	before := time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
	ask := func(body map[string]any) RunPurge {
		if body["before"] == nil {
			body["before"] = before
		}
		status := 202
		if body["dryRun"] == true {
			status = 200
		}
		return into[RunPurge](w.call("acme/admin", "POST", "/run-purges", body).is(status))
	}
	dry := ask(map[string]any{"jobId": job.ID, "dryRun": true})
	require.Equal(t, "dry_run", dry.State)
	require.Empty(t, dry.ID)
	require.Empty(t, into[web.Page[RunPurge]](w.call("acme/viewer", "GET", "/run-purges", nil).is(200)).Items)
	p := ask(map[string]any{"jobId": job.ID})
	require.Equal(t, "running", p.State)
	require.NoError(t, w.store.DriveRunPurges(t.Context(), 10))
	done := into[RunPurge](w.call("acme/viewer", "GET", "/run-purges/"+p.ID, nil).is(200))
	require.Equal(t, "done", done.State)
	require.Equal(t, "acme-admin", done.CreatedBy)
	require.Zero(t, done.Deleted, "it ended just now")
	w.call("acme/viewer", "GET", "/runs/"+run.ID.String(), nil).is(200)
	w.call("acme/admin", "POST", "/run-purges/"+p.ID+"/cancel", nil).problem(409, "conflict")
	p = ask(map[string]any{})
	require.Equal(t, "cancelled", into[RunPurge](w.call("acme/admin", "POST", "/run-purges/"+p.ID+"/cancel", nil).is(200)).State)
	w.call("acme/editor", "POST", "/run-purges", map[string]any{"before": before}).problem(403, "permission_denied")
	w.call("acme/admin", "POST", "/run-purges", map[string]any{"before": "2100-01-01T00:00:00Z"}).problem(422, "validation_failed")
	w.call("acme/admin", "POST", "/run-purges", map[string]any{"before": before, "jobId": "1"}).problem(404, "not_found")
}
