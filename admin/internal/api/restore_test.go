package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

func (w *world) deletedJobs(who string) []DeletedJob {
	w.t.Helper()
	return into[web.Page[DeletedJob]](w.call(who, "GET", "/deleted-jobs", nil).is(200)).Items
}

// Each way to delete a job leaves one that can be restored: by request, by file, by the pruning of
// a set, and with its executor. The document is the same as before.
func TestDeletedJobsAreRestored(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.call("acme/editor", "POST", "/calendars", map[string]any{"name": "cn", "spec": chinaSpec()}).is(201)
	body := documentsBody(
		jobDocument("asked", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}), with("alert", map[string]any{"webhookUrl": "https://hooks.example/x", "webhookSecret": "s3cret"})),
		jobDocument("filed", "shop", with("state", "paused")), jobDocument("pruned", "shop", with("onFailure", "failed")),
	)
	body["allowUnknownHandler"], body["set"] = true, "shop"
	require.Equal(t, 3, w.applied("acme/editor", body).Create)
	before := w.exported("acme/editor", "")
	ids := map[string]string{}
	for _, d := range before {
		ids[d["name"].(string)] = d["id"].(string)
	}

	w.call("acme/editor", "DELETE", "/jobs/"+ids["asked"], nil).is(204)
	file := documentsBody(jobDocument("filed", "shop"))
	file["delete"] = true
	require.Equal(t, 1, w.applied("acme/editor", file).Delete)
	rest := documentsBody(executorDocumentBody("shop", map[string]any{"description": "d", "maxRunning": 2}))
	rest["set"], rest["prune"] = "shop", true
	require.Equal(t, 1, w.applied("acme/editor", rest).Delete)
	gone := w.deletedJobs("acme/viewer")
	require.Len(t, gone, 3)
	require.Equal(t, []any{"pruned", ids["pruned"], "shop", int64(1), "acme-editor"}, []any{gone[0].Name, gone[0].ID, gone[0].Executor, gone[0].Version, gone[0].DeletedBy})
	require.Empty(t, w.deletedJobs("beta/viewer"))

	w.call("acme/operator", "POST", "/jobs/"+ids["asked"]+"/restore", nil).problem(403, "permission_denied")
	w.call("beta/editor", "POST", "/jobs/"+ids["asked"]+"/restore", nil).problem(404, "not_found")
	w.call("acme/editor", "POST", "/jobs/7/restore", nil).problem(404, "not_found")
	for name, id := range ids {
		back := into[Job](w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).is(200))
		require.Equal(t, []any{name, id, int64(2)}, []any{back.Name, back.ID, back.Revision})
		w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).problem(404, "not_found")
	}
	require.Empty(t, w.deletedJobs("acme/viewer"))
	after := w.exported("acme/editor", "")
	require.Len(t, after, 3)
	for i := range after {
		require.Equal(t, before[i]["spec"], after[i]["spec"])
		require.Equal(t, before[i]["status"].(map[string]any)["state"], after[i]["status"].(map[string]any)["state"])
	}
	again := documentsBody(before...)
	again["allowUnknownHandler"] = true
	require.Equal(t, 3, w.planned("acme/editor", again).Same)

	// With its executor, which comes first.
	w.call("acme/admin", "DELETE", "/executors/"+shop.ID.String()+"?jobs=delete&instances=end", nil).is(204)
	require.Len(t, w.deletedJobs("acme/viewer"), 3)
	p := w.call("acme/editor", "POST", "/jobs/"+ids["asked"]+"/restore", nil).problem(409, "conflict")
	require.Contains(t, p.Detail, `the job "asked" cannot be restored as it was: `)
	require.Contains(t, p.Detail, "shop")
	executors := into[web.Page[DeletedExecutor]](w.call("acme/viewer", "GET", "/deleted-executors", nil).is(200)).Items
	require.Len(t, executors, 1)
	require.Equal(t, []string{"shop", shop.ID.String()}, []string{executors[0].Name, executors[0].ID})
	w.call("acme/operator", "POST", "/executors/"+shop.ID.String()+"/restore", nil).problem(403, "permission_denied")
	w.call("beta/editor", "POST", "/executors/"+shop.ID.String()+"/restore", nil).problem(404, "not_found")
	require.Equal(t, "shop", into[Executor](w.call("acme/editor", "POST", "/executors/"+shop.ID.String()+"/restore", nil).is(200)).Name)
	for _, id := range ids {
		w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).is(200)
	}
	again["documents"] = append(again["documents"].([]map[string]any), executorDocumentBody("shop", map[string]any{"description": "d", "maxRunning": 2}))
	require.Equal(t, 4, w.planned("acme/editor", again).Same, "with the limit of the executor")
}

