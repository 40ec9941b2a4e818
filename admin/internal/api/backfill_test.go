package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestBackfill(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job := w.job("acme", "daily", e, with("schedule", map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"}))
	path := "/jobs/" + job.ID + "/backfill"
	ask := map[string]any{"from": "2026-03-01T00:00:00+08:00", "to": "2026-03-04T02:00:00+08:00", "dryRun": true, "note": "after the outage"}
	dry := into[Backfill](w.call("acme/operator", "POST", path, ask).is(200))
	require.Equal(t, "dry_run", dry.State)
	require.Empty(t, dry.ID)
	require.Equal(t, []int{3, 3, 0}, []int{dry.Planned, dry.Created, dry.Skipped}, "to is not included")
	require.Equal(t, "2026-03-01T02:00:00+08:00", dry.Fires[0].Zoned)
	list := func() []Backfill {
		return into[web.Page[Backfill]](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/backfills", nil).is(200)).Items
	}
	require.Empty(t, list(), "nothing was done")
	w.call("acme/viewer", "POST", path, ask).problem(403, "permission_denied")

	ask["dryRun"], ask["concurrency"] = false, 2
	made := into[Backfill](w.call("acme/operator", "POST", path, ask).is(201))
	require.Equal(t, "running", made.State)
	require.Equal(t, 3, made.Planned)
	got, err := w.store.DriveBackfills(t.Context(), store.DriveBackfillsParams{Limit: 10, Fires: timing.FiresBetween, NewID: w.ids.Next})
	require.NoError(t, err)
	require.Len(t, got.Runs, 2)
	run := into[RunDetail](w.call("acme/viewer", "GET", "/runs/"+got.Runs[0].ID.String(), nil).is(200))
	require.Equal(t, "backfill", run.Cause)
	require.Equal(t, "2026-02-28T18:00:00.000Z", run.FireAt)
	require.Equal(t, "after the outage", run.Note)
	require.Len(t, into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?cause=backfill", nil).is(200)).Items, 2)
	now := into[Backfill](w.call("acme/viewer", "GET", "/backfills/"+made.ID, nil).is(200))
	require.Equal(t, []int{2, 2}, []int{now.Created, now.Running})

	ask["dryRun"] = true
	dry = into[Backfill](w.call("acme/operator", "POST", path, ask).is(200))
	require.Equal(t, []int{1, 2}, []int{dry.Created, dry.Skipped}, "what a backfill wrote is not written again")

	ended := into[Backfill](w.call("acme/operator", "POST", "/backfills/"+made.ID+"/cancel", nil).is(200))
	require.Equal(t, "cancelled", ended.State)
	w.call("acme/operator", "POST", "/backfills/"+made.ID+"/cancel", nil).problem(409, "already_finished")
	require.Len(t, list(), 1)
	w.call("beta/operator", "GET", "/backfills/"+made.ID, nil).problem(404, "not_found")
}

func TestBackfillMistakes(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	minutely := w.job("acme", "minutely", e, with("schedule", map[string]any{"kind": "cron", "expr": "* * * * *"}))
	delayed := w.job("acme", "delayed", e, with("schedule", map[string]any{"kind": "fixed_delay", "every": "1m"}))
	yearly := w.job("acme", "yearly", e, with("schedule", map[string]any{"kind": "cron", "expr": "0 0 1 1 *"}))
	soon := web.Instant(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		job, from, to, at string
	}{
		"no instant":   {minutely.ID, "yesterday", "2026-03-02T00:00:00Z", "body.from"},
		"backwards":    {minutely.ID, "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z", "body.to"},
		"the future":   {minutely.ID, "2026-03-02T00:00:00Z", soon, "body.to"},
		"too much":     {minutely.ID, "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z", "body.to"},
		"fixed delay":  {delayed.ID, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "path.id"},
		"nothing then": {yearly.ID, "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z", "body.from"},
	} {
		w.run(t, name, func(t *testing.T) {
			p := w.call("acme/operator", "POST", "/jobs/"+c.job+"/backfill", map[string]any{"from": c.from, "to": c.to}).problem(422, "validation_failed")
			require.Equal(t, c.at, p.Errors[0].Location)
			if name == "too much" {
				require.Contains(t, p.Errors[0].Message, "10000 fire times; end it at 2026-03-07T22:40:00.000Z")
			}
		})
	}
	require.Equal(t, 10_000, domain.MaxBackfillFires)
}
