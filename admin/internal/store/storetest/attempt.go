package storetest

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testOfferGrantFinish(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Timeout = time.Minute })
	e := f.fire(j, f.now())[0]
	results := f.offerTo(f.instance, e)
	offered := results[0].Execution
	require.Equal(t, store.OfferMade, results[0].Status)
	require.Equal(t, j.Spec.Name, results[0].Spec.Name)
	require.Equal(t, domain.Offered, offered.State)
	require.EqualValues(t, 1, offered.Fence)
	require.Equal(t, f.instance, offered.Instance)
	require.Equal(t, offered, f.find(e))
	f.offer(store.OfferGone, e)

	running := f.grant(offered)
	require.Equal(t, domain.Running, running.State)
	require.Equal(t, 1, running.Attempt)
	require.False(t, running.Deadline.IsZero())
	require.Equal(t, running, f.find(e))

	report := f.report(running, domain.OutcomeSucceeded)
	report.Report.Output = []byte("{\"rows\":7,\"bad\":\"\xff\"}")
	report.Report.StartedAt, report.Report.Took = f.now(), time.Microsecond
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
	f.ok(err)
	require.Equal(t, store.FinishStored, got[0].Code)
	done := f.find(e)
	require.Equal(t, got[0].Execution, done)
	require.Equal(t, domain.Succeeded, done.State)
	require.Equal(t, report.Report.Output, done.Output, "output is kept byte by byte")
	took, ok := done.Duration()
	require.True(t, ok)
	require.Equal(t, time.Microsecond, took, "as the executor measured it")
	require.EqualValues(t, 3, done.LogLines)
	require.True(t, done.WakeAt.IsZero())
	require.False(t, done.FinishedAt.IsZero())
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, attempts, 1)
	require.Equal(t, domain.Succeeded, attempts[0].State)
}

// testShorterTimeout: a run keeps what its caller allows an attempt.
func testShorterTimeout(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Timeout = time.Hour })
	e := planned(&j.Job, f.now(), f.now())
	e.OccurrenceKey, e.Timeout = "key", 90*time.Second
	run, _, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	require.Equal(t, e.Timeout, run.Timeout)
	running := f.start(run)
	require.Equal(t, e.Timeout, running.Timeout)
	require.Equal(t, running.GrantedAt.Add(e.Timeout+domain.DeadlineGrace), running.Deadline)
	require.Equal(t, running, f.find(run))
}

func testOneStepOffer(t *testing.T, f *fixture) {
	e := f.run(f.job(nil))
	got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: 3, Instance: f.instance, Idempotent: true, Granted: true}})
	f.ok(err)
	require.Equal(t, store.OfferMade, got[0].Status)
	require.Equal(t, domain.Running, got[0].Execution.State)
	require.True(t, got[0].Execution.Idempotent)
	require.Equal(t, domain.NodeID(3), f.find(e).Node)

	// Without the handler's promise there is no short cut.
	e = f.run(f.job(nil))
	got, err = f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: 3, Instance: f.instance, Granted: true}})
	f.ok(err)
	require.Equal(t, domain.Offered, got[0].Execution.State)
}

// testOneStepRefused: who refuses a one-step offer has not started it.
func testOneStepRefused(t *testing.T, f *fixture) {
	e := f.oneStep(f.run(f.job(serial)))
	back := store.GiveBack{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused, Message: "full"}
	give := func(g store.GiveBack) store.OfferStatus {
		t.Helper()
		got, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{g})
		f.ok(err)
		return got[0].Status
	}
	require.Equal(t, store.OfferGone, give(back), "a session that broke proves nothing")
	require.Equal(t, e, f.find(e))
	back.Refused = true
	stale := back
	stale.Fence--
	require.Equal(t, store.OfferGone, give(stale))
	require.Equal(t, store.OfferMade, give(back))
	after := f.find(e)
	require.Equal(t, domain.Due, after.State)
	require.Zero(t, after.Attempt, "it was no attempt")
	require.True(t, after.HoldsSlot)
	require.Equal(t, int64(2), f.oneStep(after).Fence)

	// An attempt in two steps is running because it was accepted.
	e = f.start(f.run(f.job(nil)))
	back.ID, back.Fence = e.ID, e.Fence
	require.Equal(t, store.OfferGone, give(back))
	require.Equal(t, e, f.find(e))
}

