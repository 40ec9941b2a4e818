package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// key makes an API key of acme and lets call use it under that name.
func (w *world) key(name, role string, executors ...string) {
	w.t.Helper()
	body := map[string]any{"name": name, "role": role}
	if len(executors) > 0 {
		body["executors"] = executors
	}
	made := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", body).is(201))
	require.Equal(w.t, append([]string{}, executors...), made.Executors)
	require.Empty(w.t, made.CallHandlers)
	w.bearers[name] = made.Secret
}

// keyFor makes an API key of acme that is for single handlers.
func (w *world) keyFor(name, role string, handlers ...string) {
	w.t.Helper()
	made := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": name, "role": role, "callHandlers": handlers}).is(201))
	require.Equal(w.t, handlers, made.CallHandlers)
	require.Empty(w.t, made.Executors)
	w.bearers[name] = made.Secret
}

func callBody(executor string, change map[string]any) map[string]any {
	body := map[string]any{"executor": executor, "handler": "reconcile", "input": map[string]any{"a": 1}}
	for k, v := range change {
		body[k] = v
	}
	return body
}

func TestCallsRunHandlers(t *testing.T) {
	w := newWorld(t)
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	w.key("billing", "caller")
	c := into[Call](w.call("billing", "POST", "/calls", callBody("shop", map[string]any{"maxAttempts": 3, "startWithin": "10s", "note": "why"}), header{"Idempotency-Key": "k"}).is(http.StatusCreated))
	require.Equal(t, "due", c.State)
	require.False(t, c.Done)
	require.Equal(t, "shop", c.Executor)
	require.Equal(t, "reconcile", c.Handler)
	require.Len(t, w.runner.submitted, 1)
	e := w.runner.submitted[0]
	require.Equal(t, 3, e.MaxAttempts)
	require.Equal(t, 10*time.Second, e.ExpireAt.Sub(e.FireAt))
	require.Equal(t, "key:billing", e.RequestedBy)
	for age, rest := range map[string]time.Duration{"2.5s": 7500 * time.Millisecond, "1h": time.Millisecond} {
		w.call("billing", "POST", "/calls", callBody("shop", map[string]any{"startWithin": "10s"}), header{"Call-Age": age}).is(http.StatusCreated)
		e := w.runner.submitted[len(w.runner.submitted)-1]
		require.Equal(t, rest, e.ExpireAt.Sub(e.FireAt), "the caller has waited already")
	}
	w.call("billing", "POST", "/calls", callBody("shop", nil), header{"Call-Age": "-1s"}).problem(422, "validation_failed")
	w.runner.submitted = w.runner.submitted[:1]
	require.Equal(t, domain.CauseAPI, e.Cause)

	same := callBody("shop", map[string]any{"maxAttempts": 3, "startWithin": "10s", "note": "why"})
	again := into[Call](w.call("billing", "POST", "/calls", same, header{"Idempotency-Key": "k"}).is(http.StatusOK))
	require.Equal(t, c.ID, again.ID)
	w.call("billing", "POST", "/calls", callBody("shop", nil), header{"Idempotency-Key": "k"}).problem(422, "idempotency_key_reused")
	require.Len(t, w.runner.submitted, 1)
	w.key("other", "caller")
	foreign := into[Call](w.call("other", "POST", "/calls", callBody("shop", nil), header{"Idempotency-Key": "k"}).is(http.StatusCreated))
	require.NotEqual(t, c.ID, foreign.ID, "a caller's keys are its own")
	require.Empty(t, into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs", nil).is(200)).Items, "people's jobs are others")
	for _, kind := range []string{"call", "all"} {
		jobs := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?kind="+kind, nil).is(200))
		require.Len(t, jobs.Items, 1, "one job for all calls of a handler")
		require.Equal(t, "call:shop/reconcile", jobs.Items[0].Name)
		require.Equal(t, "call", jobs.Items[0].Kind)
	}
	require.Empty(t, into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?kind=callback", nil).is(200)).Items)
	require.Zero(t, into[Overview](w.call("acme/viewer", "GET", "/overview", nil).is(200)).Jobs.Enabled)

	running := w.started("acme", c.ID)
	require.NoError(t, w.store.SaveProgress(t.Context(), []store.ProgressReport{{Tenant: running.TenantID, Executor: running.Executor, Progress: domain.Progress{
		ExecutionID: running.ID, Fence: running.Fence, Seq: 1, Permille: 425, Message: "orders",
	}}}))
	shown := into[Call](w.call("billing", "GET", "/calls/"+c.ID, nil).is(200))
	require.Equal(t, 42.5, shown.Progress.Percent)
	require.Equal(t, "orders", shown.Progress.Message)

	// A wait that ends with the run.
	w.runner.wait = func(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
		_, err := w.store.FinishAttempts(ctx, []store.AttemptReport{{Tenant: tenant, Executor: running.Executor, Report: domain.Report{
			ExecutionID: id, Fence: running.Fence, Outcome: domain.OutcomeSucceeded, Output: []byte(`{"sum":3}`), StartedAt: time.Now(),
		}}})
		return domain.Execution{}, err
	}
	done := into[Call](w.call("billing", "GET", "/calls/"+c.ID+"?wait=30s", nil).is(200))
	require.True(t, done.Done)
	require.Equal(t, "succeeded", done.State)
	require.JSONEq(t, `{"sum":3}`, string(done.Output))
	w.call("billing", "POST", "/calls/"+c.ID+"/cancel", nil).problem(409, "already_finished")
	cancelled := into[Call](w.call("other", "POST", "/calls/"+foreign.ID+"/cancel", nil).is(http.StatusAccepted))
	require.Equal(t, "cancelled", cancelled.State)
	require.Equal(t, "cancelled by its caller key:other", cancelled.Error)
}

// A caller can do nothing else, and sees nothing of others.
func TestWhatACallerMayNot(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	w.instance(w.executor("acme", "bank"), "two", "reconcile")
	w.instance(w.executor("beta", "theirs"), "three", "reconcile")
	job := w.job("acme", "nightly", shop)
	run := into[Run](w.call("acme/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(201))
	w.key("shop-only", "caller", "shop")
	w.key("any", "caller")

	for _, path := range []string{"/jobs", "/runs", "/executors", "/api-keys", "/overview", "/runs/" + run.ID} {
		w.call("any", "GET", path, nil).problem(403, "permission_denied")
	}
	w.call("any", "POST", "/jobs/"+job.ID+"/run", nil).problem(403, "permission_denied")
	w.call("acme/viewer", "POST", "/calls", callBody("shop", nil)).problem(403, "permission_denied")

	own := into[Call](w.call("shop-only", "POST", "/calls", callBody("shop", nil)).is(201))
	banked := into[Call](w.call("any", "POST", "/calls", callBody("bank", nil)).is(201))
	w.call("shop-only", "POST", "/calls", callBody("bank", nil)).problem(404, "not_found")
	w.call("any", "POST", "/calls", callBody("theirs", nil)).problem(404, "not_found")
	w.call("any", "POST", "/calls", callBody("nowhere", nil)).problem(404, "not_found")
	for _, id := range []string{banked.ID, run.ID, "123"} {
		w.call("shop-only", "GET", "/calls/"+id, nil).problem(404, "not_found")
		w.call("shop-only", "POST", "/calls/"+id+"/cancel", nil).problem(404, "not_found")
	}
	w.call("any", "GET", "/calls/"+run.ID, nil).problem(404, "not_found") // a run, but no call
	w.key("shop-too", "caller", "shop")
	for _, other := range []string{"any", "shop-too"} { // may call the same handler, and has not
		w.call(other, "GET", "/calls/"+own.ID, nil).problem(404, "not_found")
		w.call(other, "POST", "/calls/"+own.ID+"/cancel", nil).problem(404, "not_found")
	}
	require.Equal(t, own.ID, into[Call](w.call("shop-only", "GET", "/calls/"+own.ID, nil).is(200)).ID)
	require.Equal(t, own.ID, into[Call](w.call("acme/operator", "GET", "/calls/"+own.ID, nil).is(200)).ID)

	// A key for one handler calls no other one of the executor, and learns of none.
	w.instance(shop, "four", "reconcile", "refund")
	w.keyFor("reconcile-only", "caller", "shop/reconcile")
	w.call("reconcile-only", "POST", "/calls", callBody("shop", nil)).is(201)
	refunded := into[Call](w.call("any", "POST", "/calls", callBody("shop", map[string]any{"handler": "refund"})).is(201))
	w.call("reconcile-only", "GET", "/calls/"+refunded.ID, nil).problem(404, "not_found")
	for _, handler := range []string{"refund", "reconcil"} {
		p := w.call("reconcile-only", "POST", "/calls", callBody("shop", map[string]any{"handler": handler})).problem(404, "not_found")
		require.Equal(t, `there is no executor "shop" whose handler "`+handler+`" you may call`, p.Detail)
	}
	w.call("reconcile-only", "POST", "/calls", callBody("bank", nil)).problem(404, "not_found")

	w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "caller", "callHandlers": []string{"shop/reconcile"}}).is(201)
	listed := into[web.Page[access.APIKey]](w.call("acme/admin", "GET", "/api-keys", nil).is(200)).Items
	require.Equal(t, []string{"shop/reconcile"}, listed[len(listed)-1].CallHandlers)
	for _, target := range []string{"shop", "/reconcile", "shop/", "shop/ reconcile", "sh op/x", "shop/a\nb", "shop/" + strings.Repeat("x", 129)} {
		p := w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "caller", "callHandlers": []string{"shop/reconcile", target}}).problem(422, "validation_failed")
		require.Equal(t, "body.callHandlers[1]", p.Errors[0].Location, target)
	}
	for _, c := range []struct {
		role, location string
		targets        []string
		message        string
	}{
		{"admin", "executors", []string{"shop"}, "the role admin is about the whole tenant"},
		{"caller+scripter", "executors", []string{"shop"}, "is about the whole tenant"},
		{"viewer", "callHandlers", []string{"shop/reconcile"}, "handlers bound calls and timers only"},
		{"caller+manager", "callHandlers", []string{"shop/reconcile"}, "handlers bound calls and timers only"},
	} {
		p := w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": c.role, c.location: c.targets}).problem(422, "validation_failed")
		require.Equal(t, "body."+c.location, p.Errors[0].Location)
		require.Contains(t, p.Errors[0].Message, c.message)
		w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "caller", c.location: []string{}}).problem(422, "validation_failed")
	}
	for _, role := range []string{"king", "caller+king", "caller+", ""} {
		w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": role}).problem(422, "validation_failed")
	}
	several := into[access.CreatedAPIKey](w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "manager+caller+manager"}).is(201))
	require.Equal(t, "caller+manager", several.Role)
	long := "shop/" + strings.Repeat("x", 128)
	w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "caller", "callHandlers": slices.Repeat([]string{long}, 30)}).is(201)
	w.call("acme/admin", "POST", "/api-keys", map[string]any{"name": "x", "role": "caller", "callHandlers": slices.Repeat([]string{long}, 31)}).problem(422, "validation_failed")
}

