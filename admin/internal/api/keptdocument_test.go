package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func executorDocumentBody(name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "carillon/v1", "kind": "Executor", "name": name, "spec": spec}
}

func tenantDocumentBody(name string, spec map[string]any) map[string]any {
	return map[string]any{"kind": "Tenant", "name": name, "spec": spec}
}

// documentsOf lists documents in the form that an apply takes.
func (w *world) documentsOf(who, list string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	for _, item := range into[web.Page[map[string]any]](w.call(who, "GET", "/"+list, nil).is(200)).Items {
		out = append(out, map[string]any{"kind": item["kind"], "name": item["name"], "spec": item["spec"]})
	}
	return out
}

// An executor, and jobs that name it, come in one request in any order.
func TestExecutorsAreDocuments(t *testing.T) {
	w := newWorld(t)
	shop := executorDocumentBody("shop", map[string]any{"description": "The shop", "maxRunning": 7, "callbacksTo": []string{"carillon", "bank"}})
	body := documentsBody(jobDocument("report", "shop"), shop)
	plan := w.planned("acme/editor", body)
	require.Equal(t, []any{2, 0, "create"}, []any{plan.Create, plan.Failed, plan.Items[1].Action})
	require.Equal(t, []string{"no_instance"}, codes(plan.Items[0].Warnings))
	body["plan"] = plan.ID
	done := w.applied("acme/editor", body)
	require.Equal(t, []int{2, 0}, []int{done.Create, done.Failed})
	detail := into[ExecutorDetail](w.call("acme/viewer", "GET", "/executors/"+done.Items[1].ID, nil).is(200))
	require.Equal(t, []any{"shop", "The shop", 7, int64(1)}, []any{detail.Name, detail.Description, detail.MaxRunning, detail.Version})

	require.Equal(t, []string{"bank", "carillon"}, detail.CallbacksTo)

	list := w.documentsOf("acme/viewer", "executor-documents")
	require.Len(t, list, 1)
	require.Equal(t, 1, w.planned("acme/editor", documentsBody(list...)).Same)
	w.bound("erin", "viewer", "shop")
	require.Len(t, w.documentsOf("erin", "executor-documents"), 1)
	require.Empty(t, w.documentsOf("beta/viewer", "executor-documents"))

	// A limit that somebody sets between plan and apply is seen, although it is no new version.
	change := documentsBody(executorDocumentBody("shop", map[string]any{"description": "Shops"}))
	plan = w.planned("acme/editor", change)
	require.Len(t, plan.Items[0].Changes, 3)
	w.call("acme/editor", "PUT", "/executors/"+done.Items[1].ID+"/limit", map[string]any{"maxRunning": 9}).is(200)
	change["plan"] = plan.ID
	w.call("acme/editor", "POST", "/apply", change).problem(409, "conflict")
	delete(change, "plan")
	require.Equal(t, 1, w.applied("acme/editor", change).Update)
	detail = into[ExecutorDetail](w.call("acme/viewer", "GET", "/executors/"+done.Items[1].ID, nil).is(200))
	require.Equal(t, []any{"Shops", 0, int64(2)}, []any{detail.Description, detail.MaxRunning, detail.Version})

	w.call("acme/editor", "PATCH", "/executors/"+done.Items[1].ID, map[string]any{"name": "shops"}, header{"If-Match": "*"}).is(200)
	for location, doc := range map[string]map[string]any{
		"body.documents[0].name":             executorDocumentBody("shop", map[string]any{}),
		"body.documents[0].labels":           {"kind": "Executor", "name": "new", "labels": map[string]any{"a": "b"}, "spec": map[string]any{}},
		"body.documents[0].spec.callbacksTo": executorDocumentBody("new", map[string]any{"callbacksTo": []string{"no name"}}),
		"body.documents[0].spec.maxRunning":  executorDocumentBody("new", map[string]any{"maxRunning": -1}),
	} {
		p := w.call("acme/editor", "POST", "/plan", documentsBody(doc)).problem(422, "validation_failed")
		require.Equal(t, location, p.Errors[0].Location)
	}
	w.call("acme/editor", "POST", "/plan", documentsBody(executorDocumentBody("carillon", map[string]any{}))).problem(422, "validation_failed")

	// By file an executor goes after its jobs, and not without them.
	gone := documentsBody(executorDocumentBody("shops", map[string]any{}))
	gone["delete"] = true
	w.call("acme/editor", "POST", "/apply", gone).problem(409, "in_use")
	gone = documentsBody(executorDocumentBody("shops", map[string]any{}), jobDocument("report", "shops"))
	gone["delete"] = true
	require.Equal(t, []int{0, 0, 2, 0, 0, 0, 0}, planView{w.applied("acme/editor", gone)}.counts())
	require.Empty(t, w.documentsOf("acme/viewer", "executor-documents"))
}