// testOneStepUnheard: another instance gets it, and the first one's loss is kept.
func testOneStepUnheard(t *testing.T, f *fixture) {
	e := f.oneStep(f.run(f.job(func(s *domain.JobSpec) { s.OnLost = domain.OnLostAuto })))
	giveBack := func(e domain.Execution) store.OfferStatus {
		got, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{
			Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Unheard: true, Message: "silent",
		}})
		f.ok(err)
		return got[0].Status
	}
	require.Equal(t, store.OfferMade, giveBack(e))
	require.Equal(t, store.OfferGone, giveBack(e))
	after := f.find(e)
	require.Equal(t, domain.RetryWait, after.State)
	require.Equal(t, 1, after.LostAttempts)
	again := f.oneStep(after)
	require.Equal(t, []int64{2, 2}, []int64{again.Fence, int64(again.Attempt)})
	require.Equal(t, store.FinishStale, f.finish(e, domain.OutcomeSucceeded).Code, "of the first one")
	require.Equal(t, store.FinishStored, f.finish(again, domain.OutcomeSucceeded).Code)

	for name, change := range map[string]func(*domain.JobSpec){
		"must not be repeated": func(s *domain.JobSpec) { s.OnLost = domain.OnLostFail },
		"the next would start": func(s *domain.JobSpec) { serial(s); s.OnLost = domain.OnLostAuto },
	} {
		stays := f.oneStep(f.run(f.job(change)))
		require.Equal(t, store.OfferGone, giveBack(stays), name)
		require.Equal(t, stays, f.find(stays), name)
	}
}

// oneStep offers a run to the fixture's instance in one step.
func (f *fixture) oneStep(e domain.Execution) domain.Execution {
	f.t.Helper()
	got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: 3, Instance: f.instance, Idempotent: true, Granted: true}})
	f.ok(err)
	require.Equal(f.t, store.OfferMade, got[0].Status)
	return got[0].Execution
}

func testOfferRace(t *testing.T, f *fixture) {
	j := f.job(nil)
	for range 5 {
		e := f.run(j)
		var made atomic.Int32
		race(4, func(i int) {
			got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: domain.NodeID(i + 1), Instance: f.instance}})
			if err != nil {
				t.Errorf("offer: %v", err)
			} else if got[0].Status == store.OfferMade {
				made.Add(1)
			}
		})
		require.EqualValues(t, 1, made.Load())
		require.EqualValues(t, 1, f.find(e).Fence)
	}
}

func testOfferNotDueYet(t *testing.T, f *fixture) {
	e := f.runAt(f.job(nil), f.now().Add(time.Minute))
	got := f.offer(store.OfferGone, e)
	require.Equal(t, domain.Due, got.State, "the caller sees why")
	require.Equal(t, e.NotBefore, got.NotBefore)
	require.Zero(t, f.find(e).Fence)
	got = f.offerTo(f.instance, domain.Execution{ID: domain.ExecutionID(ids.Next())})[0].Execution
	require.Zero(t, got.ID)
}

func testGrantGuards(t *testing.T, f *fixture) {
	e := f.offer(store.OfferMade, f.run(f.job(nil)))
	refused := func(g store.GrantRequest) {
		t.Helper()
		got, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{g})
		f.ok(err)
		require.False(t, got[0].Granted)
	}
	good := store.GrantRequest{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance}
	other := good
	other.Fence++
	refused(other)
	other = good
	other.Instance++
	refused(other)
	other = good
	other.ID = domain.ExecutionID(ids.Next())
	refused(other)
	require.Equal(t, e, f.find(e), "nothing moved")
	f.age(e, domain.OfferTTL)
	refused(good)
	require.Equal(t, domain.Offered, f.find(e).State, "too late: left to the sweep")

	e = f.start(f.run(f.job(nil)))
	again, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance}})
	f.ok(err)
	require.True(t, again[0].Granted, "the attempt has its grant; a refusal would make the instance forget it")
	require.Equal(t, e, f.find(e), "granted once")
	refused(store.GrantRequest{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance + 1})
}

func testGiveBack(t *testing.T, f *fixture) {
	e := f.offer(store.OfferMade, f.run(f.job(nil)))
	back := store.GiveBack{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused, Message: "full", Wait: time.Minute}
	stale := back
	stale.Fence--
	got, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{stale, back, back})
	f.ok(err)
	require.Equal(t, store.OfferGone, got[0].Status)
	require.Equal(t, store.OfferMade, got[1].Status)
	require.Equal(t, store.OfferGone, got[2].Status)
	after := f.find(e)
	require.Equal(t, domain.Due, after.State)
	require.Equal(t, domain.ReasonOfferRefused, after.Reason)
	require.Equal(t, "full", after.Message)
	require.True(t, after.NotBefore.After(f.now()))
	require.EqualValues(t, 1, after.Fence)
	f.age(e, time.Minute)
	require.EqualValues(t, 2, f.offer(store.OfferMade, e).Fence)
}

