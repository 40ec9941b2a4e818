package storetest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) step(e domain.Execution, name string, output []byte) store.StepRequest {
	return store.StepRequest{Tenant: f.tenant, Executor: f.executor, ID: e.ID, Fence: e.Fence, Name: name, Store: output != nil, Output: output}
}

func (f *fixture) steps(list ...store.StepRequest) []store.StepAnswer {
	f.t.Helper()
	answers, err := f.s.TakeSteps(f.ctx, list)
	f.ok(err)
	require.Len(f.t, answers, len(list))
	return answers
}

// What one attempt has stored, the next one finds; only the newest may store.
func testSteps(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2} })
	first := f.start(f.run(j))
	result := []byte(`{"receipt":"R-1"}`)
	require.Equal(t, []store.StepAnswer{
		{Code: store.StepNone}, {Code: store.StepStored}, {Code: store.StepStored}, {Code: store.StepFound, Output: result}, {Code: store.StepNone},
	}, f.steps(
		f.step(first, "charge", nil), f.step(first, "charge", result), f.step(first, "charge", result), f.step(first, "charge", nil), f.step(first, "", nil),
	))
	f.finish(first, domain.OutcomeFailed)
	require.Equal(t, store.StepNotRunning, f.steps(f.step(first, "charge", nil))[0].Code, "between two attempts nobody may act")

	second := f.start(f.find(first))
	require.Greater(t, second.Fence, first.Fence)
	answers := f.steps(
		f.step(first, "late", result), f.step(second, "charge", nil), f.step(second, "charge", []byte(`"other"`)), f.step(second, "empty", []byte{}),
	)
	require.Equal(t, []store.StepAnswer{
		{Code: store.StepNotRunning}, {Code: store.StepFound, Output: result}, {Code: store.StepFound, Output: result}, {Code: store.StepStored},
	}, answers)
	list, err := f.s.ListSteps(f.ctx, f.tenant, first.ID)
	f.ok(err)
	require.Len(t, list, 2)
	require.Equal(t, "charge", list[0].Name)
	require.Equal(t, result, list[0].Output)
	require.Equal(t, first.Fence, list[0].Fence)
	f.finish(second, domain.OutcomeSucceeded)
	require.Equal(t, store.StepNotRunning, f.steps(f.step(second, "more", result))[0].Code)

	foreign := newFixture(t, f.s)
	wrong := f.step(f.start(f.run(j)), "charge", result)
	wrong.Tenant = foreign.tenant
	strange := wrong
	strange.Tenant, strange.Executor = f.tenant, foreign.executor
	for _, r := range []store.StepRequest{wrong, strange} {
		require.Equal(t, store.StepNotRunning, f.steps(r)[0].Code, "neither another tenant nor another executor")
	}
	list, err = foreign.s.ListSteps(f.ctx, foreign.tenant, first.ID)
	f.ok(err)
	require.Empty(t, list)
}

func testStepLimits(t *testing.T, f *fixture) {
	j := f.job(nil)
	e := f.start(f.run(j))
	large := bytes.Repeat([]byte("1"), domain.MaxStep)
	var requests []store.StepRequest
	for i := range domain.MaxStepsBytes / domain.MaxStep {
		requests = append(requests, f.step(e, fmt.Sprint("large-", i), large))
	}
	for _, a := range f.steps(requests...) {
		require.Equal(t, store.StepStored, a.Code)
	}
	for name, r := range map[string]store.StepRequest{
		"total": f.step(e, "one-more", []byte("1")), "one": f.step(e, "huge", append(large, '1')), "no name": f.step(e, "", []byte("1")),
		"long name": f.step(e, string(bytes.Repeat([]byte("n"), 129)), []byte("1")),
	} {
		a := f.steps(r)[0]
		require.Equal(t, store.StepTooLarge, a.Code, name)
		require.NotEmpty(t, a.Message)
	}
	many := f.start(f.run(j))
	for i := range domain.MaxSteps {
		require.Equal(t, store.StepStored, f.steps(f.step(many, fmt.Sprint(i), []byte("1")))[0].Code)
	}
	require.Equal(t, store.StepTooLarge, f.steps(f.step(many, "more", []byte("1")))[0].Code)
	require.Equal(t, store.StepStored, f.steps(f.step(many, "7", []byte("1")))[0].Code, "again is no more")
	f.finish(e, domain.OutcomeSucceeded)
	f.finish(many, domain.OutcomeSucceeded)
}

// The same question through several nodes at once is stored once.
func testStepRace(t *testing.T, f *fixture) {
	e := f.start(f.run(f.job(nil)))
	var wg sync.WaitGroup
	codes := make([]store.StepCode, 8)
	for i := range codes {
		wg.Go(func() {
			if answers, err := f.s.TakeSteps(f.ctx, []store.StepRequest{f.step(e, "charge", []byte(`1`))}); err == nil {
				codes[i] = answers[0].Code
			}
		})
	}
	wg.Wait()
	for _, c := range codes {
		require.Equal(t, store.StepStored, c)
	}
	list, err := f.s.ListSteps(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, list, 1)
}

