package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestTenantLifecycle(t *testing.T) {
	w := newWorld(t)
	w.objectsOf("acme")
	w.as("acme/viewer") // before the tenant has another name
	path := "/tenants/" + w.tenants["acme"].String()
	shown := func(a answer) tenant.Tenant { return into[tenant.Tenant](a.is(200)) }
	before := shown(w.call("platform", "GET", path, nil))
	require.Equal(t, []any{"acme", "enabled", int64(1)}, []any{before.Name, before.State, before.Version})
	w.call("platform", "PATCH", path, map[string]any{"name": "beta"}, header{"If-Match": "*"}).problem(409, "conflict")
	w.call("platform", "PATCH", path, map[string]any{"name": "A b"}, header{"If-Match": "*"}).problem(422, "validation_failed")
	w.call("platform", "PATCH", path, map[string]any{"name": "acme-two"}).problem(428, "validation_failed")
	w.call("platform", "PATCH", path, map[string]any{"name": "acme-two"}, header{"If-Match": `"9"`}).problem(412, "revision_mismatch")
	renamed := shown(w.call("platform", "PATCH", path, map[string]any{"name": "acme-two"}, header{"If-Match": `"1"`}))
	require.Equal(t, []any{"acme-two", int64(2)}, []any{renamed.Name, renamed.Version})

	key := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "program", "role": "viewer"}).is(201))
	w.call("platform", "DELETE", path+"?name=acme-two", nil).problem(409, "conflict")
	disabled := shown(w.call("platform", "POST", path+"/disable", map[string]any{"note": "unpaid"}))
	require.Equal(t, []any{"disabled", "unpaid"}, []any{disabled.State, disabled.Note})
	w.disabled = map[domain.TenantID]bool{w.tenants["acme"]: true} // as the node's watch reads it
	w.call("acme/viewer", "GET", "/jobs", nil).problem(403, "tenant_disabled")
	w.bearers["key"] = key.Secret
	w.call("key", "GET", "/jobs", nil).problem(403, "tenant_disabled")
	w.call("beta/viewer", "GET", "/jobs", nil).is(200)
	w.call("", "POST", "/auth/login", map[string]any{"username": "acme-viewer", "password": peerPassword}).problem(403, "tenant_disabled")
	w.call("", "POST", "/auth/login", map[string]any{"username": "acme-viewer", "password": peerPassword, "tenant": "acme-two"}).problem(403, "tenant_disabled")

	w.call("platform", "DELETE", path+"?name=acme", nil).problem(422, "validation_failed")
	w.call("platform", "DELETE", path+"?name=acme-two&grace=9999h", nil).problem(422, "validation_failed")
	w.call("platform", "POST", path+"/restore", nil).problem(409, "conflict")
	deleted := shown(w.call("platform", "DELETE", path+"?name=acme-two", nil))
	require.Equal(t, "deleted", deleted.State)
	require.NotNil(t, deleted.DeleteAt)
	w.call("platform", "POST", path+"/enable", nil).problem(409, "conflict")
	restored := shown(w.call("platform", "POST", path+"/restore", nil))
	require.Equal(t, []any{"disabled", (*string)(nil)}, []any{restored.State, restored.DeleteAt})
	require.Equal(t, "enabled", shown(w.call("platform", "POST", path+"/enable", nil)).State)
	w.disabled = nil
	w.call("acme/viewer", "GET", "/jobs", nil).is(200)
	w.call("key", "GET", "/jobs", nil).is(200)

	home := "/tenants/" + w.tenants["default"].String()
	w.call("platform", "POST", home+"/disable", nil).problem(409, "conflict")
}
