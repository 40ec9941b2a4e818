package api

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/bulk"
	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

type m = map[string]any

// bulk asks for an operation, and lets a worker do it.
func (w *world) bulk(who string, body m) bulk.BulkOperation {
	w.t.Helper()
	o := w.worked(into[bulk.BulkOperation](w.call(who, "POST", "/bulk", body).is(202)))
	require.Equal(w.t, "done", o.State)
	return o
}

func done(o bulk.BulkOperation) []int64 { return []int64{o.Done, o.Skipped, o.Failed} }

func TestBulkAsksForTheCount(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	for _, name := range []string{"close-day", "close-week", "report"} {
		w.job("acme", name, e)
	}
	w.job("beta", "close-month", w.executor("beta", "shop"))
	body := m{"action": "pause", "filter": m{"name": "close-*"}, "note": "audit", "dryRun": true}
	dry := into[bulk.BulkOperation](w.call("acme/operator", "POST", "/bulk", body).is(200))
	require.Equal(t, []any{"dry_run", int64(2), "", "close-day"}, []any{dry.State, dry.Total, dry.ID, dry.Items[0].Name})
	require.Empty(t, into[web.Page[bulk.BulkOperation]](w.call("acme/viewer", "GET", "/bulk", nil).is(200)).Items, "nothing was written")
	delete(body, "dryRun")
	p := w.call("acme/operator", "POST", "/bulk", body).problem(422, "validation_failed")
	require.Contains(t, p.Detail, "2 items match now")
	body["expected"] = 3
	p = w.call("acme/operator", "POST", "/bulk", body).problem(409, "count_mismatch")
	require.Equal(t, int64(2), *p.Count)
	body["expected"] = 2
	before := w.changed
	o := w.bulk("acme/operator", body)
	require.Greater(t, w.changed, before, "the scheduler looks")
	require.Equal(t, []int64{2, 0, 0}, done(o))
	require.Equal(t, "acme-operator", o.CreatedBy)
	job := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?name=CLOSE-d*", nil).is(200)).Items[0]
	require.Equal(t, []any{"paused", "audit", "acme-operator via bulk " + o.ID}, []any{job.State, job.PauseNote, job.PausedBy})

	mine := w.bulk("acme/operator", m{"action": "resume", "filter": m{"state": "paused"}, "anyCount": true})
	require.Equal(t, []int64{2, 0, 0}, done(mine), "the same person has paused them")
	w.call("acme/operator", "POST", "/bulk/"+o.ID+"/cancel", nil).problem(409, "already_finished")
	w.call("acme/operator", "POST", "/bulk/"+o.ID+"/retry", nil).problem(409, "conflict")
	open := into[bulk.BulkOperation](w.call("acme/operator", "POST", "/bulk", m{"action": "pause", "anyCount": true}).is(202))
	w.call("acme/operator", "POST", "/bulk/"+open.ID+"/retry", nil).problem(409, "conflict")
	stopped := into[bulk.BulkOperation](w.call("acme/operator", "POST", "/bulk/"+open.ID+"/cancel", nil).is(200))
	require.Equal(t, []any{"cancelled", "cancelled by acme-operator"}, []any{stopped.State, stopped.Message})
	require.Equal(t, "cancelled", w.worked(stopped).State)
	list := into[web.Page[bulk.BulkOperation]](w.call("acme/viewer", "GET", "/bulk?limit=2", nil).is(200))
	require.Equal(t, []string{open.ID, mine.ID}, []string{list.Items[0].ID, list.Items[1].ID})
	require.NotNil(t, list.NextCursor)
}