func testWaitsAndStarts(t *testing.T, f *fixture) {
	j := f.job(nil)
	e := f.run(j)
	f.wait([]store.Wait{
		{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "none online", For: time.Minute},
		{Tenant: f.tenant, ID: domain.ExecutionID(ids.Next()), Reason: domain.ReasonWaitInstance},
	})
	got := f.find(e)
	require.Equal(t, domain.ReasonWaitInstance, got.Reason)
	require.WithinDuration(t, f.now().Add(time.Minute), got.WakeAt, 10*time.Second)
	require.Len(t, got.Delays, 1)
	f.wait([]store.Wait{{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "none online"}})
	offered := f.offer(store.OfferMade, e)
	_, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{
		Tenant: f.tenant, ID: e.ID, Fence: offered.Fence, Instance: offered.Instance, Reason: domain.ReasonOfferRefused, Message: "busy",
	}})
	f.ok(err)

	r := f.start(e)
	delays := f.find(e).Delays
	require.Len(t, delays, 2, "what kept it stays for those who ask")
	require.Equal(t, 2, delays[0].Count)
	require.Equal(t, "none online", delays[0].Message)
	require.Equal(t, r.Instance, delays[1].Instance)
	f.wait([]store.Wait{{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance}})
	require.Empty(t, f.find(e).Reason, "a running one does not wait")
	at := r.GrantedAt.Add(-time.Hour)
	f.ok(f.s.RecordStarts(f.ctx, []store.Start{{Tenant: f.tenant, ID: e.ID, Fence: r.Fence - 1, Instance: r.Instance, StartedAt: at}}))
	require.True(t, f.find(e).StartedAt.IsZero(), "stale fence")
	f.ok(f.s.RecordStarts(f.ctx, []store.Start{{Tenant: f.tenant, ID: e.ID, Fence: r.Fence, Instance: r.Instance, StartedAt: at}}))
	require.Equal(t, r.GrantedAt, f.find(e).StartedAt, "bounded by the grant")
}

func testFinishCodes(t *testing.T, f *fixture) {
	e := f.start(f.run(f.job(nil)))
	stale := f.report(e, domain.OutcomeSucceeded)
	stale.Report.Fence--
	unknown := f.report(e, domain.OutcomeSucceeded)
	unknown.Report.ExecutionID = domain.ExecutionID(ids.Next())
	foreign := f.report(e, domain.OutcomeSucceeded)
	foreign.Executor++
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{stale, unknown, foreign, f.report(e, domain.OutcomeSucceeded), f.report(e, domain.OutcomeFailed)})
	f.ok(err)
	var codes []store.FinishCode
	for _, r := range got {
		codes = append(codes, r.Code)
	}
	require.Equal(t, []store.FinishCode{store.FinishStale, store.FinishNotFound, store.FinishNotFound, store.FinishStored, store.FinishDuplicate}, codes)
	require.Zero(t, got[1].Execution.ID)
	require.Equal(t, domain.Succeeded, f.find(e).State)
	require.Equal(t, store.FinishDuplicate, f.finish(e, domain.OutcomeFailed).Code)

	// A journal that proves "never started" gives the attempt back.
	e = f.start(f.run(f.job(nil)))
	require.Equal(t, store.FinishStored, f.finish(e, domain.OutcomeNeverStarted).Code)
	require.Equal(t, domain.Due, f.find(e).State)
	require.Zero(t, f.find(e).Attempt)
	require.Equal(t, store.FinishDuplicate, f.finish(e, domain.OutcomeNeverStarted).Code)

	// Also when it was given up before.
	e = f.start(f.run(f.job(nil)))
	require.Equal(t, domain.Lost, f.finish(e, domain.OutcomeUnknown).Execution.State)
	require.Equal(t, store.FinishStored, f.finish(e, domain.OutcomeNeverStarted).Code)
	require.Equal(t, domain.Due, f.find(e).State)
	f.offer(store.OfferMade, f.find(e))
}

