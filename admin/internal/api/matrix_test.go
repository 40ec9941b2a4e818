package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// objects are the ids of one tenant's things, by path pattern.
type objects map[string]string

// objectsOf makes one of everything in a tenant.
func (w *world) objectsOf(tenant string) objects {
	w.t.Helper()
	made := w.objectsIn(tenant, w.executor(tenant, "shop"), map[bool]string{true: "nightly", false: "theirs-nightly"}[tenant == "acme"])
	e := domain.Executor{ID: mustID[domain.ExecutorID](w.t, made["/executors/{id}"])}
	admin := tenant + "/admin"
	key := into[access.CreatedAPIKey](w.call(admin, "POST", "/api-keys", map[string]any{"name": "k", "role": "viewer"}).is(201))
	join := into[access.CreatedJoinToken](w.call(admin, "POST", "/executors/"+e.ID.String()+"/join-tokens", map[string]any{}).is(201))
	denial := into[access.Denial](w.call(admin, "POST", "/executors/"+e.ID.String()+"/denials", map[string]any{"serial": "ab01"}).is(201))
	calendar := into[calendarAnswer](w.call(admin, "POST", "/calendars", calendarBody("holidays", map[string]any{})).is(201))
	_, err := w.store.SetScriptPolicy(w.t.Context(), domain.ScriptPolicy{TenantID: w.tenants[tenant], Languages: domain.ScriptLanguages})
	require.NoError(w.t, err)
	script := into[scriptAnswer](w.call(admin, "POST", "/scripts", scriptBody("report", "shell", "true", "")).is(201))
	invitation := into[access.Invitation](w.call(admin, "POST", "/invitations", map[string]any{"username": "stranger", "role": "viewer"}).is(201))
	require.NoError(w.t, w.store.SaveCell(w.t.Context(), domain.Cell{Name: "eu-" + tenant, URL: "https://eu2.example.com", Executors: []string{"eu2:9000"}}))
	name := func(acme, other string) string { return map[bool]string{true: acme, false: other}[tenant == "acme"] }
	purge := into[RunPurge](w.call(admin, "POST", "/run-purges", map[string]any{"before": "2026-01-01T00:00:00Z"}).is(202))
	maps.Copy(made, objects{
		"/run-purges/{id}":   purge.ID,
		"/timers/{executor}": name("shop", "theirs"), "/{handler}": name("reconcile", "refund"), "/{key}": name("order-1", "order-2"),
		"/former-names/{name}": "formerly",
		"/invitations/{id}":    invitation.ID,
		"/scripts/{id}":        script.ID, "/versions/{version}": name("1", "771177117711771177"),
		"/cells/{name}": "eu-" + tenant, "/calendars/{id}": calendar.ID, "/tenants/{id}": w.tenants[tenant].String(),
		"/api-keys/{id}": key.ID, "/join-tokens/{tokenId}": join.ID, "/denials/{denialId}": denial.ID, "/users/{id}": w.users[tenant+"-viewer"].String(),
	})
	for _, a := range addOns {
		maps.Copy(made, a.objects(w, admin))
	}
	return made
}