func TestBulkNeedsTheRightOfItsAction(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.job("acme", "nightly", e)
	for _, body := range []m{
		{"action": "delete"}, {"action": "label", "labels": m{"a": "b"}}, {"action": "set-owner", "owner": m{"name": "pay"}},
	} {
		body["anyCount"] = true
		p := w.call("acme/operator", "POST", "/bulk", body).problem(403, "permission_denied")
		require.Contains(t, p.Detail, "edit")
		body["dryRun"] = true
		w.call("acme/operator", "POST", "/bulk", body).problem(403, "permission_denied")
	}
	w.call("acme/viewer", "POST", "/bulk", m{"action": "pause", "anyCount": true}).problem(403, "permission_denied")
	declared := w.declare(e, "of-code", domain.OwnedByCode)
	o := w.bulk("acme/editor", m{"action": "delete", "filter": m{"ids": []string{declared.ID}}, "expected": 1})
	require.Equal(t, []int64{0, 0, 1}, done(o))
	items := into[web.Page[bulk.BulkItem]](w.call("acme/viewer", "GET", "/bulk/"+o.ID+"/items?outcome=failed", nil).is(200)).Items
	require.Equal(t, []any{"of-code", "failed", "owned_by_code"}, []any{items[0].Name, items[0].Outcome, items[0].Code})
	w.call("acme/operator", "POST", "/bulk/"+o.ID+"/retry", nil).problem(403, "permission_denied")
	again := w.worked(into[bulk.BulkOperation](w.call("acme/editor", "POST", "/bulk/"+o.ID+"/retry", nil).is(202)))
	require.Equal(t, []any{int64(1), int64(1), o.ID}, []any{again.Total, again.Failed, again.RetryOf})
}

func TestBulkRefusesWhatDoesNotBelongToTheAction(t *testing.T) {
	w := newWorld(t)
	for location, body := range map[string]m{
		"body.all":                 {"action": "pause", "all": true},
		"body.pausedBy":            {"action": "pause", "pausedBy": "7"},
		"body.labels":              {"action": "label"},
		"body.labels.a":            {"action": "label", "labels": m{"a": "\x01"}},
		"body.removeLabels":        {"action": "run", "removeLabels": []string{"a"}},
		"body.owner":               {"action": "set-owner"},
		"body.owner.email":         {"action": "set-owner", "owner": m{"email": "nobody"}},
		"body.duringMaintenance":   {"action": "cancel", "duringMaintenance": true},
		"body.note":                {"action": "pause", "note": "a\x07"},
		"body.filter.state":        {"action": "retry", "filter": m{"state": "running"}},
		"body.filter.jobId":        {"action": "pause", "filter": m{"jobId": "7"}},
		"body.filter.ids":          {"action": "cancel", "filter": m{"ids": []string{"7"}}},
		"body.filter.executorId":   {"action": "pause", "filter": m{"executorId": "x"}},
		"body.filter.label":        {"action": "pause", "filter": m{"label": "a:b"}},
		"body.action":              {"action": "explode"},
		"body.filter.fingerprint":  {"action": "retry", "filter": m{"fingerprint": "7"}},
		"body.filter.from":         {"action": "cancel", "filter": m{"from": "yesterday"}},
		"body.filter.unknownField": {"action": "pause", "filter": m{"unknownField": "x"}},
	} {
		body["anyCount"] = true
		p := w.call("acme/editor", "POST", "/bulk", body).problem(422, "validation_failed")
		require.Equal(t, location, p.Errors[0].Location, "%v", body)
	}
}

