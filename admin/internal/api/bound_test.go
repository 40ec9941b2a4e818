package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// keptToExecutors are the operations that those may ask for whose role is bound to executors,
// and that keep to these. A new operation needs a line here or in wholeTenant.
var keptToExecutors = strings.Fields(`
	accept-proposal backfill-job call-handler cancel-backfill cancel-call cancel-run cancel-timer cancel-timers count-fires count-jobs count-timers create-job
	create-jobs decline-proposal delete-job download-run-log drain-instance executor-statistics explain-fire explain-run get-backfill
	get-call get-executor get-instance get-job get-job-by-name get-job-declaration get-job-retention get-proposal get-run get-run-log
	get-timer get-timer-cancellation give-job-back job-statistics list-all-instances list-backfills list-executors list-handlers
	list-deleted-jobs list-executor-documents list-instances list-job-documents list-job-events list-jobs list-kinds list-overdue list-proposals list-revisions list-run-parts list-runs list-timers
	next-fires overview pause-job preview-schedule put-job reschedule-timer restore-job resume-job retry-run run-job search set-job-retention set-timer
	set-timers sum-timers switch-tenant tenant-statistics try-callback undrain-instance update-job`)

// wholeTenant are the operations that need their right in the whole tenant.
var wholeTenant = strings.Fields(`
	acknowledge-alert-incident apply-documents cancel-bulk cancel-run-purge create-alert-channel create-alert-rule
	create-alert-silence create-api-key create-bulk create-calendar create-connection create-denial create-executor
	create-invitation create-join-token create-script create-user delete-alert-channel delete-alert-rule delete-calendar
	delete-connection delete-denial delete-executor delete-invitation delete-script delete-user diff-script disable-executor
	enable-executor end-alert-silence end-executor-maintenance end-tenant-maintenance get-alert-channel get-alert-incident
	get-alert-rule get-alert-settings get-alert-silence get-bulk get-calendar get-calendar-version get-callback-secret get-cluster
	get-connection get-kind-schema get-retention get-run-purge get-script get-script-key get-script-policy get-script-version import-calendar
	list-alert-channels list-alert-incident-events list-alert-incidents list-alert-rules list-alert-silences list-api-keys
	list-audit-entries list-bulk list-bulk-items list-calendar-jobs list-calendar-versions list-calendars list-connections
	list-deleted-alert-channels list-deleted-alert-rules list-deleted-calendars list-deleted-connections list-deleted-executors list-deleted-scripts
	list-deliveries list-denials list-invitations list-join-tokens list-limits list-maintenance list-member-documents list-nodes list-quotas
	list-retention list-tenant-documents list-run-purges list-script-jobs list-script-policies list-script-versions list-scripts list-users plan-documents
	preview-alert-channel purge-runs remove-former-name remove-instance resolve-alert-incident restore-alert-channel
	restore-alert-rule restore-calendar restore-connection restore-executor restore-script retry-bulk revoke-api-key revoke-join-token
	set-executor-limit set-retention start-executor-maintenance start-samples start-tenant-maintenance test-alert-channel test-connection
	update-alert-channel update-alert-rule update-alert-settings update-calendar update-connection update-executor update-script
	update-user verify-audit-log`)

// bound gives an account of acme a role that is bound to executors.
func (w *world) bound(who, role string, executors ...string) {
	w.t.Helper()
	u := into[access.UserWithPassword](w.call("acme/admin", "POST", "/users", map[string]any{
		"username": who, "role": role, "executors": executors, "password": peerPassword,
	}).is(201))
	require.Equal(w.t, executors, u.Executors)
	w.bearers[who] = into[Login](w.call("", "POST", "/auth/login", map[string]any{"username": who, "password": peerPassword, "tenant": "acme"}).is(200)).AccessToken
}

// boundPrincipals are all kinds of callers that are bound to the executor shop of acme.
func (w *world) boundPrincipals() map[string]domain.Permission {
	out := map[string]domain.Permission{}
	for _, role := range []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleEditor} {
		w.bound("bound-"+string(role), string(role), "shop")
		out["bound-"+string(role)] = role.Permissions()
	}
	for _, role := range []string{"caller", "timer", "viewer", "manager", "caller+timer+manager"} {
		w.key("key "+role, role, "shop")
		out["key "+role] = domain.Role(role).Permissions()
	}
	return out
}