func testRetry(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		s.Blocking = domain.BlockSerial
		s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Minute}
	})
	e := f.start(f.run(j))
	report := f.report(e, domain.OutcomeFailed)
	report.Report.ErrorKind, report.Report.Error, report.Report.Stack = "error", "no \"disk\"\n\t\\ left", strings.Repeat("frame\n", 100)
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
	f.ok(err)
	require.Equal(t, domain.RetryWait, got[0].Execution.State)
	require.False(t, got[0].Execution.HoldsSlot)
	require.Equal(t, got[0].Execution, f.find(e))
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, attempts, 1)
	require.Equal(t, domain.Failed, attempts[0].State)
	require.Equal(t, report.Report.Error, attempts[0].Error)
	require.Equal(t, report.Report.Stack, attempts[0].Stack)
	require.Empty(t, f.alertKinds(e), "not the last attempt")

	f.offer(store.OfferGone, e) // not before the delay is over
	f.age(e, time.Minute)
	second := f.start(e)
	require.Equal(t, 2, second.Attempt)
	numbers := func() (out []int) {
		attempts, err := f.s.ListAttempts(f.ctx, f.tenant, e.ID)
		f.ok(err)
		return domain.Collect(attempts, func(a *domain.Attempt) int { return a.Number })
	}
	require.Equal(t, []int{1, 2}, numbers())
	f.finish(second, domain.OutcomeNeverStarted)
	require.Equal(t, []int{1}, numbers(), "it gave its number back")
	f.offer(store.OfferMade, f.find(e))
	require.Equal(t, []int{1}, numbers(), "an offer has no number yet")
	offered := f.find(e)
	_, err = f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: e.ID, Fence: offered.Fence, Instance: f.instance}})
	f.ok(err)
	second = f.find(e)
	require.Empty(t, second.Error)
	view, err := f.s.FindExecution(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Equal(t, attempts[0].StartedAt, view.FirstStartAt)
	require.False(t, view.FirstStartAt.IsZero())
	require.Zero(t, view.StartedAt, "the second one has not begun")
	require.Equal(t, store.FinishStale, f.finish(e, domain.OutcomeSucceeded).Code, "the first attempt is over")
	require.Equal(t, domain.Failed, f.finish(second, domain.OutcomeFailed).Execution.State)
	attempts, err = f.s.ListAttempts(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, attempts, 2)
	require.EqualValues(t, 3, attempts[1].Fence)

	// It is cancelled, and its executor proves that it never began.
	e = f.start(f.run(j))
	f.finish(e, domain.OutcomeFailed)
	f.age(e, time.Minute)
	f.start(e)
	_, err = f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
	f.ok(err)
	f.finish(f.find(e), domain.OutcomeNeverStarted)
	require.Equal(t, domain.Cancelled, f.find(e).State)
	require.Equal(t, []int{1}, numbers())
}

func testLateResult(t *testing.T, f *fixture) {
	// Lost, then the result comes after all.
	e := f.start(f.run(f.job(nil)))
	require.Equal(t, domain.Lost, f.finish(e, domain.OutcomeUnknown).Execution.State)
	late := f.finish(e, domain.OutcomeSucceeded)
	require.Equal(t, store.FinishStored, late.Code)
	require.Equal(t, domain.Succeeded, f.find(e).State)

	// Waiting for a repetition, then the result comes: no repetition.
	j := f.job(func(s *domain.JobSpec) {
		s.OnLost, s.Retry = domain.OnLostRetry, domain.Retry{MaxAttempts: 3, Delay: time.Hour}
	})
	e = f.start(f.run(j))
	require.Equal(t, domain.RetryWait, f.finish(e, domain.OutcomeUnknown).Execution.State)
	require.Equal(t, store.FinishStored, f.finish(e, domain.OutcomeSucceeded).Code)
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, attempts, 1, "the archived attempt is settled, not doubled")
	require.Equal(t, domain.Succeeded, attempts[0].State)

	// A newer attempt runs: the late result is kept where people can read it.
	e = f.start(f.run(j))
	f.finish(e, domain.OutcomeUnknown)
	f.age(e, time.Minute)
	second := f.start(e)
	report := f.report(e, domain.OutcomeFailed)
	report.Report.Error = "too late"
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
	f.ok(err)
	require.Equal(t, store.FinishStale, got[0].Code)
	require.Equal(t, second, f.find(e))
	attempts, err = f.s.ListAttempts(f.ctx, f.tenant, e.ID)
	f.ok(err)
	require.Len(t, attempts, 2)
	require.Equal(t, domain.Failed, attempts[0].State)
	require.Equal(t, "too late", attempts[0].Error)
}