func TestBulkRunsRetriesAndCancels(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job, other := w.job("acme", "nightly", e, with("labels", m{"team": "pay"})), w.job("acme", "weekly", e)
	failed := w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "the Ledger is locked"})
	w.ran("acme", other, domain.Report{Outcome: domain.OutcomeFailed, Error: "no route"})
	w.ran("acme", job, domain.Report{Outcome: domain.OutcomeSucceeded})
	require.Len(t, into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?error=ledger", nil).is(200)).Items, 1)

	retried := w.bulk("acme/operator", m{"action": "retry", "filter": m{"error": "ledger", "label": "team=pay"}, "expected": 1, "note": "moved"})
	require.Equal(t, []int64{1, 0, 0}, done(retried))
	runs := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?cause=retry", nil).is(200)).Items
	require.Len(t, runs, 1)
	require.Equal(t, []any{"retry of run " + failed.ID.String() + ": moved", "acme-operator via bulk " + retried.ID, "due"}, []any{runs[0].Note, runs[0].RequestedBy, runs[0].State})
	all := w.bulk("acme/operator", m{"action": "retry", "filter": m{"state": "failed"}, "expected": 2})
	require.Equal(t, []int64{1, 1, 0}, done(all), "one of them was retried")
	items := into[web.Page[bulk.BulkItem]](w.call("acme/viewer", "GET", "/bulk/"+all.ID+"/items", nil).is(200)).Items
	require.Equal(t, []any{failed.ID.String(), "nightly", "skipped", "retried_already", "bulk operation " + retried.ID + " has retried it as run " + runs[0].ID}, []any{items[0].ID, items[0].Name, items[0].Outcome, items[0].Code, items[0].Message})

	key := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", m{"name": "ci", "role": "operator"}).is(201))
	w.bearers["ci"] = key.Secret
	began := w.bulk("ci", m{"action": "run", "filter": m{"executorId": e.ID.String()}, "expected": 2})
	require.Equal(t, []int64{2, 0, 0}, done(began))
	byKey := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?cause=api", nil).is(200)).Items
	require.Len(t, byKey, 2)
	require.Equal(t, "key:ci via bulk "+began.ID, byKey[0].RequestedBy)

	cancelled := w.bulk("acme/operator", m{"action": "cancel", "filter": m{"name": "week*"}, "expected": 2, "note": "not today"})
	require.Equal(t, []int64{2, 0, 0}, done(cancelled))
	left := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?jobId="+other.ID+"&state=cancelled", nil).is(200)).Items
	require.Len(t, left, 2)
	require.Equal(t, "cancelled by acme-operator via bulk "+cancelled.ID+": not today", left[0].Message)
	require.Equal(t, []int64{2, 0, 0}, done(w.bulk("acme/operator", m{"action": "cancel", "anyCount": true})), "those of the other job")
}

// The runs with an error are all of them, not one of each hour as in the list.
func TestBulkRetriesTheRunsWithAnError(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e)
	first := w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "order 1 is lost"})
	w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "order 2 is lost"})
	w.ran("acme", job, domain.Report{Outcome: domain.OutcomeFailed, Error: "no route"})
	run := into[RunDetail](w.call("acme/viewer", "GET", "/runs/"+first.ID.String(), nil).is(200))
	require.Len(t, run.Fingerprint, 16)
	require.Equal(t, "1.2.3", run.Version)
	o := w.bulk("acme/operator", m{"action": "retry", "filter": m{"jobId": job.ID, "fingerprint": run.Fingerprint}, "expected": 2})
	require.Equal(t, []int64{2, 0, 0}, done(o))
	require.Equal(t, run.Fingerprint, o.Filter.Fingerprint)
}

// A disabled executor refuses its jobs, and the rest goes on.
func TestBulkGoesOnAfterARefusal(t *testing.T) {
	w := newWorld(t)
	e, off := w.executor("acme", "shop"), w.executor("acme", "mail")
	w.job("acme", "nightly", e)
	w.job("acme", "letters", off)
	w.call("acme/editor", "POST", "/executors/"+off.ID.String()+"/disable", m{}).is(200)
	o := w.bulk("acme/operator", m{"action": "run", "expected": 2})
	require.Equal(t, []int64{1, 0, 1}, done(o))
	items := into[web.Page[bulk.BulkItem]](w.call("acme/viewer", "GET", "/bulk/"+o.ID+"/items", nil).is(200)).Items
	require.Equal(t, []any{"", "executor_disabled"}, []any{items[0].Name, items[0].Code})
}

// A retry of many does nothing the second time, also if the retries have failed.
func TestRetriesAreNotRetriedAgain(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	locked := domain.Report{Outcome: domain.OutcomeFailed, Error: "locked"}
	w.ran("acme", w.job("acme", "nightly", e), locked)
	order := m{"action": "retry", "filter": m{"error": "locked"}, "anyCount": true}
	require.Equal(t, []int64{1, 0, 0}, done(w.bulk("acme/operator", order)))
	retry := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?cause=retry", nil).is(200)).Items[0]
	w.ends("acme", retry.ID, locked)
	require.Equal(t, []int64{0, 1, 0}, done(w.bulk("acme/operator", order)))
	order["filter"] = m{"error": "locked", "cause": "retry"}
	require.Equal(t, []int64{1, 0, 0}, done(w.bulk("acme/operator", order)), "unless it is asked for")
}