// TestRoutesTimesBoundRights binds callers to one executor. They call every operation with the
// objects of another executor of the same tenant.
func TestRoutesTimesBoundRights(t *testing.T) {
	w := newWorld(t)
	own := w.objectsOf("acme")
	outside := w.objectsIn("acme", w.executor("acme", "bank"), "secret")
	principals := w.boundPrincipals()
	decided := 0
	operations(w.api.Document(), func(method, path string, op *huma.Operation) {
		perm := permissionsIn(w.api.Policies()[method+" "+path])
		if perm == 0 {
			return // everybody's, the account owner's or a platform administrator's
		}
		kept := slices.Contains(keptToExecutors, op.OperationID)
		require.NotEqual(t, kept, slices.Contains(wholeTenant, op.OperationID), "decide in bound_test.go what %s does for those who are bound to executors", op.OperationID)
		require.Equal(t, kept, op.Extensions["x-in-executors"] == true, op.OperationID)
		decided++
		w.run(t, op.OperationID, func(t *testing.T) {
			for who, has := range principals {
				do := func(at string) answer {
					return w.call(who, method, at+matrixQuery[path], matrixBody(method, path), header{"If-Match": "*"})
				}
				switch {
				case has&perm != perm:
					do(fill(path, own, nil, -1)).problem(http.StatusForbidden, "permission_denied")
				case !kept:
					p := do(fill(path, own, nil, -1)).problem(http.StatusForbidden, "permission_denied")
					require.Contains(t, p.Detail, "is bound to the executors shop and does not allow this (it needs ", who)
				case strings.Contains(path, "{"):
					there := do(fill(path, outside, nil, -1)).problem(http.StatusNotFound, "not_found")
					if strings.Contains(path, "{id}") {
						missing := do(strings.ReplaceAll(path, "{id}", "999")).problem(http.StatusNotFound, "not_found")
						require.Equal(t, strings.ReplaceAll(missing.Detail, "999", "ID"), strings.ReplaceAll(there.Detail, idIn(path, outside), "ID"), who)
					}
				}
			}
		})
	})
	require.Equal(t, len(keptToExecutors)+len(wholeTenant), decided)
}

// idIn is the id that fill puts into a path.
func idIn(path string, from objects) string {
	for pattern, id := range from {
		if strings.Contains(path, pattern) && strings.HasSuffix(pattern, "{id}") {
			return id
		}
	}
	return ""
}

