package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestLimits(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/executors/" + e.ID.String() + "/limit"
	tenant := "/tenants/" + w.tenants["acme"].String() + "/limit"
	list := func(who string) []Limit {
		return into[web.Page[Limit]](w.call(who, "GET", "/limits", nil).is(200)).Items
	}
	require.Empty(t, list("acme/viewer"))

	want := Limit{Kind: "executor", Subject: web.Ref{ID: e.ID.String(), Name: "shop"}, MaxRunning: 3}
	require.Equal(t, want, into[Limit](w.call("acme/editor", "PUT", path, map[string]any{"maxRunning": 3}).is(200)))
	w.call("platform", "PUT", tenant, map[string]any{"maxRunning": 20}).is(200)
	got := list("acme/viewer")
	require.Equal(t, []Limit{{Kind: "tenant", Subject: web.Ref{ID: w.tenants["acme"].String(), Name: "acme"}, MaxRunning: 20}, want}, got)
	require.Empty(t, list("beta/viewer"))
	require.Equal(t, 3, into[ExecutorDetail](w.call("acme/viewer", "GET", strings.TrimSuffix(path, "/limit"), nil).is(200)).MaxRunning)

	want.MaxRunning = 0
	require.Equal(t, want, into[Limit](w.call("acme/editor", "PUT", path, map[string]any{"maxRunning": 0}).is(200)))
	require.Len(t, list("acme/viewer"), 1)

	for _, wrong := range []any{-1, 100_001, "three", nil, 1.5} {
		w.call("acme/editor", "PUT", path, map[string]any{"maxRunning": wrong}).problem(422, "validation_failed")
	}
	w.call("acme/editor", "PUT", path, map[string]any{}).problem(422, "validation_failed")
	w.call("acme/operator", "PUT", path, map[string]any{"maxRunning": 1}).problem(403, "permission_denied")
	w.call("acme/admin", "PUT", tenant, map[string]any{"maxRunning": 1}).problem(403, "permission_denied")
	w.call("beta/editor", "PUT", path, map[string]any{"maxRunning": 1}).problem(404, "not_found")
	w.call("platform", "PUT", "/tenants/1/limit", map[string]any{"maxRunning": 1}).problem(404, "not_found")
}

// TestCoverEarlyAndPriority are settings like others, and wrong values are told
// at their field.
func TestCoverEarlyAndPriority(t *testing.T) {
	w := newWorld(t)
	job := w.job("acme", "nightly", w.executor("acme", "shop"), with("blocking", "cover_early"), with("priority", -100))
	require.Equal(t, string(domain.BlockCover), job.Blocking)
	require.Equal(t, -100, job.Priority)
	for field, value := range map[string]any{"blocking": "cover_late", "priority": 101, "parallelism": -1} {
		p := w.call("acme/editor", "POST", "/jobs", jobBody("wrong", w.executor("acme", "other-"+field), with(field, value))).problem(422, "validation_failed")
		require.Equal(t, "body."+field, p.Errors[0].Location)
	}
}