// A tenant keeps its own settings. Others, quotas and limits are for platform administrators.
func TestTenantsAreDocuments(t *testing.T) {
	w := newWorld(t)
	empty := w.documentsOf("acme/viewer", "tenant-documents")
	require.Equal(t, []map[string]any{{"kind": "Tenant", "name": "acme", "spec": map[string]any{}}}, empty)
	require.Equal(t, 1, w.planned("acme/editor", documentsBody(empty...)).Same)
	keeps := tenantDocumentBody("acme", map[string]any{"retention": map[string]any{"runDays": 30}})
	w.call("acme/editor", "POST", "/plan", documentsBody(keeps)).problem(403, "permission_denied")
	require.Equal(t, 1, w.applied("acme/admin", documentsBody(keeps)).Update)
	require.Equal(t, 1, w.applied("acme/editor", documentsBody(keeps)).Same)

	whole := tenantDocumentBody("acme", map[string]any{"maxRunning": 50, "quotas": map[string]any{"jobs": 0, "timers": 500}})
	for _, doc := range []map[string]any{whole, tenantDocumentBody("beta", map[string]any{}), tenantDocumentBody("nobody", map[string]any{})} {
		w.call("acme/admin", "POST", "/plan", documentsBody(doc)).problem(403, "permission_denied")
	}
	require.Equal(t, 1, w.applied("platform", documentsBody(whole)).Update)
	list := w.documentsOf("acme/viewer", "tenant-documents")
	raw, err := json.Marshal(list[0]["spec"])
	require.NoError(t, err)
	require.JSONEq(t, `{"maxRunning":50,"quotas":{"jobs":0,"timers":500}}`, string(raw))
	require.Equal(t, 1, w.planned("platform", documentsBody(list...)).Same)
	require.Equal(t, 1, w.applied("platform", documentsBody(empty...)).Update)
	require.Equal(t, empty, w.documentsOf("acme/viewer", "tenant-documents"), "quotas are the default again")

	fresh := documentsBody(tenantDocumentBody("fresh", map[string]any{"maxRunning": 3}))
	require.Equal(t, 1, w.applied("platform", fresh).Create)
	require.Equal(t, 1, w.planned("platform", fresh).Same)
	fresh["delete"] = true
	w.call("platform", "POST", "/apply", fresh).problem(409, "conflict")
	p := w.call("platform", "POST", "/plan", documentsBody(tenantDocumentBody("acme", map[string]any{"quotas": map[string]any{"job": 1}}))).problem(422, "validation_failed")
	require.Equal(t, "body.documents[0].spec.quotas.job", p.Errors[0].Location)
}

func kindNames(w *world, who string) (out []string) {
	for _, k := range into[web.Page[map[string]any]](w.call(who, "GET", "/kinds", nil).is(200)).Items {
		out = append(out, k["name"].(string))
	}
	return out
}