// Keys of the role timer set timers, and do nothing else.
func TestWhatATimerKeyMayNot(t *testing.T) {
	w := newWorld(t)
	w.instance(w.executor("acme", "shop"), "one", "reconcile")
	w.key("timers", "timer")
	require.Equal(t, []string{"timer"}, into[Me](w.call("timers", "GET", "/me", nil).is(200)).Permissions)
	for _, path := range []string{"/jobs", "/runs", "/executors", "/api-keys", "/overview"} {
		w.call("timers", "GET", path, nil).problem(403, "permission_denied")
	}
	w.call("timers", "POST", "/calls", callBody("shop", nil)).problem(403, "permission_denied")
}

func TestCallsThatMakeNoSense(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	p := w.call("acme/operator", "POST", "/calls", callBody("shop", map[string]any{"handler": "reconcil"})).problem(422, "unknown_handler")
	require.Contains(t, p.Detail, `did you mean "reconcile"?`)
	for field, value := range map[string]any{"startWithin": "-1s", "maxAttempts": 0, "note": "a\u0000b", "executor": ""} {
		w.call("acme/operator", "POST", "/calls", callBody("shop", map[string]any{field: value})).problem(422, "validation_failed")
	}
	w.call("acme/operator", "POST", "/calls?wait=1h", callBody("shop", nil)).problem(422, "validation_failed")

	// A job that somebody made theirs, by another handler, is not that of the calls.
	w.call("acme/operator", "POST", "/calls", callBody("shop", nil)).is(http.StatusCreated)
	own := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?kind=call", nil).is(200)).Items[0]
	w.call("acme/editor", "PUT", "/jobs/"+own.ID+"?allowUnknownHandler=true", jobBody(own.Name, shop, with("handler", "another")), header{"If-Match": "*"}).is(200)
	w.call("acme/operator", "POST", "/calls", callBody("shop", nil)).problem(409, "conflict")
}

