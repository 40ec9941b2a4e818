package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

func TestMaintenance(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/executors/" + e.ID.String() + "/maintenance"
	list := func(who, query string) []Maintenance {
		return into[web.Page[Maintenance]](w.call(who, "GET", "/maintenance"+query, nil).is(200)).Items
	}
	require.Empty(t, list("acme/viewer", ""))

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
	got := into[Maintenance](w.call("acme/admin", "PUT", path, map[string]any{"mode": "wait", "reason": "new disks", "until": until}).is(200))
	require.Equal(t, []any{"executor", &web.Ref{ID: e.ID.String(), Name: "shop"}, "wait", "new disks", true}, []any{got.Kind, got.Subject, got.Mode, got.Reason, got.Active})
	require.NotEmpty(t, got.By)
	require.Contains(t, *got.Until, until[:19])
	w.call("acme/admin", "PUT", "/maintenance", map[string]any{"mode": "continue"}).is(200)
	w.call("platform", "PUT", "/cluster/maintenance", map[string]any{"mode": "continue"}).is(200)
	require.Len(t, list("acme/viewer", ""), 3)
	require.Len(t, list("beta/viewer", ""), 1, "other tenants see that of the cluster")
	require.Len(t, into[Me](w.call("acme/viewer", "GET", "/me", nil).is(200)).Maintenance, 3)
	attention := into[Overview](w.call("acme/viewer", "GET", "/overview", nil).is(200)).Attention
	require.Equal(t, []string{"maintenance", "maintenance", "maintenance"}, []string{attention[0].Kind, attention[1].Kind, attention[2].Kind})
	require.Equal(t, `Maintenance of the executor "shop": what is due waits (new disks).`, attention[2].Text.En)

	// What a person asks for is refused, unless he means it.
	job := w.job("acme", "nightly", e)
	run := "/jobs/" + job.ID + "/run"
	p := w.call("acme/operator", "POST", run, map[string]any{}).problem(409, "maintenance")
	require.Contains(t, p.Detail, "maintenance of the executor: new disks")
	require.Contains(t, p.Detail, "until "+until[:19])
	w.call("acme/operator", "POST", run+"?duringMaintenance=true", map[string]any{}).is(http.StatusCreated)

	off := into[Maintenance](w.call("acme/admin", "DELETE", path, nil).is(200))
	require.False(t, off.Active)
	require.NotEmpty(t, off.EndedBy)
	w.call("acme/admin", "DELETE", path, nil).problem(404, "not_found")
	w.call("acme/admin", "DELETE", "/maintenance", nil).is(200)
	w.call("platform", "DELETE", "/cluster/maintenance", nil).is(200)
	require.Empty(t, list("acme/viewer", ""))
	require.Len(t, list("acme/viewer", "?ended=true"), 3)
	w.call("acme/operator", "POST", run, map[string]any{}).is(http.StatusCreated)

	for _, wrong := range []map[string]any{{"mode": "stop"}, {}, {"mode": "wait", "until": "2020-01-01T00:00:00Z"}, {"mode": "wait", "until": "soon"}, {"mode": "wait", "reason": "a\x07"}} {
		w.call("acme/admin", "PUT", path, wrong).problem(422, "validation_failed")
	}
	w.call("acme/editor", "PUT", path, map[string]any{"mode": "wait"}).problem(403, "permission_denied")
	w.call("acme/admin", "PUT", "/cluster/maintenance", map[string]any{"mode": "wait"}).problem(403, "permission_denied")
	w.call("beta/admin", "PUT", path, map[string]any{"mode": "wait"}).problem(404, "not_found")
}