// A pause with an end makes the operation that resumes its jobs.
func TestAPauseHasAnEnd(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.job("acme", "close-day", e)
	until := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	o := w.bulk("acme/operator", m{"action": "pause", "anyCount": true, "note": "audit", "until": until.Format(time.RFC3339)})
	require.Equal(t, []any{web.Instant(until), "audit"}, []any{*o.Until, o.Note})
	job := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs", nil).is(200)).Items[0]
	require.Equal(t, "until "+until.Format("2006-01-02 15:04:05Z")+", by bulk operation "+o.ResumedBy+": audit", job.PauseNote)
	then := into[bulk.BulkOperation](w.call("acme/viewer", "GET", "/bulk/"+o.ResumedBy, nil).is(200))
	require.Equal(t, []any{"resume", "waiting", web.Instant(until)}, []any{then.Action, then.State, *then.StartsAt})
	require.Equal(t, "waiting", w.worked(then).State, "it is not its time")
	w.call("acme/operator", "POST", "/bulk/"+then.ID+"/cancel", nil).is(200)
	for field, body := range map[string]m{
		"body.until": {"action": "pause", "anyCount": true, "until": "2020-01-01T00:00:00Z"},
	} {
		p := w.call("acme/operator", "POST", "/bulk", body).problem(422, "validation_failed")
		require.Equal(t, field, p.Errors[0].Location)
	}
	p := w.call("acme/operator", "POST", "/bulk", m{"action": "resume", "anyCount": true, "until": until.Format(time.RFC3339)}).problem(422, "validation_failed")
	require.Contains(t, p.Errors[0].Message, "is of the action pause")
	p = w.call("acme/operator", "POST", "/bulk", m{"action": "pause", "anyCount": true, "until": until.AddDate(2, 0, 0).Format(time.RFC3339)}).problem(422, "validation_failed")
	require.Contains(t, p.Errors[0].Message, "366 days")
}

// A selector that no job can meet is refused wherever one is taken.
func TestSelectorsThatNothingMeets(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.job("acme", "gold", e, with("labels", m{"team": "pay", "tier": "gold"}))
	w.job("acme", "iron", e, with("labels", m{"team": "pay", "tier": "iron"}))
	both := url.QueryEscape("team=pay,team=ops")
	for _, path := range []string{"/jobs?label=", "/runs?label=", "/fires?label="} {
		p := w.call("acme/viewer", "GET", path+both, nil).problem(422, "validation_failed")
		require.Contains(t, p.Errors[0].Message, "write team in (pay, ops)", path)
		w.call("acme/viewer", "GET", path+url.QueryEscape("team in (pay, ops),tier!=iron"), nil).is(200)
	}
	p := w.call("acme/operator", "POST", "/bulk", m{"action": "pause", "anyCount": true, "filter": m{"label": "team=pay,team=ops"}}).problem(422, "validation_failed")
	require.Equal(t, "body.filter.label", p.Errors[0].Location)
	w.call("acme/editor", "POST", "/jobs", jobBody("never", e, with("requireLabels", "zone=a,zone=b"))).problem(422, "validation_failed")
	w.call("acme/editor", "POST", "/alert-rules", eventRule("never", "match", m{"labels": "team=pay,team=ops"})).problem(422, "validation_failed")
	for label, want := range map[string][]string{
		"team=pay": {"gold", "iron"}, "team=pay,tier=gold": {"gold"}, "tier in (gold, iron)": {"gold", "iron"}, "tier!=gold": {"iron"}, "tier,!team": {}, "!tier": {},
	} {
		jobs := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?label="+url.QueryEscape(label), nil).is(200)).Items
		require.ElementsMatch(t, want, domain.Collect(jobs, func(j *Job) string { return j.Name }), label)
	}
}
