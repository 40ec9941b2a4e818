package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// jobDocument is a job as a document. change is as for jobBody, below spec.
func jobDocument(name, executor string, change ...func(map[string]any)) map[string]any {
	spec := map[string]any{
		"executor": map[string]any{"name": executor}, "handler": "reconcile",
		"schedule": map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"},
	}
	for _, c := range change {
		c(spec)
	}
	return map[string]any{"apiVersion": "carillon/v1", "kind": "Job", "name": name, "spec": spec}
}

func (w *world) planned(who string, body map[string]any) apply.Plan {
	w.t.Helper()
	return into[apply.Plan](w.call(who, "POST", "/plan", body).is(200))
}

func (w *world) applied(who string, body map[string]any) apply.Plan {
	w.t.Helper()
	return into[apply.Plan](w.call(who, "POST", "/apply", body).is(200))
}

// exported are the jobs of the caller's tenant as documents.
func (w *world) exported(who, query string) (out []map[string]any) {
	w.t.Helper()
	for cursor := ""; ; {
		page := into[web.Page[document.Answer]](w.call(who, "GET", "/job-documents?limit=3"+query+cursor, nil).is(200))
		for _, d := range page.Items {
			raw, err := json.Marshal(d)
			require.NoError(w.t, err)
			var one map[string]any
			require.NoError(w.t, json.Unmarshal(raw, &one))
			out = append(out, one)
		}
		if page.NextCursor == nil {
			return out
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

func codes(list []apply.PlanWarning) (out []string) {
	for _, w := range list {
		out = append(out, w.Code)
	}
	return out
}

func TestJobsArePlannedAndApplied(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	// A calendar of the same request is known to the jobs.
	body := documentsBody(
		jobDocument("close-day", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}), with("input", map[string]any{"id": json.Number("12345678901234567890")})),
		jobDocument("on-demand", "shop", with("schedule", map[string]any{"kind": "none"}), with("state", "paused")),
		calendarDocument("cn", chinaSpec()),
	)
	plan := w.planned("acme/editor", body)
	require.Equal(t, []any{3, 0, "create"}, []any{plan.Create, plan.Failed, plan.Items[0].Action})
	require.Len(t, plan.Items[0].Fires.After, 3)
	require.Equal(t, []string{"no_instance"}, codes(plan.Items[0].Warnings))
	require.Nil(t, plan.Items[1].Fires)
	w.call("acme/viewer", "GET", "/jobs/by-name/close-day", nil).problem(404, "not_found")

	changed := w.changed
	body["plan"] = plan.ID
	done := w.applied("acme/editor", body)
	require.Equal(t, []any{3, 0, int64(1)}, []any{done.Create, done.Failed, done.Items[0].Version})
	require.Greater(t, w.changed, changed)
	job := into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/close-day", nil).is(200))
	require.Equal(t, []any{e.ID.String(), "cn", int64(1)}, []any{job.Executor.ID, job.Schedule.Calendars[0].Name, job.Revision})
	require.Contains(t, string(job.Input), "12345678901234567890")
	require.Equal(t, "paused", into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/on-demand", nil).is(200)).State)

	delete(body, "plan")
	again := w.applied("acme/editor", body)
	require.Equal(t, []any{3, 0}, []any{again.Same, again.Update}, "nothing is written: %+v", again.Items)
	require.Equal(t, int64(1), into[Job](w.call("acme/viewer", "GET", "/jobs/"+job.ID, nil).is(200)).Revision)

	// A change shows its fields and its effect on fire times.
	w.instance(e, "one", "reconcile")
	change := documentsBody(jobDocument("close-day", "shop", with("schedule.expr", "30 3 * * *"), with("priority", 5)))
	plan = w.planned("acme/editor", change)
	item := plan.Items[0]
	var paths []string
	for _, c := range item.Changes {
		paths = append(paths, c.Path)
	}
	require.Equal(t, []string{"spec.input", "spec.priority", "spec.schedule.calendarDays", "spec.schedule.calendars", "spec.schedule.expr"}, paths)
	require.Equal(t, []any{"update", int64(1)}, []any{item.Action, item.Version})
	require.NotEqual(t, item.Fires.Before, item.Fires.After)
	require.Empty(t, item.Warnings)

	// Another person was quicker.
	w.call("acme/editor", "PUT", "/jobs/"+job.ID, jobBody("close-day", e), header{"If-Match": "*"}).is(200)
	change["plan"] = plan.ID
	w.call("acme/editor", "POST", "/apply", change).problem(409, "conflict")
	delete(change, "plan")
	done = w.applied("acme/editor", change)
	require.Equal(t, []any{1, int64(3)}, []any{done.Update, done.Items[0].Version})
}

// An apply of the listed jobs changes nothing.
func TestExportedJobsAreTheSame(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile", "other")
	w.call("acme/editor", "POST", "/calendars", map[string]any{"name": "cn", "spec": chinaSpec()}).is(201)
	w.job("acme", "webhook", e, with("alert", map[string]any{"webhookUrl": "https://hooks.example/x", "webhookSecret": "s3cret", "emails": []any{"a@b.example"}}))
	w.job("acme", "rate", e, with("schedule", map[string]any{"kind": "fixed_rate", "every": "90s"}), with("labels", map[string]any{"team": "pay"}))
	w.job("acme", "days", e, with("schedule.calendars", []any{map[string]any{"name": "cn"}}), with("schedule.jitter", "30s"))
	w.job("acme", "shards", e, with("sharding", map[string]any{"mode": "fixed", "shards": 4, "after": "other"}), with("state", "paused"))
	w.job("acme", "all", e, with("misfire", map[string]any{"policy": "all"}), with("sendRetry", map[string]any{"maxSends": 3}), with("owner", map[string]any{"name": "Anna"}))
	list := w.exported("acme/editor", "")
	require.Len(t, list, 5)
	raw, err := json.Marshal(list)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "s3cret")
	require.NotContains(t, string(raw), e.ID.String(), "references are names")
	plan := w.planned("acme/editor", documentsBody(list...))
	require.Equal(t, 5, plan.Same, "%+v", plan.Items)

	// A secret is compared, and a fingerprint stands for the stored one only.
	for i, d := range list {
		if d["name"] != "webhook" {
			continue
		}
		alert := d["spec"].(map[string]any)["alert"].(map[string]any)
		fingerprint := alert["webhookSecret"]
		alert["webhookSecret"] = "s3cret"
		require.Equal(t, 1, w.planned("acme/editor", documentsBody(d)).Same)
		alert["webhookSecret"] = "another"
		item := w.planned("acme/editor", documentsBody(d)).Items[0]
		require.Equal(t, "spec.alert.webhookSecret", item.Changes[0].Path)
		require.NotContains(t, string(item.Changes[0].After), "another")
		alert["webhookSecret"] = fingerprint
		other := maps.Clone(list[i])
		other["name"] = "copy"
		p := w.call("acme/editor", "POST", "/plan", documentsBody(other)).problem(422, "validation_failed")
		require.Equal(t, "body.documents[0].spec.alert.webhookSecret", p.Errors[0].Location)
	}

	// A change of a calendar in the same request shows its effect on a job that stays.
	spec := chinaSpec()
	spec["blackouts"] = []any{map[string]any{"from": time.Now().UTC().Format(time.RFC3339), "to": time.Now().UTC().AddDate(0, 1, 0).Format(time.RFC3339)}}
	days := slicesFind(list, "days")
	plan = w.planned("acme/editor", documentsBody(calendarDocument("cn", spec), days))
	require.Equal(t, "same", plan.Items[1].Action)
	require.NotEqual(t, plan.Items[1].Fires.Before, plan.Items[1].Fires.After)
	require.Equal(t, 1, w.applied("acme/editor", documentsBody(calendarDocument("cn", spec), days)).Update)

	w.bound("bound", "viewer", "shop")
	w.executor("acme", "other")
	require.Len(t, w.exported("bound", ""), 5)
	w.bound("elsewhere", "viewer", "other")
	require.Empty(t, w.exported("elsewhere", ""))
}

func slicesFind(list []map[string]any, name string) map[string]any {
	for _, d := range list {
		if d["name"] == name {
			return d
		}
	}
	return nil
}

func TestMistakesInJobDocuments(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	p := w.call("acme/editor", "POST", "/apply", documentsBody(
		jobDocument("good", "shop"),
		jobDocument("cron", "shop", with("schedule.expr", "0 61 * * *")),
		jobDocument("nobody", "nowhere"),
		jobDocument("handler", "shop", with("handler", "recon")),
		jobDocument("calendar", "shop", with("schedule.calendars", []any{map[string]any{"name": "none"}})),
		jobDocument("call:x", "shop"),
		jobDocument("after", "shop", with("schedule", map[string]any{"kind": "once", "after": "5m"})),
		jobDocument("field", "shop", with("prio", 3)),
	)).problem(422, "validation_failed")
	var at []string
	for _, e := range p.Errors {
		at = append(at, e.Location)
	}
	require.Equal(t, []string{
		"body.documents[1].spec.schedule.expr", "body.documents[2].spec.executor.name", "body.documents[3].spec.handler", "body.documents[4].spec.schedule.calendars[0]",
		"body.documents[5].name", "body.documents[6].spec.schedule.after", "body.documents[7].spec.prio",
	}, at)
	w.call("acme/viewer", "GET", "/jobs/by-name/good", nil).problem(404, "not_found")
	lenient := documentsBody(jobDocument("handler", "shop", with("handler", "recon")))
	lenient["allowUnknownHandler"] = true
	require.Equal(t, 1, w.applied("acme/editor", lenient).Create)
}

// Code that decides about a job is asked before, or not at all.
func TestJobsOfCodeAreTakenOver(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	for _, own := range []domain.Ownership{domain.OwnedUntilEdited, domain.OwnedByCode} {
		name := "job-" + string(own)
		job := w.declare(e, name, own)
		v, err := w.store.FindJob(t.Context(), w.tenants["acme"], mustID[domain.JobID](t, job.ID))
		require.NoError(t, err)
		_, err = w.store.UpdateJob(t.Context(), store.UpdateJobParams{Tenant: v.TenantID, ID: v.ID, Spec: v.Spec, Source: domain.SourceCode, Next: timing.Next})
		require.NoError(t, err)
		body := documentsBody(jobDocument(name, "shop", with("priority", 7)))
		plan := w.planned("acme/editor", body)
		require.Equal(t, 1, plan.Failed)
		require.Contains(t, plan.Items[0].Error, "shop")
		w.call("acme/editor", "POST", "/apply", body).problem(409, "owned_by_code")
		body["takeOver"] = true
		plan = w.planned("acme/editor", body)
		if own == domain.OwnedByCode {
			require.Equal(t, 1, plan.Failed, "only the code can change it")
			w.call("acme/editor", "POST", "/apply", body).problem(409, "owned_by_code")
			continue
		}
		require.Equal(t, []string{"takes_over"}, codes(plan.Items[0].Warnings))
		require.Equal(t, 1, w.applied("acme/editor", body).Update)
		require.Equal(t, "console", into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/"+name, nil).is(200)).Source)
	}
	require.Len(t, w.exported("acme/editor", ""), 1, "what was taken over")
	require.Len(t, w.exported("acme/editor", "&declared=true"), 2)
}

// The plan of a paused job says that it does not fire at the times that it shows.
func TestPlanOfAPausedJob(t *testing.T) {
	w := newWorld(t)
	w.executor("acme", "shop")
	daily := jobDocument("daily", "shop", with("schedule", map[string]any{"kind": "cron", "expr": "0 2 * * *"}), with("state", "paused"))
	require.True(t, w.planned("acme/editor", documentsBody(daily)).Items[0].Fires.Paused)
	w.applied("acme/editor", documentsBody(daily))
	later := documentsBody(jobDocument("daily", "shop", with("schedule", map[string]any{"kind": "cron", "expr": "0 3 * * *"})))
	require.True(t, w.planned("acme/editor", later).Items[0].Fires.Paused)
	id := into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/daily", nil).is(200)).ID
	w.call("acme/operator", "POST", "/jobs/"+id+"/resume", nil).is(200)
	require.False(t, w.planned("acme/editor", later).Items[0].Fires.Paused)
}

func TestManyFiresInOneSecond(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	stored, more := []map[string]any{}, []map[string]any{}
	for i := range 301 {
		d := jobDocument(fmt.Sprintf("job %03d", i), "shop", with("priority", 1))
		if stored = append(stored, d); i < 150 {
			more = append(more, jobDocument(fmt.Sprintf("job %03d", i), "shop"))
		}
	}
	plan := w.planned("acme/editor", documentsBody(stored...))
	require.Equal(t, []string{"many_fires"}, codes(plan.Items[0].Warnings))
	require.Contains(t, plan.Items[0].Warnings[0].Text, "301 jobs")
	require.Equal(t, 300, w.applied("acme/editor", documentsBody(stored[:300]...)).Create)
	require.Empty(t, w.planned("acme/editor", documentsBody(more...)).Items[0].Warnings, "jobs that change are counted once")
	plan = w.planned("acme/editor", documentsBody(append(more, stored[300])...))
	require.Equal(t, []string{"many_fires"}, codes(plan.Items[0].Warnings))
	require.Contains(t, plan.Items[0].Warnings[0].Text, "301 jobs of the tenant, 151")
}

// Production applies the export of staging, with other values and the same names.
func TestJobsGoFromStagingToProduction(t *testing.T) {
	w := newWorld(t)
	for _, tenant := range []string{"acme", "beta"} {
		w.instance(w.executor(tenant, "shop"), "one-"+tenant, "reconcile")
	}
	w.call("acme/editor", "POST", "/calendars", map[string]any{"name": "cn", "spec": chinaSpec()}).is(201)
	w.applied("acme/editor", documentsBody(
		jobDocument("close-day", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}})), jobDocument("report", "shop", with("state", "paused"))))
	list := append(w.exported("acme/editor", ""), into[map[string]any](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200)))
	plan := w.planned("beta/editor", documentsBody(list...))
	require.Equal(t, []any{3, 0}, []any{plan.Create, plan.Failed})
	require.Equal(t, 3, w.applied("beta/editor", documentsBody(list...)).Create)
	require.Equal(t, 3, w.planned("beta/editor", documentsBody(list...)).Same)
	there := w.exported("beta/editor", "")
	require.Len(t, there, 2)
	for i := range there {
		require.Equal(t, list[i]["spec"], there[i]["spec"])
		require.NotEqual(t, list[i]["id"], there[i]["id"])
	}
	require.Equal(t, "paused", slicesFind(there, "report")["status"].(map[string]any)["state"])
}