// objectsIn makes one of everything that belongs to an executor.
func (w *world) objectsIn(tenant string, e domain.Executor, jobName string) objects {
	w.t.Helper()
	i := w.instance(e, "one", "reconcile")
	job := w.job(tenant, jobName, e)
	run := w.ran(tenant, job, domain.Report{Outcome: domain.OutcomeSucceeded})
	admin := tenant + "/admin"
	backfill := into[Backfill](w.call(admin, "POST", "/jobs/"+job.ID+"/backfill", map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}).is(201))
	stored, err := w.store.FindJob(w.t.Context(), e.TenantID, mustID[domain.JobID](w.t, job.ID))
	require.NoError(w.t, err)
	proposal := domain.Proposal{ID: w.ids.Next(), TenantID: e.TenantID, Executor: e.ID, Name: "proposed-" + jobName, Hash: "h", Spec: stored.Spec}
	proposal.Spec.Name = proposal.Name
	require.NoError(w.t, w.store.Propose(w.t.Context(), proposal))
	w.call(admin, "POST", "/timers", map[string]any{"executor": e.Name, "handler": "reconcile", "key": "order-1", "after": "1h"}).is(201)
	cancellation := into[timer.TimerCancellation](w.call(admin, "POST", "/timers/cancel", map[string]any{"executor": e.Name, "handler": "reconcile", "keyPrefix": "none-"}).is(202))
	return objects{
		"/executors/{id}": e.ID.String(), "/instances/{id}": i.ID.String(), "/jobs/{id}": job.ID, "/by-name/{name}": jobName, "/kinds/{kind}": "of-" + jobName,
		"/runs/{id}": run.ID.String(), "/calls/{id}": run.ID.String(), "/backfills/{id}": backfill.ID,
		"/job-proposals/{id}": domain.JobID(proposal.ID).String(), "/timer-cancellations/{id}": cancellation.ID,
		"/timers/{executor}": e.Name, "/{handler}": "reconcile", "/{key}": "order-1",
	}
}

// fill puts ids into a path: those of own, but foreign for the parameter
// number foreignAt (-1 = none).
func fill(path string, own, foreign objects, foreignAt int) string {
	for n := 0; ; n++ {
		end := strings.Index(path, "}")
		if end < 0 {
			return path
		}
		from := own
		if n == foreignAt {
			from = foreign
		}
		for pattern, id := range from {
			if strings.HasSuffix(path[:end+1], pattern) {
				path = path[:strings.Index(path, "{")] + id + path[end+1:]
				break
			}
		}
		if i := strings.Index(path, "}"); i == end {
			panic("matrix: no object for " + path)
		}
	}
}

// matrixQuery has the parameters that a route cannot do without.
var matrixQuery = map[string]string{web.Base + "/jobs/{id}/explain": "?at=2026-11-21T02:00:00Z", web.Base + "/scripts/{id}/diff": "?from=1&to=1", web.Base + "/tenants/{id}": "?name=acme", web.Base + "/search": "?q=nightly"}

// bodies that get past validation, so that a foreign id is really looked up.
func matrixBody(method, path string) any {
	for _, a := range addOns {
		if body := a.body(method, path); body != nil {
			return body
		}
	}
	switch {
	case strings.HasSuffix(path, "/backfill"):
		return map[string]any{"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z"}
	case strings.HasSuffix(path, "/denials"):
		return map[string]any{"serial": "ab01"}
	case strings.HasSuffix(path, "/reschedule"):
		return map[string]any{"after": "2h"}
	case strings.HasSuffix(path, "/import"):
		return map[string]any{"ical": "BEGIN:VCALENDAR\nEND:VCALENDAR\n"}
	case method == http.MethodPut && strings.Contains(path, "/scripts/"):
		return scriptBody("report", "shell", "false", "")
	case method == http.MethodPut && strings.Contains(path, "/calendars/"):
		return calendarBody("changed", map[string]any{})
	case method == http.MethodPut && strings.Contains(path, "/cells/"):
		return map[string]any{"url": "https://eu2.example.com", "executors": []string{"eu2:9000"}}
	case method == http.MethodPut && strings.HasSuffix(path, "/maintenance"):
		return map[string]any{"mode": "continue"}
	case method == http.MethodPut && strings.HasSuffix(path, "/retention"):
		return map[string]any{"runDays": 1}
	case strings.HasSuffix(path, "/limit"):
		return map[string]any{"maxRunning": 1}
	case method == http.MethodPut:
		return jobBody("changed", domain.Executor{ID: 1})
	case strings.HasSuffix(path, "/auth/tenant"):
		return map[string]any{"tenant": "acme"}
	case method == http.MethodPatch && strings.Contains(path, "/tenants/"):
		return map[string]any{"name": "changed"}
	case method == http.MethodPatch && strings.Contains(path, "/executors/"):
		return map[string]any{"description": "changed"}
	case method == http.MethodPatch:
		return map[string]any{"role": "viewer"}
	case method == http.MethodPost && strings.Contains(path, "{"):
		return map[string]any{}
	}
	return nil
}