// Members are documents. The document of an account that is no member is an invitation.
func TestMembersAreDocuments(t *testing.T) {
	w := newWorld(t)
	require.NotContains(t, kindNames(w, "acme/editor"), "Member")
	require.Contains(t, kindNames(w, "acme/admin"), "Member")
	w.call("acme/editor", "GET", "/member-documents", nil).problem(403, "permission_denied")
	list := w.documentsOf("acme/admin", "member-documents")
	require.Greater(t, len(list), 3)
	all := documentsBody(list...)
	w.call("acme/editor", "POST", "/plan", all).problem(403, "permission_denied")
	require.Equal(t, len(list), w.planned("acme/admin", all).Same)

	member := func(name, role string, executors ...string) map[string]any {
		spec := map[string]any{"role": role}
		if len(executors) > 0 {
			spec["executors"] = executors
		}
		return map[string]any{"kind": "Member", "name": name, "spec": spec}
	}
	w.executor("acme", "shop")
	change := documentsBody(member("acme-viewer", "operator", "shop"), member("new.person", "viewer"))
	plan := w.planned("acme/admin", change)
	require.Equal(t, []any{1, 1, "spec.executors", "spec.role"}, []any{plan.Create, plan.Update, plan.Items[0].Changes[0].Path, plan.Items[0].Changes[1].Path})
	done := w.applied("acme/admin", change)
	require.Zero(t, done.Failed)
	require.Equal(t, 2, w.planned("acme/admin", change).Same)
	invited := into[web.Page[access.Invitation]](w.call("acme/admin", "GET", "/invitations", nil).is(200)).Items
	require.Len(t, invited, 1)
	require.Equal(t, [2]string{"new.person", "viewer"}, [2]string{invited[0].Username, invited[0].Role})
	w.call("acme/viewer", "GET", "/jobs", nil).is(200) // a new role, and the session stays

	// An invitation with another role takes the place of the old one.
	require.Equal(t, 1, w.applied("acme/admin", documentsBody(member("new.person", "editor"))).Update)
	invited = into[web.Page[access.Invitation]](w.call("acme/admin", "GET", "/invitations", nil).is(200)).Items
	require.Equal(t, []string{"editor"}, domain.Collect(invited, func(i *access.Invitation) string { return i.Role }))

	for location, doc := range map[string]map[string]any{
		"body.documents[0].name":           member("Some Body", "viewer"),
		"body.documents[0].spec.role":      member("x", "king"),
		"body.documents[0].spec.executors": member("x", "admin", "shop"),
	} {
		p := w.call("acme/admin", "POST", "/plan", documentsBody(doc)).problem(422, "validation_failed")
		require.Equal(t, location, p.Errors[0].Location)
	}
	w.call("acme/admin", "POST", "/plan", documentsBody(member("acme-admin", "viewer"))).problem(422, "validation_failed")
	require.Equal(t, 1, w.planned("acme/admin", documentsBody(member("acme-admin", "admin"))).Same)

	gone := documentsBody(member("acme-viewer", "viewer"), member("new.person", "viewer"))
	gone["delete"] = true
	require.Equal(t, []int{0, 0, 2, 0, 0, 0, 0}, planView{w.applied("acme/admin", gone)}.counts())
	require.Len(t, w.documentsOf("acme/admin", "member-documents"), len(list)-1)
	require.NotContains(t, w.documentsOf("beta/admin", "member-documents"), member("acme-editor", "editor"))
}

// Cells are documents of the cluster.
func TestCellsAreDocuments(t *testing.T) {
	w := newWorld(t)
	require.NotContains(t, kindNames(w, "acme/admin"), "Cell")
	require.Contains(t, kindNames(w, "platform"), "Cell")
	cell := func(url string) map[string]any {
		return map[string]any{"kind": "Cell", "name": "eu2", "spec": map[string]any{"url": url, "executors": []any{"eu2.example:9999"}}}
	}
	body := documentsBody(cell("https://eu2.example"))
	w.call("acme/admin", "POST", "/plan", body).problem(403, "permission_denied")
	w.call("acme/admin", "GET", "/cell-documents", nil).problem(403, "permission_denied")
	require.Equal(t, 1, w.applied("platform", body).Create)
	require.Equal(t, []map[string]any{cell("https://eu2.example")}, w.documentsOf("platform", "cell-documents"))
	require.Equal(t, 1, w.planned("platform", body).Same)
	plan := w.applied("platform", documentsBody(cell("https://eu3.example")))
	require.Equal(t, []any{1, "spec.url"}, []any{plan.Update, plan.Items[0].Changes[0].Path})
	p := w.call("platform", "POST", "/plan", documentsBody(cell("ftp://x"))).problem(422, "validation_failed")
	require.Equal(t, "body.documents[0].spec.url", p.Errors[0].Location)
	body["delete"] = true
	require.Equal(t, 1, w.applied("platform", body).Delete)
	require.Empty(t, w.documentsOf("platform", "cell-documents"))
}

