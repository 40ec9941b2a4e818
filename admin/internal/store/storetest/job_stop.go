package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testPauses: a pause belongs to its author, however many others pause and resume
// their own in a loop over all jobs.
func testPauses(t *testing.T, f *fixture) {
	next := f.now().Add(time.Hour)
	spec := f.job(nil).Spec
	spec.Name = "born paused"
	born, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, Spec: spec,
		Source: domain.SourceConsole, State: domain.JobPaused, CreatedBy: "anna",
	}, at(next))
	f.ok(err)
	require.Equal(t, domain.Pause{By: "anna", At: born.CreatedAt}, born.Pause)
	annas, bens, viaMCP := f.jobFiring(next, nil), f.jobFiring(next, nil), f.jobFiring(next, nil)
	set := func(j store.JobView, p store.SetJobStateParams) store.JobView {
		t.Helper()
		p.Tenant, p.ID, p.Next = f.tenant, j.ID, at(next)
		view, err := f.s.SetJobState(f.ctx, p)
		f.ok(err)
		return view
	}
	set(annas, store.SetJobStateParams{State: domain.JobPaused, By: "anna", Note: "broken"})
	set(viaMCP, store.SetJobStateParams{State: domain.JobPaused, By: "ben via mcp"})
	for _, j := range []store.JobView{born, annas, bens, viaMCP} {
		set(j, store.SetJobStateParams{State: domain.JobPaused, By: "ben", Note: "migration"})
	}
	for _, j := range []struct {
		store.JobView
		state domain.JobState
		by    string
		note  string
	}{{born, domain.JobPaused, "anna", ""}, {annas, domain.JobPaused, "anna", "broken"}, {bens, domain.JobEnabled, "", ""}, {viaMCP, domain.JobEnabled, "", ""}} {
		got := set(j.JobView, store.SetJobStateParams{State: domain.JobEnabled, By: "ben", Mine: true})
		require.Equal(t, []any{j.state, j.by, j.note}, []any{got.State, got.Pause.By, got.Pause.Note}, j.Spec.Name)
	}
	f.setExecutor(domain.ExecutorDisabled, "")
	set(bens, store.SetJobStateParams{State: domain.JobPaused, By: "carillon", Hold: int64(f.executor), Note: "the executor is disabled"})
	taken := set(bens, store.SetJobStateParams{State: domain.JobPaused, By: "ben", Note: "mine"}).Pause
	require.Equal(t, []string{"ben", "mine"}, []string{taken.By, taken.Note}, "a pause of the server gives way to a person's")
}

func testPauseTakesBack(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	es := f.fire(j, now.Add(-4*time.Second), now.Add(-3*time.Second), now.Add(-2*time.Second), now.Add(time.Hour))
	running := f.start(es[0])
	f.offer(store.OfferBlocked, es[1])
	manual := f.run(j)
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
	f.ok(err)
	for _, e := range es[1:3] {
		after := f.find(e)
		require.Equal(t, domain.Cancelled, after.State)
		require.Equal(t, domain.ReasonPaused, after.Reason)
		f.offer(store.OfferGone, e)
	}
	_, err = f.s.FindExecution(f.ctx, f.tenant, es[3].ID)
	f.code(domain.CodeNotFound, err) // planned ahead: taken back
	f.offer(store.OfferGone, es[3])
	require.Equal(t, domain.Running, f.find(running).State)
	require.Equal(t, domain.Due, f.find(manual).State)
	f.finish(running, domain.OutcomeSucceeded)
	f.start(manual) // a paused job may be run by hand

	// What an instance had been offered is withdrawn: it gets no grant.
	j = f.job(nil)
	offered := f.offer(store.OfferMade, f.fire(j, now)[0])
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
	f.ok(err)
	got, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.False(t, got[0].Granted)
	require.Equal(t, domain.Cancelled, f.find(offered).State)

	// Resumed, the same instants may be planned again.
	require.Len(t, f.fire(j, now.Add(time.Hour)), 1)
}

