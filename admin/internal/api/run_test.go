package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestRunNow(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	i := w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e, with("input", map[string]any{"a": 1}), with("retry.maxAttempts", 3))
	path := "/jobs/" + job.ID + "/run"
	before := time.Now().Truncate(time.Millisecond)
	run := into[Run](w.call("acme/operator", "POST", path, nil).is(201))
	require.Equal(t, "due", run.State)
	require.Equal(t, "manual", run.Cause)
	require.Equal(t, "acme-operator", run.RequestedBy)
	require.Equal(t, 3, run.MaxAttempts)
	require.Equal(t, "nightly", run.JobName)
	require.Equal(t, "shop", run.Executor.Name)
	require.Len(t, w.runner.submitted, 1)
	sent := w.runner.submitted[0]
	require.Equal(t, run.ID, sent.ID.String())
	require.WithinRange(t, sent.FireAt, before, time.Now())
	require.Equal(t, sent.FireAt, sent.NotBefore)
	require.Equal(t, sent.FireAt.Add(5*time.Minute), sent.ExpireAt)
	require.Nil(t, sent.Input, "the revision's own")

	own := into[Run](w.call("acme/operator", "POST", path, map[string]any{"input": map[string]any{"n": 1}, "note": "by hand", "instanceId": i.ID.String()}).is(201))
	require.Equal(t, "by hand", own.Note)
	require.Equal(t, i.ID, w.runner.submitted[1].Instance)
	require.JSONEq(t, `{"n":1}`, string(w.runner.submitted[1].Input))

	key := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "ci", "role": "operator"}).is(201))
	w.bearers["ci"] = key.Secret
	byKey := into[Run](w.call("ci", "POST", path, nil).is(201))
	require.Equal(t, "api", byKey.Cause)
	require.Equal(t, "key:ci", byKey.RequestedBy)
}

func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	job, other := w.job("acme", "nightly", e), w.job("acme", "weekly", e)
	h := header{"Idempotency-Key": "order-4711"}
	path := "/jobs/" + job.ID + "/run"
	first := into[Run](w.call("acme/operator", "POST", path, map[string]any{"note": "n", "input": json.RawMessage(`{"a": 1, "b": 2}`)}, h).is(201))
	second := into[Run](w.call("acme/operator", "POST", path, map[string]any{"input": json.RawMessage(`{"b":2,"a":1}`), "note": "n"}, h).is(200))
	require.Equal(t, first.ID, second.ID)
	for _, body := range []any{
		nil, map[string]any{"note": "n"}, map[string]any{"note": "n", "input": map[string]any{"a": 1, "b": 3}},
		map[string]any{"note": "n", "input": map[string]any{"a": 1, "b": 2}, "after": "1h"},
	} {
		p := w.call("acme/operator", "POST", path, body, h).problem(422, "idempotency_key_reused")
		require.Equal(t, "header.Idempotency-Key", p.Errors[0].Location)
	}
	require.Len(t, w.runner.submitted, 1, "sent once")
	third := into[Run](w.call("acme/operator", "POST", "/jobs/"+other.ID+"/run", nil, h).is(201))
	require.NotEqual(t, first.ID, third.ID, "a key belongs to its job")
	w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil, header{"Idempotency-Key": strings.Repeat("k", 256)}).problem(422, "validation_failed")
}

func TestDelayedRun(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	path := "/jobs/" + w.job("acme", "nightly", e).ID + "/run"
	at := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Millisecond)
	run := into[Run](w.call("acme/operator", "POST", path, map[string]any{"at": web.Instant(at)}).is(201))
	require.Equal(t, web.Instant(at), run.FireAt)
	require.Equal(t, at.Add(5*time.Minute), w.runner.submitted[0].ExpireAt)
	run = into[Run](w.call("acme/operator", "POST", path, map[string]any{"after": "30m"}).is(201))
	fire, err := time.Parse(time.RFC3339, run.FireAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(30*time.Minute), fire, 5*time.Second)
	years := into[Run](w.call("acme/operator", "POST", path, map[string]any{"after": "87600h"}).is(201))
	fire, err = time.Parse(time.RFC3339, years.FireAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(87600*time.Hour), fire, 5*time.Second)
	past := into[Run](w.call("acme/operator", "POST", path, map[string]any{"at": "2020-01-01T00:00:00Z"}).is(201))
	fire, err = time.Parse(time.RFC3339, past.FireAt)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), fire, 5*time.Second, "what has passed is due now")
	for name, body := range map[string]map[string]any{
		"both": {"at": web.Instant(at), "after": "1m"}, "negative": {"after": "-1m"}, "far": {"after": "90000h"}, "far away": {"at": "2099-01-01T00:00:00Z"},
		"nonsense": {"after": "soon"}, "control": {"note": "a\x00b"},
	} {
		w.run(t, name, func(*testing.T) { w.call("acme/operator", "POST", path, body).problem(422, "validation_failed") })
	}
}