// permissionsIn are those that a policy asks for, by its name.
func permissionsIn(policy string) (perm domain.Permission) {
	list, _ := strings.CutPrefix(policy, "permission:")
	for i, name := range domain.PermissionNames {
		if slices.Contains(strings.Split(list, "+"), name) {
			perm |= 1 << i
		}
	}
	return perm
}

// TestRoutesTimesRolesTimesTenants calls every route of the document as
// everybody. It does not check what the right people get (other tests do), but
// that the others get nothing.
func TestRoutesTimesRolesTimesTenants(t *testing.T) {
	w := newWorld(t)
	own, foreign := w.objectsOf("acme"), w.objectsOf("beta")
	roles := []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleEditor, domain.RoleScripter, domain.RoleAdmin}
	var routes []string
	operations(w.api.Document(), func(method, path string, _ *huma.Operation) {
		routes = append(routes, method+" "+path)
	})
	slices.Sort(routes)
	calls := 0
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		policy := w.api.Policies()[route]
		perm := permissionsIn(policy)
		do := func(who, at string) answer {
			calls++
			return w.call(who, method, at+matrixQuery[path], matrixBody(method, path), header{"If-Match": "*"})
		}
		w.run(t, route, func(t *testing.T) {
			if policy == "public" {
				return
			}
			do("", fill(path, own, nil, -1)).problem(http.StatusUnauthorized, "unauthenticated")
			for _, role := range roles {
				who := "acme/" + string(role)
				allowed := policy != "platform_admin" && role.Permissions()&perm == perm
				if !allowed {
					do(who, fill(path, own, nil, -1)).problem(http.StatusForbidden, "permission_denied")
				}
				for n := range strings.Count(path, "{") {
					at := fill(path, own, foreign, n)
					if allowed {
						do(who, at).problem(http.StatusNotFound, "not_found")
					} else {
						do(who, at).problem(http.StatusForbidden, "permission_denied")
					}
				}
			}
		})
	}
	require.Greater(t, calls, 150)

	w.run(t, "the other tenant is untouched", func(t *testing.T) {
		for pattern, path := range map[string]string{
			"/executors/{id}": "/executors/%s", "/instances/{id}": "/instances/%s", "/jobs/{id}": "/jobs/%s", "/runs/{id}": "/runs/%s",
		} {
			w.call("beta/viewer", "GET", fmt.Sprintf(path, foreign[pattern]), nil).is(200)
		}
		job := into[Job](w.call("beta/viewer", "GET", "/jobs/"+foreign["/jobs/{id}"], nil))
		require.Equal(t, int64(1), job.Revision)
		require.Equal(t, "enabled", job.State)
		runs := into[web.Page[Run]](w.call("beta/viewer", "GET", "/runs", nil).is(200))
		require.Len(t, runs.Items, 1)
		require.Len(t, into[web.Page[access.User]](w.call("beta/admin", "GET", "/users", nil).is(200)).Items, 5)
		require.Len(t, into[web.Page[access.APIKey]](w.call("beta/admin", "GET", "/api-keys", nil).is(200)).Items, 1)
		tokens := w.call("beta/admin", "GET", "/executors/"+foreign["/executors/{id}"]+"/join-tokens", nil).is(200)
		require.Len(t, into[web.Page[access.JoinToken]](tokens).Items, 1)
	})
}