// The jobs of calls and timers are found by name, so people can give such names to no
// other job. The jobs themselves can be edited.
func TestNamesOfTheServersJobs(t *testing.T) {
	w, _ := withTimers(t)
	shop, err := w.store.FindExecutorByName(t.Context(), w.tenants["acme"], "shop")
	require.NoError(t, err)
	const name = "timer:shop/reconcile"
	p := w.call("acme/editor", "POST", "/jobs", jobBody(name, shop)).problem(422, "validation_failed")
	require.Equal(t, "body.name", p.Errors[0].Location)
	require.Equal(t, `must not begin with "timer:": the server gives such names to the jobs that the timers of handlers belong to; choose another one`, p.Errors[0].Message)

	mine := w.job("acme", "mine", shop)
	w.call("acme/editor", "PUT", "/jobs/"+mine.ID, jobBody(name, shop), header{"If-Match": "*"}).problem(422, "validation_failed")
	batch := into[JobBatch](w.call("acme/editor", "POST", "/jobs/batch", map[string]any{"items": []any{jobBody(name, shop), jobBody("timers", shop)}}).is(200))
	require.Equal(t, []int{422, 201}, []int{batch.Items[0].Status, batch.Items[1].Status})
	require.Equal(t, "body.name", batch.Items[0].Problem.Errors[0].Location)

	w.call("acme/operator", "POST", "/timers", timerBodyOf(nil)).is(http.StatusCreated)
	own := into[web.Page[Job]](w.call("acme/viewer", "GET", "/jobs?kind=timer", nil).is(200)).Items[0]
	none := with("schedule", map[string]any{"kind": "none"})
	w.call("acme/editor", "PUT", "/jobs/"+own.ID, jobBody(name, shop, none, with("labels.team", "books")), header{"If-Match": "*"}).is(200)
	w.call("acme/operator", "POST", "/timers", timerBodyOf(map[string]any{"key": "next"})).is(http.StatusCreated)
	w.call("acme/editor", "PUT", "/jobs/"+own.ID, jobBody("call:shop/reconcile", shop, none), header{"If-Match": "*"}).problem(422, "validation_failed")
	w.call("acme/editor", "PUT", "/jobs/"+own.ID, jobBody("former timers", shop, none), header{"If-Match": "*"}).is(200)
	w.call("acme/editor", "PUT", "/jobs/"+own.ID, jobBody(name, shop, none), header{"If-Match": "*"}).problem(422, "validation_failed")
}

