package api

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// documentsBody is the body of a plan and of an apply.
func documentsBody(list ...map[string]any) map[string]any {
	return map[string]any{"documents": list}
}

func calendarDocument(name string, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "carillon/v1", "kind": "Calendar", "name": name, "spec": spec}
}

func TestDocumentsArePlannedAndApplied(t *testing.T) {
	w := newWorld(t)
	body := documentsBody(calendarDocument("cn", chinaSpec()), calendarDocument("de", map[string]any{}))
	w.call("acme/viewer", "POST", "/plan", body).problem(403, "permission_denied")
	plan := into[apply.Plan](w.call("acme/editor", "POST", "/plan", body).is(200))
	require.Equal(t, []any{2, 0, 0, "create", int64(0)}, []any{plan.Create, plan.Update, plan.Same, plan.Items[0].Action, plan.Items[0].Version})
	w.call("acme/viewer", "GET", "/calendars/cn", nil).problem(404, "not_found")

	body["plan"] = plan.ID
	done := into[apply.Plan](w.call("acme/editor", "POST", "/apply", body).is(200))
	require.Equal(t, []any{2, 0, int64(1)}, []any{done.Create, done.Failed, done.Items[1].Version})
	w.call("acme/editor", "POST", "/apply", body).problem(409, "conflict")
	delete(body, "plan")
	again := into[apply.Plan](w.call("acme/editor", "POST", "/apply", body).is(200))
	require.Equal(t, []any{2, 0}, []any{again.Same, again.Update}, "nothing is written")
	require.Equal(t, int64(1), into[calendarAnswer](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200)).Version)

	spaced := documentsBody(calendarDocument(" cn ", chinaSpec()))
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", spaced).is(200)).Same, "spaces around a name do not make another one")

	// An answer of the API can be applied, and is the same.
	stored := into[map[string]any](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200))
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(stored)).is(200)).Same)

	spec := chinaSpec()
	spec["zone"], spec["holidays"] = "Asia/Hong_Kong", []any{map[string]any{"date": "2026-10-01", "name": "国庆节"}}
	delete(spec, "description")
	change := documentsBody(calendarDocument("cn", spec))
	plan = into[apply.Plan](w.call("acme/editor", "POST", "/plan", change).is(200))
	require.Equal(t, []string{"spec.description", "spec.holidays", "spec.zone"}, []string{plan.Items[0].Changes[0].Path, plan.Items[0].Changes[1].Path, plan.Items[0].Changes[2].Path})
	require.JSONEq(t, `"Asia/Shanghai"`, string(plan.Items[0].Changes[2].Before))
	require.Empty(t, plan.Items[0].Changes[0].After)

	// Another person was quicker.
	w.call("acme/editor", "PUT", "/calendars/cn", chinaDays(), header{"If-Match": "*"}).is(200)
	change["plan"] = plan.ID
	w.call("acme/editor", "POST", "/apply", change).problem(409, "conflict")
	require.Equal(t, int64(2), into[calendarAnswer](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200)).Version)

	kinds := into[web.Page[apply.DocumentKind]](w.call("acme/viewer", "GET", "/kinds", nil).is(200))
	require.Contains(t, kinds.Items, apply.DocumentKind{Name: "Calendar", Path: "calendars", APIVersion: "carillon/v1", Brief: true, Literal: []string{}})
}

// All mistakes of all documents are told at once, and nothing is written.
// The plan of a deletion refuses what the deletion refuses, unless the users go along.
func TestPlanOfADeletionLooksAtUsers(t *testing.T) {
	w := newWorld(t)
	w.job("acme", "nightly", w.executor("acme", "shop"))
	doc := func(kind, name string) map[string]any {
		return map[string]any{"kind": kind, "name": name, "spec": map[string]any{}}
	}
	calendar := doc("Calendar", "cn")
	job := map[string]any{"kind": "Job", "name": "monthly", "spec": map[string]any{
		"executor": map[string]any{"name": "shop"}, "handler": "h", "schedule": map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "UTC", "calendars": []any{map[string]any{"name": "cn"}}},
	}}
	w.call("acme/editor", "POST", "/apply", map[string]any{"documents": []any{calendar, job}, "allowUnknownHandler": true}).is(200)
	plan := func(documents ...any) []string {
		answer := into[apply.Plan](w.call("acme/editor", "POST", "/plan", map[string]any{"documents": documents, "delete": true}).is(200))
		var errs []string
		for _, item := range answer.Items {
			errs = append(errs, item.Error)
		}
		require.Equal(t, len(documents)-len(slices.DeleteFunc(slices.Clone(errs), func(e string) bool { return e == "" })), answer.Delete)
		return errs
	}
	require.Equal(t, []string{`the executor "shop" has 2 jobs; delete or stop them first, or take them along: carillon executor delete shop --jobs --instances`}, plan(doc("Executor", "shop")))
	require.Equal(t, []string{`the calendar "cn" is used by the job "monthly"; remove it there first`}, plan(calendar))
	got := into[document.Answer](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200))
	require.Equal(t, 1, got.UsedBy.Count)
	require.Equal(t, "Job monthly", got.UsedBy.First[0].Kind+" "+got.UsedBy.First[0].Name)
	require.ElementsMatch(t, []string{"", "", "", ""}, plan(doc("Executor", "shop"), calendar, job, doc("Job", "nightly")))
}

func TestMistakesInDocuments(t *testing.T) {
	w := newWorld(t)
	good := calendarDocument("good", map[string]any{})
	p := w.call("acme/editor", "POST", "/apply", documentsBody(
		good,
		map[string]any{"kind": "Siren", "name": "x", "spec": map[string]any{}},
		calendarDocument("zone", map[string]any{"zone": "Mars/Base"}),
		calendarDocument("unknown", map[string]any{"holiday": 1}),
		calendarDocument("good", map[string]any{}),
		map[string]any{"kind": "Calendar", "apiVersion": "carillon/v9", "name": "x", "spec": map[string]any{}},
		calendarDocument("77", map[string]any{}),
		calendarDocument("both", map[string]any{"holidayz": []any{}, "zone": "Mars/Base"}), // an unknown field hides no other mistake
		jobDocument("nightly", "shop", with("schedule", map[string]any{"kind": "cron", "cron": "0 2 * * *"}), with("timeout", "banana")),
	)).problem(422, "validation_failed")
	var at []string
	for _, e := range p.Errors {
		at = append(at, e.Location)
	}
	require.Equal(t, []string{
		"body.documents[1].kind", "body.documents[2].spec.zone", "body.documents[3].spec.holiday", "body.documents[4].name", "body.documents[5].apiVersion", "body.documents[6].name",
		"body.documents[7].spec.holidayz", "body.documents[7].spec.zone", "body.documents[8].spec.schedule.cron", "body.documents[8].spec.executor.name", "body.documents[8].spec.timeout", "body.documents[8].spec.schedule.expr",
	}, at)
	require.Equal(t, `did you mean "holidays"?`, p.Errors[6].Hint)
	require.Contains(t, p.Errors[8].Hint, "known here: ")
	require.Contains(t, p.Errors[8].Hint, "expr")
	require.Regexp(t, "use Tenant, Executor, Calendar, ", p.Errors[0].Message)
	w.call("acme/viewer", "GET", "/calendars/good", nil).problem(404, "not_found")
}
