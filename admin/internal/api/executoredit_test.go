package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestExecutorRename(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	path := "/executors/" + e.ID.String()
	change := map[string]any{"name": "store", "description": "orders"}
	w.call("acme/operator", "PATCH", path, change, header{"If-Match": "*"}).problem(403, "permission_denied")
	w.call("acme/editor", "PATCH", path, change).problem(428, "validation_failed")
	w.call("acme/editor", "PATCH", path, change, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	w.call("acme/editor", "PATCH", path, map[string]any{"name": "a b"}, header{"If-Match": "*"}).problem(422, "validation_failed")
	before := into[ExecutorDetail](w.call("acme/editor", "GET", path, nil).is(200))
	got := into[ExecutorDetail](w.call("acme/editor", "PATCH", path, change, header{"If-Match": web.ETag(before.Version)}).is(200))
	require.Equal(t, []any{"store", "orders", int64(2), []string{"shop"}, "enabled"}, []any{got.Name, got.Description, got.Version, got.FormerNames, got.State})

	// Programs go on calling and setting timers by the former name.
	for _, name := range []string{"shop", "store"} {
		w.call("acme/operator", "POST", "/calls", map[string]any{"executor": name, "handler": "reconcile"}).is(201)
		w.call("acme/operator", "POST", "/timers", map[string]any{"executor": name, "handler": "reconcile", "key": name, "after": "1h"}).is(201)
	}
	w.call("acme/editor", "POST", "/executors", map[string]any{"name": "shop"}).problem(409, "conflict")
	w.call("acme/editor", "DELETE", path+"/former-names/store", nil).problem(404, "not_found")
	w.call("acme/editor", "DELETE", path+"/former-names/shop", nil).is(204)
	w.call("acme/operator", "POST", "/calls", map[string]any{"executor": "shop", "handler": "reconcile"}).problem(404, "not_found")
	w.call("acme/editor", "POST", "/executors", map[string]any{"name": "shop"}).is(201)
	list := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors", nil).is(200)).Items
	require.Equal(t, []string{"shop", "store"}, []string{list[0].Name, list[1].Name})
}

func TestExecutorDelete(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e)
	w.call("acme/operator", "POST", "/timers", map[string]any{"executor": "shop", "handler": "reconcile", "key": "order-1", "after": "1h"}).is(201)
	path := "/executors/" + e.ID.String()
	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")

	p := w.call("acme/editor", "DELETE", path, nil).problem(409, "in_use")
	require.Equal(t, `the executor "shop" has 1 job, 1 job with calls, callbacks and timers of a handler, 1 pending timer, 1 connected instance; delete or stop them first, or take them along`, p.Detail)
	require.Len(t, p.Errors, 4)
	w.call("acme/editor", "DELETE", path+"?jobs=delete", nil).problem(409, "in_use")
	w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)
	w.call("acme/editor", "DELETE", path+"?jobs=delete&instances=end", nil, header{"If-Match": `"9"`}).problem(412, "revision_mismatch")
	w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)
	w.call("acme/editor", "DELETE", path+"?jobs=delete&instances=end", nil).is(204)
	for _, gone := range []string{path, "/jobs/" + job.ID} {
		w.call("acme/viewer", "GET", gone, nil).problem(404, "not_found")
	}
	require.Empty(t, into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors", nil).is(200)).Items)

	_, err := w.store.SetScriptPolicy(t.Context(), domain.ScriptPolicy{TenantID: w.tenants["acme"], Callbacks: &domain.CallbackPolicy{Hosts: []string{"x.example"}}})
	require.NoError(t, err)
	builtIn, err := w.store.FindExecutorByName(t.Context(), w.tenants["acme"], domain.BuiltInExecutor)
	require.NoError(t, err)
	path = "/executors/" + builtIn.ID.String()
	w.call("acme/editor", "DELETE", path+"?jobs=delete&instances=end", nil).problem(409, "conflict")
	w.call("acme/editor", "PATCH", path, map[string]any{"name": "mine"}, header{"If-Match": "*"}).problem(409, "conflict")
}