// The newest report counts, whatever the order of the arrivals.
func testProgress(t *testing.T, f *fixture) {
	e := f.start(f.run(f.job(nil)))
	report := func(fence, seq int64, permille int, text string) store.ProgressReport {
		return store.ProgressReport{Tenant: f.tenant, Executor: f.executor, Progress: domain.Progress{
			ExecutionID: e.ID, Fence: fence, Seq: seq, Permille: permille, Message: text,
		}}
	}
	_, err := f.s.FindProgress(f.ctx, f.tenant, e.ID)
	f.code(domain.CodeNotFound, err)
	f.ok(f.s.SaveProgress(f.ctx, nil))
	for _, r := range []store.ProgressReport{report(1, 2, 200, "two"), report(1, 1, 100, "one"), report(2, 1, 50, "anew"), report(1, 9, 900, "stale")} {
		f.ok(f.s.SaveProgress(f.ctx, []store.ProgressReport{r}))
	}
	p, err := f.s.FindProgress(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.False(t, p.UpdatedAt.IsZero())
	p.UpdatedAt = time.Time{}
	require.Equal(t, domain.Progress{ExecutionID: e.ID, Fence: 2, Seq: 1, Permille: 50, Message: "anew"}, p)

	foreign := newFixture(t, f.s)
	wrong, strange := report(3, 1, 1000, "x"), report(3, 1, 1000, "x")
	wrong.Tenant, strange.Executor = foreign.tenant, foreign.executor
	unknown := report(3, 1, 1000, "x")
	unknown.ExecutionID = 1
	f.ok(f.s.SaveProgress(f.ctx, []store.ProgressReport{wrong, strange, unknown}))
	p, err = f.s.FindProgress(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Equal(t, "anew", p.Message)
	_, err = f.s.FindProgress(f.ctx, foreign.tenant, e.ID)
	f.code(domain.CodeNotFound, err)
}

// callbacks takes what the outbox has, and returns what the fixture's tenant has had so far.
func (f *fixture) callbacks() []domain.Callback {
	f.t.Helper()
	for _, c := range TakeOutbox[domain.Callback](f.t, f.s, domain.TopicCallbacks) {
		if c.Tenant == f.tenant {
			f.called = append(f.called, c)
		}
	}
	return f.called
}

// Whatever ends a run writes the callback that its job asks for, once.
func testCallbacks(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		s.OnSuccess, s.OnFailure = domain.FollowUp{Handler: "yes"}, domain.FollowUp{Handler: "no"}
		s.Retry = domain.Retry{MaxAttempts: 2}
	})
	good, bad := f.start(f.run(j)), f.start(f.run(j))
	f.finish(good, domain.OutcomeSucceeded)
	f.finish(good, domain.OutcomeSucceeded) // a resend
	f.finish(bad, domain.OutcomeFailed)
	require.Equal(t, []domain.Callback{{Tenant: f.tenant, ID: good.ID, Success: true}}, f.callbacks(), "a retry is no end")
	f.finish(f.start(f.find(bad)), domain.OutcomeFailed)
	cancelled := f.run(j)
	_, err := f.s.RequestCancel(f.ctx, f.tenant, cancelled.ID, domain.ReasonKilled, "")
	f.ok(err)
	f.finish(f.start(f.run(f.job(nil))), domain.OutcomeFailed) // asks for none
	want := []domain.Callback{{Tenant: f.tenant, ID: good.ID, Success: true}, {Tenant: f.tenant, ID: bad.ID}}
	require.Equal(t, want, f.callbacks())

	// A run that was lost, and then succeeds after all, is both.
	lost := f.start(f.run(f.job(func(s *domain.JobSpec) {
		s.OnSuccess, s.OnFailure = domain.FollowUp{Handler: "yes"}, domain.FollowUp{Handler: "no"}
	})))
	f.finish(lost, domain.OutcomeUnknown)
	f.finish(lost, domain.OutcomeSucceeded)
	want = append(want, domain.Callback{Tenant: f.tenant, ID: lost.ID}, domain.Callback{Tenant: f.tenant, ID: lost.ID, Success: true})
	require.Equal(t, want, f.callbacks())

	require.Equal(t, want, f.callbacks(), "each is taken once")
}

func testEndedAmong(t *testing.T, f *fixture) {
	j := f.job(nil)
	ended, running, due := f.start(f.run(j)), f.start(f.run(j)), f.run(j)
	f.finish(ended, domain.OutcomeFailed)
	ids := []domain.ExecutionID{ended.ID, running.ID, due.ID, 1}
	got, err := f.s.EndedAmong(f.ctx, f.tenant, ids)
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{ended.ID}, got)
	got, err = f.s.EndedAmong(f.ctx, newFixture(t, f.s).tenant, ids)
	f.ok(err)
	require.Empty(t, got)
	got, err = f.s.EndedAmong(f.ctx, f.tenant, nil)
	f.ok(err)
	require.Empty(t, got)
}

// Steps and progress go with their run.
func testStepRetention(t *testing.T, f *fixture) {
	const month = 30 * 24 * time.Hour
	e := f.start(f.oldRun(f.job(nil), 5*month, "steps"))
	f.steps(f.step(e, "charge", []byte("1")))
	f.ok(f.s.SaveProgress(f.ctx, []store.ProgressReport{{Tenant: f.tenant, Executor: f.executor, Progress: domain.Progress{ExecutionID: e.ID, Fence: 1, Seq: 1}}}))
	f.finish(e, domain.OutcomeSucceeded)
	_, err := f.s.DeleteRunsBefore(f.ctx, time.Now().Add(-4*month), 10)
	f.ok(err)
	list, err := f.s.ListSteps(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Empty(t, list)
	_, err = f.s.FindProgress(f.ctx, f.tenant, e.ID)
	f.code(domain.CodeNotFound, err)
}