// References in documents are names. An export of all kinds has no id of its tenant, and an apply
// of it to another tenant is followed by an empty plan. Only values of secrets are given anew.
func TestAnExportGoesToAnotherTenant(t *testing.T) {
	w := newWorld(t)
	named := func(kind string, body map[string]any) map[string]any {
		body["kind"] = kind
		return body
	}
	for _, tenant := range []string{"acme", "beta"} {
		w.allow(tenant, []string{"shell"}, false)
	}
	script := scriptBody("report", "shell", "echo 1\n", "first")
	w.applied("acme/scripter", documentsBody(script))
	body := documentsBody(
		eventRule("money", "channels", []any{"on call"}, "escalateTo", []any{"on call"}, "escalateAfter", "10m", "match", map[string]any{"executors": []any{"shop"}, "jobs": []any{"nightly", "report"}}),
		executorDocumentBody("shop", map[string]any{"maxRunning": 2, "callbacksTo": []any{"mail"}}), executorDocumentBody("mail", map[string]any{}),
		calendarDocument("cn", chinaSpec()), named("Connection", rabbit()), named("AlertChannel", dingTalk()),
		jobDocument("nightly", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}),
			with("onSuccess", map[string]any{"handler": "done", "executor": map[string]any{"name": "mail"}}),
			with("alert", map[string]any{"onFailure": true, "webhookUrl": "https://hooks.example/x", "webhookSecret": "s3cret"})),
		jobDocument("report", "shop", with("handler", "script.shell"), with("script", map[string]any{"name": "report"}), with("onFailure", "failed")),
	)
	body["allowUnknownHandler"] = true
	require.Zero(t, w.applied("acme/admin", body).Failed)

	var ids []string
	var export, scripts []any
	for _, k := range into[web.Page[apply.DocumentKind]](w.call("acme/admin", "GET", "/kinds", nil).is(200)).Items {
		count := 0
		for _, listed := range into[web.Page[map[string]any]](w.call("acme/admin", "GET", "/"+k.Path, nil).is(200)).Items {
			if k.Brief {
				listed = into[map[string]any](w.call("acme/admin", "GET", fmt.Sprintf("/%s/%s", k.Path, listed["id"]), nil).is(200))
			}
			ids = append(ids, listed["id"].(string))
			if count++; k.Name == "Tenant" || k.Name == "Member" {
				continue
			}
			written := map[string]any{"kind": k.Name, "name": listed["name"], "labels": listed["labels"], "spec": listed["spec"]}
			if listed["secrets"] != nil {
				written["secrets"] = map[string]any{"Connection": rabbit()["secrets"], "AlertChannel": dingTalk()["secrets"]}[k.Name]
			}
			if alert, is := listed["spec"].(map[string]any)["alert"].(map[string]any); is && alert["webhookSecret"] != nil {
				alert["webhookSecret"] = "another"
			}
			if k.Name == "Script" {
				scripts = append(scripts, written)
			} else {
				export = append(export, written)
			}
		}
		require.Positive(t, count, "there is no document of the kind %s", k.Name)
	}
	raw, err := json.Marshal(append(slices.Clone(export), scripts...))
	require.NoError(t, err)
	require.Greater(t, len(ids), 10)
	for _, id := range ids {
		require.NotContains(t, string(raw), id)
	}
	require.NotRegexp(t, "[0-9]{12}", string(raw), "a number like this is an id")

	require.Equal(t, 1, w.applied("beta/scripter", map[string]any{"documents": scripts}).Create)
	body = map[string]any{"documents": export, "allowUnknownHandler": true}
	done := w.applied("beta/admin", body)
	require.Equal(t, []any{len(export), 0}, []any{done.Create, done.Failed}, "%+v", done)
	plan := w.planned("beta/admin", body)
	require.Equal(t, []any{len(export), 0}, []any{plan.Same, plan.Failed}, "%+v", plan)
	require.Equal(t, 1, w.planned("beta/scripter", map[string]any{"documents": scripts}).Same)
}