// Results of a megabyte each go through in one batch.
func testLargeResults(t *testing.T, f *fixture) {
	j := f.job(nil)
	var es []domain.Execution
	for range 8 {
		es = append(es, f.run(j))
	}
	var grants []store.GrantRequest
	for _, r := range f.offerTo(f.instance, es...) {
		grants = append(grants, store.GrantRequest{Tenant: f.tenant, ID: r.Execution.ID, Fence: 1, Instance: f.instance})
	}
	_, err := f.s.GrantOffers(f.ctx, grants)
	f.ok(err)
	var reports []store.AttemptReport
	for i, e := range es {
		e.Fence = 1
		r := f.report(e, domain.OutcomeSucceeded)
		r.Report.Output = bytes.Repeat([]byte{'\'', byte(i), 0xff, '\\'}, 1<<18)
		reports = append(reports, r)
	}
	_, err = f.s.FinishAttempts(f.ctx, reports)
	f.ok(err)
	for i, e := range es {
		require.True(t, bytes.Equal(reports[i].Report.Output, f.find(e).Output), "execution %d", i)
	}
}

// testMixedBatch moves executions that have nothing in common in one statement.
func testMixedBatch(t *testing.T, f *fixture) {
	a := f.start(f.run(f.job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Minute} })))
	b := f.start(f.run(f.job(func(s *domain.JobSpec) { s.Blocking, s.Timeout = domain.BlockSerial, time.Hour })))
	c := f.start(f.run(f.job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })))
	d := f.start(f.run(f.job(nil)))
	reports := []store.AttemptReport{
		f.report(a, domain.OutcomeFailed), f.report(b, domain.OutcomeSucceeded), f.report(c, domain.OutcomeTimedOut), f.report(d, domain.OutcomeFailed),
	}
	reports[0].Report.Error, reports[0].Report.RetryAfter = "first \u2028 \x00 ‰", time.Hour
	reports[1].Report.Output = []byte{0, 1, 2}
	reports[2].Report.Error = strings.Repeat("ü", 3000)
	reports[3].Report.Error, reports[3].Report.ErrorKind = "not \xff utf-8", "panic"
	got, err := f.s.FinishAttempts(f.ctx, reports)
	f.ok(err)
	for i, e := range []domain.Execution{a, b, c, d} {
		require.Equal(t, store.FinishStored, got[i].Code)
		require.Equal(t, got[i].Execution, f.find(e), "execution %d", i)
	}
	require.Equal(t, "first \u2028 \x00 ‰", got[0].Execution.Error)
	require.Equal(t, []byte{0, 1, 2}, got[1].Execution.Output)
	require.Equal(t, strings.Repeat("ü", 3000), got[2].Execution.Error)
	require.Len(t, []rune(got[2].Execution.Message), 1024, "a message is cut to its column")
	require.Equal(t, "not \uFFFD utf-8", got[3].Execution.Error)
	require.Equal(t, domain.ReasonHandlerPanic, got[3].Execution.Reason)
}

func testCancel(t *testing.T, f *fixture) {
	j := f.job(nil)
	cancel := func(e domain.Execution) (domain.Execution, error) {
		return f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "by anna")
	}
	waiting := f.run(j)
	got, err := cancel(waiting)
	f.ok(err)
	require.Equal(t, domain.Cancelled, got.State)
	require.Equal(t, got, f.find(waiting))
	f.offer(store.OfferGone, waiting)
	_, err = cancel(waiting)
	f.code(domain.CodeAlreadyFinished, err)

	running := f.start(f.run(j))
	got, err = cancel(running)
	f.ok(err)
	require.Equal(t, domain.Cancelling, got.State)
	stop := f.find(running).Delays[len(got.Delays)-1]
	require.WithinDuration(t, f.now(), stop.At, 10*time.Second)
	require.Equal(t, domain.Delay{At: stop.At, LastAt: stop.At, Count: 1, Reason: domain.ReasonKilled, Message: "by anna", Stop: true}, stop)
	again, err := cancel(running)
	f.ok(err)
	require.Equal(t, got, again)
	require.Equal(t, domain.Cancelled, f.finish(running, domain.OutcomeCancelled).Execution.State)
	require.Equal(t, domain.ReasonKilled, f.find(running).Reason)

	_, err = cancel(domain.Execution{ID: domain.ExecutionID(ids.Next())})
	f.code(domain.CodeNotFound, err)
}