func TestRunAndWait(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	path := "/jobs/" + w.job("acme", "nightly", e).ID + "/run"

	w.runner.wait = func(_ context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
		started := w.started("acme", id.String())
		res, err := w.store.FinishAttempts(t.Context(), []store.AttemptReport{{
			Tenant: tenant, Executor: e.ID, Report: domain.Report{ExecutionID: id, Fence: started.Fence, Outcome: domain.OutcomeSucceeded, Output: []byte(`{"rows": 3}`)},
		}})
		require.NoError(t, err)
		return res[0].Execution, nil
	}
	done := into[StartedRun](w.call("acme/operator", "POST", path+"?wait=30s", nil).is(201))
	require.Equal(t, "succeeded", done.State)
	require.JSONEq(t, `{"rows": 3}`, string(done.Output))
	require.Empty(t, done.Code)

	w.runner.wait = func(ctx context.Context, _ domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
		<-ctx.Done()
		return domain.Execution{ID: id}, domain.Errorf(domain.CodeWaitTimedOut, "still due")
	}
	late := w.call("acme/operator", "POST", path+"?wait=10ms", nil).is(http.StatusAccepted)
	require.Equal(t, "timed-out", late.header.Get("X-Wait"))
	run := into[Run](late)
	require.Equal(t, "wait_timed_out", run.Code)
	require.Equal(t, "due", run.State)
	for _, wait := range []string{"6m", "-1s", "long"} {
		w.call("acme/operator", "POST", path+"?wait="+wait, nil).problem(422, "validation_failed")
	}
}

func TestPreferredInstanceHasToBeUsable(t *testing.T) {
	w := newWorld(t)
	e, other := w.executor("acme", "shop"), w.executor("acme", "billing")
	path := "/jobs/" + w.job("acme", "nightly", e).ID + "/run"
	foreign := w.instance(other, "two", "reconcile")
	p := w.call("acme/operator", "POST", path, map[string]any{"instanceId": foreign.ID.String()}).problem(422, "validation_failed")
	require.Equal(t, "body.instanceId", p.Errors[0].Location)
	gone := w.instance(e, "one", "reconcile")
	require.NoError(t, storetest.LeaveInstance(t.Context(), w.store, gone.TenantID, gone.ID, "stopped"))
	w.call("acme/operator", "POST", path, map[string]any{"instanceId": gone.ID.String()}).problem(409, "executor_offline")
	w.call("acme/operator", "POST", path, map[string]any{"instanceId": "12345"}).problem(404, "not_found")
}