// A restored job needs the documents that it names, as in an apply. The refusal names a missing
// one. A new one of the same name will do.
func TestWhatARestoredJobNeeds(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.call("acme/editor", "POST", "/calendars", map[string]any{"name": "cn", "spec": chinaSpec()}).is(201)
	w.executor("acme", "mail")
	body := documentsBody(jobDocument("nightly", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}),
		with("onSuccess", map[string]any{"handler": "done", "executor": map[string]any{"name": "mail"}})))
	body["allowUnknownHandler"] = true
	id := w.applied("acme/editor", body).Items[0].ID
	w.call("acme/editor", "DELETE", "/jobs/"+id, nil).is(204)
	w.call("acme/editor", "DELETE", "/calendars/cn", nil).is(204)
	remove := documentsBody(executorDocumentBody("mail", map[string]any{}))
	remove["delete"] = true
	require.Equal(t, 1, w.applied("acme/editor", remove).Delete)

	p := w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).problem(409, "conflict")
	require.Contains(t, p.Detail, "onSuccess.executor")
	w.executor("acme", "mail")
	mail := into[web.Page[DeletedExecutor]](w.call("acme/viewer", "GET", "/deleted-executors", nil).is(200)).Items[0]
	w.call("acme/editor", "POST", "/executors/"+mail.ID+"/restore", nil).problem(409, "conflict")
	there := into[web.Page[Executor]](w.call("acme/viewer", "GET", "/executors?q=mail", nil).is(200)).Items[0]
	w.call("acme/admin", "DELETE", "/executors/"+there.ID, nil).is(204)
	w.call("acme/editor", "POST", "/executors/"+mail.ID+"/restore", nil).is(200)
	p = w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).problem(409, "conflict")
	require.Contains(t, p.Detail, "cn")
	w.call("acme/editor", "POST", "/calendars", map[string]any{"name": "cn", "spec": chinaSpec()}).is(201)

	// Another job has taken the name.
	other := w.job("acme", "nightly", shop)
	w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).problem(409, "conflict")
	w.call("acme/editor", "DELETE", "/jobs/"+other.ID, nil).is(204)
	require.Equal(t, "enabled", into[Job](w.call("acme/editor", "POST", "/jobs/"+id+"/restore", nil).is(200)).State)
	require.Equal(t, 1, w.planned("acme/editor", body).Same)
}

// Callers that are bound to executors see and restore the jobs of these. A rule that names the job
// names it again.
func TestBoundCallersRestoreTheirJobs(t *testing.T) {
	w := newWorld(t)
	shop, other := w.executor("acme", "shop"), w.executor("acme", "other")
	mine, theirs := w.job("acme", "mine", shop), w.job("acme", "theirs", other)
	w.bound("bea", "editor", "shop")
	rule := eventRule("money", "match", map[string]any{"jobs": []any{"mine"}})
	w.call("acme/editor", "POST", "/alert-rules", rule).is(201)
	for _, id := range []string{mine.ID, theirs.ID} {
		w.call("acme/editor", "DELETE", "/jobs/"+id, nil).is(204)
	}
	require.Equal(t, []string{"mine (deleted)"}, into[alertRule](w.call("acme/viewer", "GET", "/alert-rules/money", nil).is(200)).Spec.Match.Jobs)
	gone := w.deletedJobs("bea")
	require.Len(t, gone, 1)
	require.Equal(t, "mine", gone[0].Name)
	w.call("bea", "POST", "/jobs/"+theirs.ID+"/restore", nil).problem(404, "not_found")
	w.call("bea", "GET", "/deleted-executors", nil).problem(403, "permission_denied")
	w.call("bea", "POST", "/jobs/"+mine.ID+"/restore", nil).is(200)
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(rule)).is(200)).Same)
}