// TestListsShowOnlyTheOwnTenant asks the lists, with and without foreign ids
// as filters.
func TestListsShowOnlyTheOwnTenant(t *testing.T) {
	w := newWorld(t)
	w.objectsOf("acme")
	foreign := w.objectsOf("beta")
	for _, query := range []string{
		"/jobs?executorId=" + foreign["/executors/{id}"],
		"/runs?jobId=" + foreign["/jobs/{id}"],
		"/runs?executorId=" + foreign["/executors/{id}"],
		"/runs?instanceId=" + foreign["/instances/{id}"],
	} {
		a := w.call("acme/viewer", "GET", query, nil).is(200)
		require.Empty(t, into[web.Page[any]](a).Items, query)
	}
	for _, path := range append(listsOfAddOns(), "/jobs", "/runs", "/executors", "/overview", "/scripts", "/script-policy/history", "/retention/rules", "/run-purges") {
		a := w.call("acme/viewer", "GET", path, nil).is(200)
		for pattern, id := range foreign {
			require.NotContains(t, string(a.body), id, "%s shows %s of another tenant", path, pattern)
		}
	}
}

// TestNestedForeignIds puts foreign ids where the path has none.
func TestNestedForeignIds(t *testing.T) {
	w := newWorld(t)
	own, foreign := w.objectsOf("acme"), w.objectsOf("beta")
	other := w.executor("acme", "other")
	body := jobBody("thief", domain.Executor{})
	body["executor"] = map[string]any{"id": foreign["/executors/{id}"]}
	p := w.call("acme/editor", "POST", "/jobs", body).problem(404, "not_found")
	require.Equal(t, "body.executor.id", p.Errors[0].Location)
	p = w.call("acme/editor", "PUT", "/jobs/"+own["/jobs/{id}"], body, header{"If-Match": `"1"`}).problem(404, "not_found")
	require.Equal(t, "body.executor.id", p.Errors[0].Location)
	w.call("acme/operator", "POST", "/jobs/"+own["/jobs/{id}"]+"/run", map[string]any{"instanceId": foreign["/instances/{id}"]}).problem(404, "not_found")
	w.call("acme/admin", "DELETE", "/executors/"+other.ID.String()+"/join-tokens/"+own["/join-tokens/{tokenId}"], nil).problem(404, "not_found")
	w.call("acme/viewer", "POST", "/auth/tenant", map[string]any{"tenant": "beta"}).problem(403, "permission_denied")
	w.call("acme/viewer", "POST", "/auth/tenant", map[string]any{"tenant": w.tenants["beta"].String()}).problem(403, "permission_denied")
}

// TestMustChangePassword lets a user with a generated password do nothing else.
func TestMustChangePassword(t *testing.T) {
	w := newWorld(t)
	created := into[access.UserWithPassword](w.call("acme/admin", "POST", "/users", map[string]any{"username": "new", "role": "admin"}).is(201))
	require.NotEmpty(t, created.Password)
	login := into[Login](w.call("", "POST", "/auth/login", map[string]any{"username": "new", "password": created.Password}).is(200))
	require.True(t, login.User.MustChangePassword)
	w.bearers["new"] = login.AccessToken

	operations(w.api.Document(), func(method, path string, _ *huma.Operation) {
		if policy := w.api.Policies()[method+" "+path]; policy == "public" || policy == "authenticated" {
			return
		}
		at := strings.NewReplacer("{id}", "1", "{tokenId}", "1", "{revision}", "1").Replace(path)
		got := w.call("new", method, at, nil).problem(403, "permission_denied")
		require.Contains(t, got.Detail, "change your password")
	})
	require.True(t, into[Me](w.call("new", "GET", "/me", nil).is(200)).User.MustChangePassword)
	a := w.call("new", "POST", "/auth/password", map[string]any{"current": created.Password, "new": "chosen by myself"}).is(204)
	w.call("new", "GET", "/me", nil).problem(401, "unauthenticated")
	fresh := into[Login](w.call("", "POST", "/auth/refresh", nil, header{"Cookie": strings.Split(a.header.Get("Set-Cookie"), ";")[0]}).is(200))
	w.bearers["new"] = fresh.AccessToken
	w.call("new", "GET", "/jobs", nil).is(200)
}

// listsOfAddOns are the paths of the lists that add-ons have.
func listsOfAddOns() (paths []string) {
	for _, a := range addOns {
		paths = append(paths, a.lists...)
	}
	return paths
}