func TestRunDetail(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e, with("input", map[string]any{"a": 1}), with("retry", map[string]any{"maxAttempts": 2, "delay": "0s"}))
	failed := w.ran("acme", job, domain.Report{
		Outcome: domain.OutcomeFailed, ErrorKind: "panic", Error: "index out of range", Stack: "goroutine 1 [running]", LogLines: 2,
	})
	path := "/runs/" + failed.ID.String()
	waiting := into[RunDetail](w.call("acme/viewer", "GET", path, nil).is(200))
	require.Equal(t, "retry_wait", waiting.State)
	require.Len(t, waiting.Attempts, 1, "the one that ended")

	require.Eventually(t, func() bool { return time.Now().After(failed.StartedAt.Add(time.Millisecond)) }, time.Minute, time.Millisecond)
	again := w.started("acme", failed.ID.String())
	running := into[RunDetail](w.call("acme/viewer", "GET", path, nil).is(200))
	require.Len(t, running.Attempts, 2)
	require.Equal(t, "running", running.Attempts[1].State)

	_, err := w.store.FinishAttempts(t.Context(), []store.AttemptReport{{Tenant: again.TenantID, Executor: e.ID, Report: domain.Report{
		ExecutionID: again.ID, Fence: again.Fence, Outcome: domain.OutcomeSucceeded, Output: []byte(`{"sum":42}`), StartedAt: time.Now(), LogLines: 0,
	}}})
	require.NoError(t, err)
	a := w.call("acme/viewer", "GET", path, nil).is(200)
	detail := into[RunDetail](a)
	require.Equal(t, "succeeded", detail.State)
	require.JSONEq(t, `{"sum":42}`, string(detail.Output))
	require.JSONEq(t, `{"a":1}`, string(detail.Input))
	require.Equal(t, failed.StartedAt.Sub(failed.FireAt).Milliseconds(), *detail.LatenessMS, "of the first attempt")
	listed := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs", nil).is(200)).Items[0]
	require.Equal(t, detail.LatenessMS, listed.LatenessMS)
	require.NotNil(t, detail.DurationMS)
	require.Equal(t, "one", detail.Attempts[0].Instance.Name)
	require.Equal(t, "panic", detail.Attempts[0].ErrorKind)
	require.Equal(t, "nightly", detail.JobSpec.Name)
	// Durations depend on the machine.
	detail.LatenessMS, detail.DurationMS = new(int64), new(int64)
	a.body, err = json.Marshal(detail)
	require.NoError(t, err)
	a.golden("run_detail")
}

func TestListRuns(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	i := w.instance(e, "one", "reconcile")
	nightly, weekly := w.job("acme", "nightly", e), w.job("acme", "weekly", e)
	ok := w.ran("acme", nightly, domain.Report{Outcome: domain.OutcomeSucceeded})
	bad := w.ran("acme", weekly, domain.Report{Outcome: domain.OutcomeFailed, Error: "no"})
	due := into[Run](w.call("acme/operator", "POST", "/jobs/"+weekly.ID+"/run", nil).is(201))
	ids := func(query string) (out []string) {
		for _, r := range into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?"+query, nil).is(200)).Items {
			out = append(out, r.ID)
		}
		return out
	}
	require.Equal(t, []string{due.ID, bad.ID.String(), ok.ID.String()}, ids(""))
	require.Equal(t, []string{ok.ID.String()}, ids("jobId="+nightly.ID))
	require.Equal(t, []string{bad.ID.String()}, ids("state=failed"))
	require.Equal(t, []string{due.ID, bad.ID.String()}, ids("state=failed,due"))
	require.Equal(t, []string{due.ID, bad.ID.String()}, ids("q=week"))
	require.Equal(t, []string{bad.ID.String(), ok.ID.String()}, ids("instanceId="+i.ID.String()))
	require.Len(t, ids("executorId="+e.ID.String()), 3)
	require.Len(t, ids("cause=manual"), 3)
	require.Empty(t, ids("cause=schedule"))
	require.Empty(t, ids("from=2099-01-01T00:00:00Z"))
	require.Empty(t, ids("to=2020-01-01T00:00:00Z"))

	page := into[web.Page[Run]](w.call("acme/viewer", "GET", "/runs?limit=2", nil).is(200))
	require.NotNil(t, page.NextCursor)
	require.Equal(t, []string{ok.ID.String()}, ids("limit=2&cursor="+*page.NextCursor))
}

func TestCancelRun(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e, with("blocking", "parallel"))
	run := func() Run { return into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201)) }

	due := run()
	ended := into[Run](w.call("acme/operator", "POST", "/runs/"+due.ID+"/cancel", map[string]any{"reason": "wrong day"}).is(http.StatusAccepted))
	require.Equal(t, "cancelled", ended.State)
	require.Equal(t, "killed", ended.Reason)
	require.Equal(t, "cancelled by acme-operator: wrong day", ended.Message)
	require.Empty(t, w.runner.cancelled, "nobody has it")
	over := w.call("acme/operator", "POST", "/runs/"+due.ID+"/cancel", nil).problem(409, "already_finished")
	require.Equal(t, "run "+due.ID+" is cancelled already", over.Detail)

	running := run()
	w.started("acme", running.ID)
	asked := into[Run](w.call("acme/operator", "POST", "/runs/"+running.ID+"/cancel", nil).is(http.StatusAccepted))
	require.Equal(t, "cancelling", asked.State)
	require.Len(t, w.runner.cancelled, 1)
	require.Equal(t, running.ID, w.runner.cancelled[0].ID.String())
}