// TestBoundListsShowOnlyTheirExecutors asks the lists and sums.
func TestBoundListsShowOnlyTheirExecutors(t *testing.T) {
	w := newWorld(t)
	own := w.objectsIn("acme", w.executor("acme", "shop"), "nightly")
	outside := w.objectsIn("acme", w.executor("acme", "bank"), "secret")
	w.bound("reader", "viewer", "shop")
	unused := w.executor("acme", "unused")
	w.bound("nobody", "viewer", "unused")
	w.call("acme/admin", "DELETE", "/executors/"+unused.ID.String(), nil, header{"If-Match": "*"}).is(204)
	foreign := "?executorId=" + outside["/executors/{id}"]
	for _, path := range []string{
		"/jobs", "/jobs?sort=nextFireAt", "/jobs?sort=updatedAt", "/jobs?sort=failures", "/jobs?state=failing", "/jobs/counts?groupBy=executor", "/jobs?kind=all", "/jobs" + foreign, "/runs", "/runs?state=succeeded", "/runs?cause=manual", "/runs" + foreign, "/runs?jobId=" + outside["/jobs/{id}"],
		"/runs?instanceId=" + outside["/instances/{id}"], "/runs?q=secret", "/executors", "/instances", "/job-proposals", "/job-proposals" + foreign, "/jobs/overdue", "/overview", "/statistics",
		"/search?q=secret", "/search?q=bank", "/search?q=" + outside["/jobs/{id}"][:2],
	} {
		for _, who := range []string{"reader", "nobody"} {
			a := w.call(who, "GET", path, nil).is(200)
			for pattern, id := range outside {
				if strings.Contains(pattern, "{id}") || pattern == "/by-name/{name}" {
					require.NotContains(t, string(a.body), id, "%s shows %s of another executor", path, pattern)
				}
			}
		}
	}
	for path, id := range map[string]string{"/jobs": own["/jobs/{id}"], "/runs": own["/runs/{id}"], "/executors": own["/executors/{id}"], "/instances": own["/instances/{id}"], "/job-proposals": own["/job-proposals/{id}"]} {
		require.Contains(t, string(w.call("reader", "GET", path, nil).body), id)
		require.Empty(t, into[web.Page[any]](w.call("nobody", "GET", path, nil).is(200)).Items, path)
	}
	all, mine := into[Overview](w.call("acme/viewer", "GET", "/overview", nil)), into[Overview](w.call("reader", "GET", "/overview", nil))
	require.Equal(t, int64(2), all.Runs24h.Succeeded)
	require.Equal(t, int64(1), mine.Runs24h.Succeeded)
	require.Equal(t, 2, all.Jobs.Enabled)
	require.Equal(t, 1, mine.Jobs.Enabled)
	require.Equal(t, 1, mine.Executors.Online)
	require.Len(t, mine.NextFires, 1)
	require.Equal(t, int64(2), into[Statistics](w.call("acme/viewer", "GET", "/statistics", nil)).Total.Runs)
	require.Equal(t, int64(1), into[Statistics](w.call("reader", "GET", "/statistics", nil)).Total.Runs)
	require.Zero(t, into[Statistics](w.call("nobody", "GET", "/statistics", nil)).Total.Runs)
}

// TestBoundRightsEndAndFollow changes what a right is bound to.
func TestBoundRightsEndAndFollow(t *testing.T) {
	w := newWorld(t)
	own := w.objectsIn("acme", w.executor("acme", "shop"), "nightly")
	outside := w.objectsIn("acme", w.executor("acme", "bank"), "secret")
	w.bound("reader", "viewer", "shop")
	read := func(of objects) answer { return w.call("reader", "GET", "/jobs/"+of["/jobs/{id}"], nil) }
	read(own).is(200)
	me := into[Me](w.call("reader", "GET", "/me", nil).is(200))
	require.Equal(t, []string{"shop"}, me.Executors)
	require.Equal(t, []string{"read"}, me.Permissions)

	// The name of an executor changes, and the right stays.
	w.call("acme/admin", "PATCH", "/executors/"+own["/executors/{id}"], map[string]any{"name": "store"}, header{"If-Match": "*"}).is(200)
	user := "/users/" + me.User.ID
	w.call("acme/admin", "PATCH", user, map[string]any{"disabled": false}).is(200) // forgets what is cached of the user
	read(own).is(200)

	w.call("acme/admin", "PATCH", user, map[string]any{"executors": []string{"bank"}}).is(200)
	read(own).problem(404, "not_found")
	read(outside).is(200)
	p := w.call("acme/admin", "PATCH", user, map[string]any{"role": "admin"}).problem(422, "validation_failed")
	require.Equal(t, "body.executors", p.Errors[0].Location)
	w.call("acme/admin", "PATCH", user, map[string]any{"role": "admin", "executors": []string{}}).is(200)
	read(own).is(200)
	w.call("reader", "GET", "/api-keys", nil).is(200)
	w.call("acme/admin", "POST", "/users", map[string]any{"username": "x", "role": "viewer", "executors": []string{"a b"}}).problem(422, "validation_failed")

	// The right of a key ends with that of its maker.
	made := into[access.CreatedAPIKey](w.call("reader", "POST", "/api-keys", map[string]any{"name": "k", "role": "caller+editor"}).is(201))
	w.bearers["made"] = made.Secret
	w.call("made", "GET", "/jobs/"+own["/jobs/{id}"], nil).is(200)
	w.call("acme/admin", "PATCH", user, map[string]any{"role": "viewer", "executors": []string{"bank"}}).is(200)
	w.call("made", "GET", "/jobs/"+own["/jobs/{id}"], nil).problem(404, "not_found")
	w.call("made", "GET", "/jobs/"+outside["/jobs/{id}"], nil).is(200)
	w.call("made", "POST", "/jobs/"+outside["/jobs/{id}"]+"/pause", nil).problem(403, "permission_denied")
}