// Names are read together: an apply of many jobs does not ask for each.
func TestManyJobDocuments(t *testing.T) {
	w := newWorld(t)
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	list := func(priority int) map[string]any {
		var out []map[string]any
		for i := range 1000 {
			out = append(out, jobDocument(fmt.Sprintf("job %04d", i), "shop", with("schedule.expr", fmt.Sprintf("%d %d * * *", i%60, i%24)), with("priority", priority)))
		}
		return documentsBody(out...)
	}
	timed := func(what string, body map[string]any) apply.Plan {
		begin := time.Now()
		p := w.planned("acme/editor", body)
		planned := time.Since(begin)
		body["plan"] = p.ID
		p = w.applied("acme/editor", body)
		t.Logf("%s: plan %v, plan and apply %v", what, planned.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
		return p
	}
	require.Equal(t, 1000, timed("1000 new jobs", list(1)).Create)
	require.Equal(t, 1000, timed("1000 jobs that stay", list(1)).Same)
	require.Equal(t, 1000, timed("1000 jobs that change", list(2)).Update)
}

func (p planView) counts() []int {
	return []int{p.Create, p.Update, p.Delete, p.Same, p.Join, p.Left, p.Failed}
}

type planView struct{ apply.Plan }

// A set has the documents of its applies. Pruning deletes those that the last apply did not
// hold, and no others.
func TestSetsArePruned(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	w.job("acme", "by hand", e)
	body := func(change map[string]any, list ...map[string]any) map[string]any {
		out := documentsBody(list...)
		maps.Copy(out, change)
		return out
	}
	shop := map[string]any{"set": "shop"}
	prune := map[string]any{"set": "shop", "prune": true}
	cn, days, report := calendarDocument("cn", chinaSpec()), jobDocument("days", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}})), jobDocument("report", "shop")
	plan := planView{w.applied("acme/editor", body(shop, days, report, cn))}
	require.Equal(t, []int{3, 0, 0, 0, 3, 0, 0}, plan.counts(), "all join")
	require.Equal(t, []int{0, 0, 0, 1, 0, 2, 0}, planView{w.planned("acme/editor", body(shop, report))}.counts(), "others stay")

	// The plan names what it deletes, and guards it.
	pruning := body(prune, report)
	plan = planView{w.planned("acme/editor", pruning)}
	require.Equal(t, []int{0, 0, 2, 1, 0, 0, 0}, plan.counts())
	require.Equal(t, []string{"delete Job days", "delete Calendar cn"}, []string{
		plan.Items[1].Action + " " + plan.Items[1].Kind + " " + plan.Items[1].Name, plan.Items[2].Action + " " + plan.Items[2].Kind + " " + plan.Items[2].Name,
	}, "jobs go before the calendars that they use")
	w.applied("acme/editor", documentsBody(jobDocument("days", "shop")))
	pruning["plan"] = plan.ID
	w.call("acme/editor", "POST", "/apply", pruning).problem(409, "conflict")
	delete(pruning, "plan")
	require.Equal(t, []int{0, 0, 2, 1, 0, 0, 0}, planView{w.applied("acme/editor", pruning)}.counts())
	w.call("acme/viewer", "GET", "/jobs/by-name/days", nil).problem(404, "not_found")
	w.call("acme/viewer", "GET", "/calendars/cn", nil).problem(404, "not_found")
	w.call("acme/viewer", "GET", "/jobs/by-name/by%20hand", nil).is(200)
	require.Equal(t, []int{0, 0, 0, 1, 0, 0, 0}, planView{w.planned("acme/editor", pruning)}.counts())

	// Another set takes a document over. A document that is deleted leaves its set.
	require.Equal(t, 1, w.planned("acme/editor", body(map[string]any{"set": "other"}, report)).Join)
	w.applied("acme/editor", body(map[string]any{"set": "other"}, report))
	require.Equal(t, []int{1, 0, 0, 0, 1, 0, 0}, planView{w.planned("acme/editor", body(prune, jobDocument("new", "shop")))}.counts())
	job := into[Job](w.call("acme/viewer", "GET", "/jobs/by-name/report", nil).is(200))
	w.call("acme/editor", "DELETE", "/jobs/"+job.ID, nil).is(204)
	w.applied("acme/editor", body(map[string]any{"set": "other"}, jobDocument("new", "shop")))
	left, err := w.store.ListDocumentSet(t.Context(), w.tenants["acme"], "other")
	require.NoError(t, err)
	require.Len(t, left, 1)
	w.call("acme/editor", "POST", "/plan", body(map[string]any{"prune": true}, report)).problem(422, "validation_failed")
	other, err := w.store.ListDocumentSet(t.Context(), w.tenants["beta"], "other")
	require.NoError(t, err)
	require.Empty(t, other)
}

