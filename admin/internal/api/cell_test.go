package api

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestCells(t *testing.T) {
	w := newWorld(t)
	const path = "/cells/eu2"
	body := map[string]any{"url": "https://eu2.example.com", "executors": []string{"a:9000", "b:9000"}}
	w.call("acme/admin", "PUT", path, body).problem(403, "permission_denied")
	require.Equal(t, []string{"a:9000", "b:9000"}, into[tenant.Cell](w.call("platform", "PUT", path, body).is(200)).Executors)
	body["url"] = "https://eu2.example.org"
	w.call("platform", "PUT", path, body).is(200)
	list := into[web.Page[tenant.Cell]](w.call("platform", "GET", "/cells", nil).is(200)).Items
	require.Len(t, list, 1)
	require.Equal(t, "https://eu2.example.org", list[0].URL)
	for field, bad := range map[string]any{"url": "ftp://x", "executors": []string{"a"}} {
		wrong := map[string]any{"url": body["url"], "executors": body["executors"]}
		wrong[field] = bad
		w.call("platform", "PUT", path, wrong).problem(422, "validation_failed")
	}
	w.call("platform", "PUT", "/cells/EU", body).problem(422, "validation_failed")
	w.call("platform", "DELETE", path, nil).is(204)
	w.call("platform", "DELETE", path, nil).problem(404, "not_found")
}

// Who asks for a tenant that has moved is told where it is, whoever he is.
func TestTenantElsewhere(t *testing.T) {
	w := newWorld(t)
	w.objectsOf("acme")
	w.as("acme/viewer")
	key := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "program", "role": "viewer"}).is(201))
	w.bearers["key"] = key.Secret
	acme := w.tenants["acme"]
	cell := &domain.Cell{Name: "eu2", URL: "https://eu2.example.com", Executors: []string{"a:9000"}}
	w.notHere = map[domain.TenantID]error{acme: domain.TenantMoving.NotHere(cell)}
	moving := w.call("key", "GET", "/jobs", nil)
	moving.problem(503, "tenant_moving")
	require.Equal(t, "1", moving.header.Get("Retry-After"))
	w.notHere[acme] = domain.TenantMoved.NotHere(cell)
	for _, who := range []string{"key", "acme/viewer"} {
		a := w.call(who, "GET", "/jobs", nil)
		a.problem(421, "tenant_elsewhere")
		var p web.Problem
		require.NoError(t, json.Unmarshal(a.body, &p))
		require.Equal(t, &web.CellAddress{Name: "eu2", URL: "https://eu2.example.com"}, p.Cell)
	}
	w.call("beta/viewer", "GET", "/jobs", nil).is(200)
}