func testDeleteEndsAll(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Hour} })
	now := f.now()
	es := f.fire(j, now.Add(-2*time.Second), now.Add(-time.Second), now)
	retry := f.start(es[0])
	f.finish(retry, domain.OutcomeFailed)
	running := f.start(es[1])
	manual := f.runAt(j, now.Add(time.Hour))
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	require.Equal(t, domain.Cancelled, f.find(retry).State)
	require.Equal(t, domain.ReasonDeleted, f.find(retry).Reason)
	require.Equal(t, domain.Running, f.find(running).State)
	require.Equal(t, domain.Cancelled, f.find(es[2]).State)
	require.Equal(t, domain.Cancelled, f.find(manual).State)
	require.Equal(t, store.FinishStored, f.finish(running, domain.OutcomeSucceeded).Code)
	view, err := f.s.FindExecution(f.ctx, f.tenant, running.ID)
	f.ok(err)
	require.Equal(t, j.Spec.Name, view.JobName, "runs of a deleted job stay readable")
}

// Pause, resume, edit against claim and offer: after the answer to a pause no
// run of the schedule is offered.
func testPauseRace(t *testing.T, f *fixture) {
	j := f.job(serial)
	for round := range 8 {
		base := f.now()
		f.setNext(j, base.Add(-time.Second))
		var mu sync.Mutex
		var known []domain.Execution
		revision := int64(0)
		if current, err := f.s.FindJob(f.ctx, f.tenant, j.ID); err == nil {
			revision = current.Revision
		}
		race(3, func(i int) {
			switch i {
			case 0:
				got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{
					Partitions: f.held, Limit: 100,
					Plan: func(now time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
						if tr.JobID != j.ID {
							return nothing(now, tr, nil)
						}
						job := j.Job
						job.Revision = tr.Revision
						return store.TriggerPlan{Executions: []domain.Execution{planned(&job, base, now), planned(&job, base.Add(time.Minute), now)}, NextFireAt: domain.Never}
					},
				})
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				mu.Lock()
				known = f.mine(got.Executions)
				mu.Unlock()
				for _, e := range f.mine(got.Executions) {
					if _, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: 1, Instance: f.instance}}); err != nil {
						t.Errorf("offer: %v", err)
					}
				}
			case 1:
				_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
				if err != nil {
					t.Errorf("pause: %v", err)
				}
			case 2:
				_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, IfRevision: revision, Spec: j.Spec, Next: at(domain.Never)})
				if err != nil {
					t.Errorf("edit: %v", err)
				}
			}
		})
		for _, e := range known {
			f.offer(store.OfferGone, e)
			if view, err := f.s.FindExecution(f.ctx, f.tenant, e.ID); err == nil {
				require.Equal(t, domain.Cancelled, view.State, "round %d", round)
			} else {
				f.code(domain.CodeNotFound, err)
			}
		}
		require.Empty(t, f.claim(nothing))
	}
}

// testStoppedMeanwhile: what was on an instance when its job was stopped, and
// comes back to be offered again, is not (P11).
func testStoppedMeanwhile(t *testing.T, f *fixture) {
	for _, c := range []struct {
		state   domain.JobState
		outcome domain.Outcome
		want    domain.State
		reason  domain.Reason
	}{
		{domain.JobPaused, domain.OutcomeNeverStarted, domain.Cancelled, domain.ReasonPaused},
		{domain.JobDeleted, domain.OutcomeNeverStarted, domain.Cancelled, domain.ReasonDeleted},
		{domain.JobDeleted, domain.OutcomeFailed, domain.Cancelled, domain.ReasonDeleted},
		{domain.JobPaused, domain.OutcomeFailed, domain.Offered, ""}, // it had begun: its tries go on
	} {
		j := f.job(func(s *domain.JobSpec) { s.Retry, s.Blocking = domain.Retry{MaxAttempts: 2}, domain.BlockSerial })
		e := f.start(f.fire(j, f.now().Add(-time.Second))[0])
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: c.state})
		f.ok(err)
		require.Equal(t, domain.Running, f.find(e).State, "it is left alone")
		f.finish(e, c.outcome)
		back := f.find(e)
		require.Contains(t, []domain.State{domain.Due, domain.RetryWait}, back.State)
		want := store.OfferDiscarded
		if c.reason == "" {
			want = store.OfferMade
		}
		require.Equal(t, want, f.offerTo(f.instance, back)[0].Status)
		back = f.find(e)
		require.Equal(t, c.want, back.State)
		require.Equal(t, c.reason, back.Reason)
		require.Equal(t, c.reason == "", back.HoldsSlot)
	}
}