func TestRetryRun(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	w.instance(e, "one", "reconcile")
	job := w.job("acme", "nightly", e)
	due := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", map[string]any{"input": map[string]any{"day": 1}}).is(201))
	w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", nil).problem(409, "conflict")
	w.call("acme/operator", "POST", "/runs/"+due.ID+"/cancel", nil).is(202)

	again := into[Run](w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", nil).is(201))
	require.Equal(t, "retry", again.Cause)
	key := header{"Idempotency-Key": "once"}
	keyed := into[Run](w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", nil, key).is(201))
	require.Equal(t, keyed.ID, into[Run](w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", nil, key).is(200)).ID, "the same key, the same run")
	w.call("acme/operator", "POST", "/runs/"+again.ID+"/retry", nil, key).problem(409, "conflict") // it has not ended
	w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", map[string]any{"input": map[string]any{"day": 4}}, key).problem(422, "idempotency_key_reused")
	w.call("acme/operator", "POST", "/jobs/"+due.JobID+"/run", nil, key).problem(422, "idempotency_key_reused")
	require.Contains(t, again.Note, due.ID)
	require.NotEqual(t, due.ID, again.ID)
	detail := into[RunDetail](w.call("acme/viewer", "GET", "/runs/"+again.ID, nil).is(200))
	require.JSONEq(t, `{"day":1}`, string(detail.Input), "the old run's")

	other := into[Run](w.call("acme/operator", "POST", "/runs/"+due.ID+"/retry", map[string]any{"input": map[string]any{"day": 5}}).is(201))
	detail = into[RunDetail](w.call("acme/viewer", "GET", "/runs/"+other.ID, nil).is(200))
	require.JSONEq(t, `{"day":5}`, string(detail.Input))
}

func TestLateness(t *testing.T) {
	const job, jitter = domain.JobID(7), time.Hour
	fire := time.UnixMilli(1_800_000_000_000)
	put := timing.RunAt(job, jitter, fire)
	require.True(t, put.After(fire), "else this shows nothing")
	at := func(from time.Time, ms int) time.Time { return from.Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct {
		cause domain.Cause
		view  store.ExecutionView
		want  int64 // ms; -1: it is not told
	}{
		"nothing has started":          {domain.CauseManual, store.ExecutionView{}, -1},
		"a logical date":               {domain.CauseBackfill, store.ExecutionView{FirstStartAt: at(fire, 9)}, -1},
		"by hand":                      {domain.CauseManual, store.ExecutionView{JitterMax: jitter, Execution: domain.Execution{StartedAt: at(fire, 5)}}, 5},
		"with jitter":                  {domain.CauseSchedule, store.ExecutionView{JitterMax: jitter, Execution: domain.Execution{StartedAt: at(put, 5)}}, 5},
		"tried again":                  {domain.CauseSchedule, store.ExecutionView{FirstStartAt: at(fire, 6), Execution: domain.Execution{StartedAt: at(fire, 60_000)}}, 6},
		"tried again, with jitter":     {domain.CauseSchedule, store.ExecutionView{JitterMax: jitter, FirstStartAt: at(put, 6), Execution: domain.Execution{StartedAt: at(put, 60_000)}}, 6},
		"the next attempt is offered":  {domain.CauseSchedule, store.ExecutionView{FirstStartAt: at(fire, 6)}, 6},
		"a part, after others of them": {domain.CauseSchedule, store.ExecutionView{Execution: domain.Execution{Parent: 3, PlannedAt: at(fire, 1000), StartedAt: at(fire, 1008)}}, 8},
	} {
		c.view.JobID, c.view.FireAt, c.view.Cause = job, fire, c.cause
		d, ok := latenessOf(&c.view)
		require.Equal(t, c.want >= 0, ok, name)
		if ok {
			require.Equal(t, c.want, d.Milliseconds(), name)
		}
	}
}