// The job of a handler's calls follows what is declared beside the handler,
// until somebody edits one of these settings.
func TestCallsFollowTheirHandler(t *testing.T) {
	w := newWorld(t)
	shop := w.executor("acme", "shop")
	w.instance(shop, "one", "reconcile")
	w.key("billing", "caller")
	declare := func(calls *domain.JobSpec) {
		w.t.Helper()
		require.NoError(t, w.store.DefineHandlers(t.Context(), shop.TenantID, shop.ID, []domain.Handler{{Name: "reconcile", Calls: calls}}))
	}
	call := func(change map[string]any) Call {
		w.t.Helper()
		return into[Call](w.call("billing", "POST", "/calls", callBody("shop", change)).is(http.StatusCreated))
	}
	job := func() store.JobView {
		w.t.Helper()
		v, err := w.store.FindJobByName(t.Context(), shop.TenantID, "call:shop/reconcile")
		require.NoError(t, err)
		return v
	}

	c := call(map[string]any{"timeout": "2s"})
	require.Equal(t, 1, c.MaxAttempts)
	require.Equal(t, "2s", c.Timeout)
	require.Equal(t, 2*time.Second, w.runner.submitted[0].Timeout)
	require.Equal(t, "2s", into[RunDetail](w.call("acme/viewer", "GET", "/runs/"+c.ID, nil).is(200)).Timeout)

	calls := domain.JobSpec{
		Handler: "reconcile", Timeout: 4 * time.Second, Retry: domain.Retry{MaxAttempts: 3, Delay: time.Second, Backoff: 1, MaxDelay: time.Minute},
		OnLost: domain.OnLostAuto, OnFailure: domain.FollowUp{Handler: "complain"}, Routing: domain.RouteRandom, Blocking: domain.BlockSerial, Priority: 7,
	}
	declare(&calls)
	c = call(nil)
	require.Equal(t, 3, c.MaxAttempts)
	require.Equal(t, "4s", c.Timeout)
	v := job()
	require.EqualValues(t, 2, v.Revision)
	require.Equal(t, calls.Retry, v.Spec.Retry)
	require.Equal(t, "complain", v.Spec.OnFailure.Handler)
	require.Equal(t, domain.RouteRandom, v.Spec.Routing)
	require.Equal(t, domain.BlockSerial, v.Spec.Blocking)
	require.Equal(t, 7, v.Spec.Priority)
	for _, narrow := range []struct {
		ask      map[string]any
		attempts int
		timeout  string
	}{
		{map[string]any{"maxAttempts": 2, "timeout": "1s"}, 2, "1s"},
		{map[string]any{"maxAttempts": 9, "timeout": "1h"}, 3, "4s"},
	} {
		c := call(narrow.ask)
		require.Equal(t, narrow.attempts, c.MaxAttempts)
		require.Equal(t, narrow.timeout, c.Timeout)
	}
	require.EqualValues(t, 2, job().Revision, "callers make no revisions")

	// What does not follow the handler may be edited, and it follows on.
	edit := func(change func(*domain.JobSpec)) {
		w.t.Helper()
		v := job()
		spec := v.Spec
		change(&spec)
		_, err := w.store.UpdateJob(t.Context(), store.UpdateJobParams{
			Tenant: v.TenantID, ID: v.ID, Spec: spec, Source: v.Source, DeclarationHash: v.DeclarationHash, By: "ann",
			Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never },
		})
		require.NoError(t, err)
	}
	edit(func(s *domain.JobSpec) { s.Alert.OnFailure = true })
	calls.Timeout, calls.Retry.MaxAttempts = 5*time.Second, 0
	declare(&calls)
	c = call(map[string]any{"maxAttempts": 9})
	require.Equal(t, 9, c.MaxAttempts, "nothing is declared of how often")
	require.Equal(t, "5s", c.Timeout)
	require.True(t, job().Spec.Alert.OnFailure)

	edit(func(s *domain.JobSpec) { s.Timeout = time.Hour })
	calls.Timeout = 6 * time.Second
	declare(&calls)
	require.Equal(t, "1h", call(nil).Timeout, "it is the console's now")

	for _, timeout := range []string{"0s", "-1s", "1us", "169h", "soon"} {
		w.call("billing", "POST", "/calls", callBody("shop", map[string]any{"timeout": timeout})).problem(422, "validation_failed")
	}
	first := into[Call](w.call("billing", "POST", "/calls", callBody("shop", map[string]any{"timeout": "1s"}), header{"Idempotency-Key": "k"}).is(201))
	require.Equal(t, first.ID, into[Call](w.call("billing", "POST", "/calls", callBody("shop", map[string]any{"timeout": "1s"}), header{"Idempotency-Key": "k"}).is(200)).ID)
	w.call("billing", "POST", "/calls", callBody("shop", nil), header{"Idempotency-Key": "k"}).problem(422, "idempotency_key_reused")
}