// TestAnApplicationManagesItsOwnJobs: those of its executor, by their names.
func TestAnApplicationManagesItsOwnJobs(t *testing.T) {
	w := newWorld(t)
	shop, bank := w.executor("acme", "shop"), w.executor("acme", "bank")
	w.objectsIn("acme", shop, "nightly")
	outside := w.objectsIn("acme", bank, "secret")
	w.key("app", "caller+timer+manager", "shop")
	put := func(name string, e domain.Executor, change ...func(map[string]any)) answer {
		return w.call("app", "PUT", "/jobs/by-name/"+name, jobBody(name, e, change...))
	}
	job := into[Job](put("mine", shop).is(201))
	require.Equal(t, job.ID, into[Job](w.call("app", "GET", "/jobs/by-name/mine", nil).is(200)).ID)
	again := into[Job](put("mine", shop).is(200))
	require.Equal(t, []any{job.ID, int64(1)}, []any{again.ID, again.Revision}, "the same request is the same job")
	changed := into[Job](put("mine", shop, func(b map[string]any) { b["timeout"] = "1m" }).is(200))
	require.Equal(t, []any{job.ID, int64(2)}, []any{changed.ID, changed.Revision})
	p := w.call("app", "PUT", "/jobs/by-name/other", jobBody("mine", shop)).problem(422, "validation_failed")
	require.Equal(t, "body.name", p.Errors[0].Location)
	for _, step := range []string{"pause", "resume"} {
		w.call("app", "POST", "/jobs/"+job.ID+"/"+step, nil).is(200)
	}
	run := into[Run](w.call("app", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	w.call("app", "GET", "/runs/"+run.ID, nil).is(200)
	w.call("app", "DELETE", "/jobs/"+job.ID, nil).is(204)
	w.call("app", "GET", "/jobs/by-name/mine", nil).problem(404, "not_found")
	require.Equal(t, int64(1), into[Job](put("mine", shop).is(201)).Revision)

	require.Equal(t, "body.executor.id", put("theirs", bank).problem(404, "not_found").Errors[0].Location)
	put("secret", shop).problem(409, "conflict")
	w.call("acme/editor", "PUT", "/jobs/by-name/secret", jobBody("secret", shop)).problem(409, "conflict")
	require.Equal(t, int64(1), into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/secret", nil).is(200)).Revision)
	w.call("app", "GET", "/jobs/by-name/secret", nil).problem(404, "not_found")
	for _, body := range []map[string]any{jobBody("x", bank), {"name": "x", "executor": map[string]any{"name": "bank"}, "handler": "reconcile", "schedule": map[string]any{"kind": "none"}}} {
		w.call("app", "POST", "/jobs", body).problem(404, "not_found")
		batch := into[JobBatch](w.call("app", "POST", "/jobs/batch", map[string]any{"items": []any{body}}).is(200))
		require.Equal(t, 404, batch.Items[0].Status)
	}
	w.call("app", "PUT", "/jobs/"+into[Job](w.call("app", "GET", "/jobs/by-name/mine", nil)).ID, jobBody("mine", bank), header{"If-Match": "*"}).problem(404, "not_found")
	w.call("app", "PUT", "/jobs/"+outside["/jobs/{id}"], jobBody("mine", shop), header{"If-Match": "*"}).problem(404, "not_found")
	w.call("app", "POST", "/timers", map[string]any{"executor": "bank", "handler": "reconcile", "after": "1h"}).problem(404, "not_found")
	w.call("app", "POST", "/timers", map[string]any{"executor": "shop", "handler": "reconcile", "after": "1h"}).is(201)
	w.call("app", "POST", "/calls", callBody("shop", nil)).is(201)
	w.call("app", "POST", "/calls", callBody("bank", nil)).problem(404, "not_found")
}