func TestDocumentsAreDeletedByFile(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	cn := calendarDocument("cn", chinaSpec())
	days := jobDocument("days", "shop", with("schedule.calendars", []any{map[string]any{"name": "cn"}}))
	w.applied("acme/editor", documentsBody(cn, days))
	body := documentsBody(cn, days, jobDocument("never there", "shop"))
	body["delete"] = true
	w.call("acme/viewer", "POST", "/plan", body).problem(403, "permission_denied")
	plan := planView{w.planned("acme/editor", body)}
	require.Equal(t, []int{0, 0, 2, 1, 0, 0, 0}, plan.counts())
	body["plan"] = plan.ID
	require.Equal(t, []int{0, 0, 2, 1, 0, 0, 0}, planView{w.applied("acme/editor", body)}.counts())
	w.call("acme/viewer", "GET", "/jobs/by-name/days", nil).problem(404, "not_found")
	w.call("acme/editor", "POST", "/apply", body).problem(409, "conflict")

	w.declare(e, "of code", domain.OwnedByCode)
	body = documentsBody(map[string]any{"kind": "Job", "name": "of code"})
	body["delete"] = true
	require.Equal(t, 1, w.planned("acme/editor", body).Failed)
	w.call("acme/editor", "POST", "/apply", body).problem(409, "owned_by_code")
}
