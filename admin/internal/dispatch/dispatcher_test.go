package dispatch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func TestNothingIsSentBeforeItIsCommitted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var offered, granted domain.Execution
		to := r.join(1, func(i *instance) {
			i.onOffers = func(o []store.OfferResult) { offered = r.Find(o[0].Execution.ID) }
			i.onGrants = func(g []Grant) { granted = r.Find(g[0].ID) }
		})
		run := r.Run(r.Job(nil), time.Now())

		r.fire(run)
		o := one(t, to.sent())
		require.Equal(t, domain.Offered, offered.State, "as another connection saw it while the offer went out")
		require.Equal(t, offered, o.Execution)
		require.Equal(t, run.Fence+1, o.Execution.Fence)
		require.Equal(t, to.id, o.Execution.Instance)
		require.Equal(t, domain.NodeID(7), o.Execution.Node)
		require.Equal(t, "close-day", o.Spec.Handler)
		require.Zero(t, o.Execution.Attempt)
		require.Empty(t, to.told(), "nothing starts before the answer")

		r.accept(to, o)
		require.Equal(t, Grant{run.ID, offered.Fence, true}, one(t, to.told()))
		require.Equal(t, domain.Running, granted.State)
		require.Equal(t, 1, granted.Attempt)
	})
}

func TestIdempotentHandlersTakeOneStep(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var seen domain.Execution
		to := r.join(1, func(i *instance) {
			i.idempotent = true
			i.onOffers = func(o []store.OfferResult) { seen = r.Find(o[0].Execution.ID) }
		})
		r.fire(r.Run(r.Job(nil), time.Now()))
		o := one(t, to.sent())
		require.Equal(t, domain.Running, seen.State, "granted before the offer went out")
		require.Equal(t, seen, o.Execution)
		require.True(t, o.Execution.Idempotent)
		require.Equal(t, 1, o.Execution.Attempt)
		require.Empty(t, to.told())
	})
}

// TestStaleCopiesAreOfferedUnderTheRealFence: what the timer held may be older
// than the row.
func TestStaleCopiesAreOfferedUnderTheRealFence(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(2, nil)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		first := one(t, to.sent())
		to.Release(run.ID, first.Execution.Fence)
		time.Sleep(domain.OfferTTL)
		_, err := r.S.SweepExecutions(t.Context(), store.SweepParams{Partitions: []int{run.Partition}, Limit: 10})
		require.NoError(t, err)
		r.fire(run) // fence 0 in this copy, 1 in the row
		o := one(t, to.sent())
		require.Equal(t, int64(2), o.Execution.Fence)
		require.Equal(t, map[attempt]int{{run.ID, 2}: 1}, to.taken, "the room is held under the fence that was sent")
	})
}

func TestARefusedOfferComesBackAfterItsWait(t *testing.T) {
	for code, want := range map[string]struct {
		wait   time.Duration
		reason domain.Reason
	}{
		"busy":                {200 * time.Millisecond, domain.ReasonOfferRefused},
		"unknown_handler":     {2 * time.Second, domain.ReasonUnknownHandler},
		"journal_unavailable": {time.Second, domain.ReasonOfferRefused},
		"draining":            {100 * time.Millisecond, domain.ReasonOfferRefused},
	} {
		t.Run(code, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				to := r.join(1, nil)
				run := r.Run(r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial }), time.Now())
				r.fire(run)
				o := one(t, to.sent())
				to.Release(run.ID, o.Execution.Fence) // as the session does
				r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: run.ID, Fence: o.Execution.Fence, Code: code, Message: "sorry"})
				synctest.Wait()

				back := one(t, r.postponed())
				require.Equal(t, back, r.Find(run.ID))
				require.Equal(t, domain.Due, back.State)
				require.Equal(t, want.reason, back.Reason)
				require.Equal(t, code+": sorry", back.Message)
				require.True(t, back.HoldsSlot, "it keeps its place")
				require.Equal(t, time.Now().Add(want.wait).UnixMilli(), back.NotBefore.UnixMilli())

				time.Sleep(want.wait - time.Millisecond)
				require.Empty(t, to.sent())
				time.Sleep(time.Millisecond)
				synctest.Wait()
				require.Equal(t, int64(2), one(t, to.sent()).Execution.Fence)
			})
		})
	}
}

func TestAnExpiredOfferIsNotGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		o := one(t, to.sent())
		time.Sleep(domain.OfferTTL)
		r.accept(to, o)
		require.Equal(t, Grant{run.ID, o.Execution.Fence, false}, one(t, to.told()), "the instance is told not to wait")
		require.Equal(t, domain.Offered, r.Find(run.ID).State, "the sweep takes it back")
	})
}

func TestAnAcceptanceOfAnOlderOfferIsNotGranted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		old := one(t, first.sent())
		r.fleet.leave(first)
		second := r.join(1, nil)
		r.d.Left(r.Tenant, first.id, map[domain.ExecutionID]int64{run.ID: old.Execution.Fence})
		synctest.Wait()
		fresh := one(t, second.sent())
		require.Equal(t, int64(2), fresh.Execution.Fence)

		r.accept(first, old)
		require.False(t, one(t, first.told()).Granted)
		r.accept(second, fresh)
		require.True(t, one(t, second.told()).Granted)
		require.Equal(t, second.id, r.Find(run.ID).Instance)
	})
}

// TestAGrantOfUnknownOutcomeIsNotSent: at most once holds, and the executor's
// word that it never started brings the run back.
func TestAGrantOfUnknownOutcomeIsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		o := one(t, to.sent())
		r.store.fail(nil, only("GrantOffers"))
		r.accept(to, o)
		r.store.heal()
		require.Empty(t, to.told())
		granted := r.Find(run.ID)
		require.Equal(t, domain.Running, granted.State, "it was committed")

		results, err := r.S.FinishAttempts(t.Context(), []store.AttemptReport{r.Report(granted, domain.OutcomeNeverStarted)})
		require.NoError(t, err)
		require.Equal(t, store.FinishStored, results[0].Code)
		back := r.Find(run.ID)
		require.Equal(t, domain.Due, back.State)
		require.Zero(t, back.Attempt, "it does not count")
		to.Release(run.ID, o.Execution.Fence)
		r.fire(back)
		again := one(t, to.sent())
		r.accept(to, again)
		require.True(t, one(t, to.told()).Granted)
		require.Equal(t, 1, r.Find(run.ID).Attempt)
	})
}

func TestADatabaseErrorReleasesTheRoomAndIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(string) error
	}{
		"the job's revision cannot be read": {before: only("JobSpec")},
		"the offer is not written":          {before: only("OfferExecutions")},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				to := r.join(1, nil)
				run := r.Run(r.Job(nil), time.Now())
				r.store.fail(c.before, c.after)
				r.fire(run)
				require.Empty(t, to.sent())
				require.Equal(t, 1, to.Free())
				wait := time.Until(one(t, r.postponed()).NotBefore)
				require.GreaterOrEqual(t, wait, 300*time.Millisecond)
				require.Less(t, wait, 700*time.Millisecond)
				r.store.heal()
				time.Sleep(700 * time.Millisecond)
				synctest.Wait()
				r.accept(to, one(t, to.sent()))
				require.Equal(t, domain.Running, r.Find(run.ID).State)
			})
		})
	}
}

// TestAnOfferOfUnknownOutcomeIsNotSent, and the next try does not send it
// either: it expires, and the sweep takes it back.
func TestAnOfferOfUnknownOutcomeIsNotSent(t *testing.T) {
	for name, idempotent := range map[string]bool{"two steps": false, "one step": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				to := r.join(1, func(i *instance) { i.idempotent = idempotent })
				run := r.Run(r.Job(nil), time.Now())
				r.store.fail(nil, only("OfferExecutions"))
				r.fire(run)
				r.store.heal()
				time.Sleep(time.Second)
				synctest.Wait()
				require.Empty(t, to.sent())
				require.Equal(t, 1, to.Free(), "released at both tries")
				require.True(t, r.Find(run.ID).State.OnInstance())
			})
		})
	}
}

func TestAJobThatIsGoneIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		run.Revision = 99
		r.fire(run)
		require.Empty(t, to.sent())
		require.Empty(t, r.postponed())
	})
}

func TestExecutionsThatAreNotDueAnyMoreAreReleased(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		_, err := r.S.RequestCancel(t.Context(), r.Tenant, run.ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		r.fire(run)
		require.Empty(t, to.sent())
		require.Equal(t, 1, to.Free())
		require.Empty(t, r.postponed())

		// By the database's clock this one is not due: the copy says otherwise.
		early := r.Run(r.Job(nil), time.Now().Add(5*time.Second))
		copied := early
		copied.NotBefore = time.Now()
		r.fire(copied)
		require.Empty(t, to.sent())
		require.Equal(t, early.NotBefore.UnixMilli(), one(t, r.postponed()).NotBefore.UnixMilli())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, to.sent(), 1)
	})
}

// TestACopyThatComesAgainDoesNotFreeTheRoomOfTheAttempt: the wait queues and
// the sweep may both hold a run.
func TestACopyThatComesAgainDoesNotFreeTheRoomOfTheAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(3, nil)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run, run)
		o := one(t, to.sent())
		r.fire(run)
		r.accept(to, o)
		r.fire(run)
		require.Empty(t, to.sent())
		require.Equal(t, 2, to.Free())
	})
}

func TestDiscardLaterEndsTheNewRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(2, nil)
		job := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockDiscard })
		first, second := r.Run(job, time.Now().Add(-time.Millisecond)), r.Run(job, time.Now())
		r.fire(second, first) // the batch is put in order
		require.Equal(t, first.ID, one(t, to.sent()).Execution.ID)
		require.Equal(t, 1, to.Free())
		r.mu.Lock()
		defer r.mu.Unlock()
		ended := one(t, r.ended)
		require.Equal(t, second.ID, ended.ID)
		require.Equal(t, domain.Discarded, ended.State)
		require.Equal(t, domain.ReasonOverlap, ended.Reason)
		require.Equal(t, ended, r.Find(second.ID))
	})
}

func TestASessionThatLeavesGivesBackWhatItHadNotAccepted(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(3, nil)
		job := r.Job(nil)
		running, offered := r.Run(job, time.Now()), r.Run(job, time.Now())
		r.fire(running)
		r.accept(to, one(t, to.sent()))
		r.fire(offered)
		o := one(t, to.sent())
		r.fleet.leave(to)
		r.d.Left(r.Tenant, to.id, map[domain.ExecutionID]int64{running.ID: 1, offered.ID: o.Execution.Fence})
		synctest.Wait()
		require.Equal(t, domain.Running, r.Find(running.ID).State, "its lease decides")
		back := r.Find(offered.ID)
		require.Equal(t, domain.Due, back.State)
		require.Equal(t, domain.ReasonWaitInstance, back.Reason, "it was tried at once, and waits")

		next := r.join(1, nil)
		r.d.SlotsFreed(r.Executor, 0, 1)
		synctest.Wait()
		require.Equal(t, offered.ID, one(t, next.sent()).Execution.ID)
	})
}

// TestARefusedOneStepOfferComesBack: it counts as running from the commit on,
// but who refuses it has not started it.
func TestARefusedOneStepOfferComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, func(i *instance) { i.idempotent = true })
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		o := one(t, to.sent())
		require.Equal(t, domain.Running, r.Find(run.ID).State)
		to.Release(run.ID, o.Execution.Fence)
		r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: run.ID, Fence: o.Execution.Fence, Code: "busy"})
		synctest.Wait()
		back := r.Find(run.ID)
		require.Equal(t, domain.Due, back.State)
		require.Zero(t, back.Attempt)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 1, one(t, to.sent()).Execution.Attempt)
	})
}

// An offer that came twice has been taken: what its instance says of the second
// one takes nothing back.
func TestAnOfferThatCameTwiceStaysWhereItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, func(i *instance) { i.idempotent = true })
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		o := one(t, to.sent())
		r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: run.ID, Fence: o.Execution.Fence, Code: "duplicate"})
		synctest.Wait()
		require.Equal(t, domain.Running, r.Find(run.ID).State)
		require.Equal(t, 1, r.Find(run.ID).Attempt)
	})
}

// TestOneStepOffersAreSentAgain under the fence they have, through whatever
// session of their instance this node has.
func TestOneStepOffersAreSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, func(i *instance) { i.idempotent = true })
		r.fire(r.Run(r.Job(nil), time.Now()))
		o := one(t, to.sent())
		r.fleet.leave(to)
		r.d.Resend([]store.OfferResult{o}) // nobody is here: the next sweep tries again
		again := &instance{id: to.id, slots: 1}
		r.fleet.join(again)
		r.d.Resend([]store.OfferResult{o})
		o.Again = true // who has not got it refuses it now
		require.Equal(t, o, one(t, again.sent()))
		require.Empty(t, to.sent())
		require.Zero(t, again.Free())
	})
}

// TestAnOfferThatCameLateIsMadeAgainAtOnce: its run has not started, which is no
// failed send, and no attempt.
func TestAnOfferThatCameLateIsMadeAgainAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, func(i *instance) { i.idempotent = true })
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.SendRetry = domain.SendRetry{MaxSends: 1} }), time.Now())
		r.fire(run)
		o := one(t, to.sent())
		to.Release(run.ID, o.Execution.Fence) // as the session does
		r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: run.ID, Fence: o.Execution.Fence, Code: "old"})
		synctest.Wait()
		r.fire(one(t, r.postponed()))
		again := one(t, to.sent())
		require.Equal(t, int64(2), again.Execution.Fence)
		require.Equal(t, 1, again.Execution.Attempt)
		after := r.Find(run.ID)
		require.Zero(t, after.Sends().Failed())
	})
}

func TestCancelsReachTheSessionOfTheInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		r.d.SendCancel(domain.Execution{ID: 1, Instance: to.id})
		r.d.SendCancel(domain.Execution{ID: 2, Instance: to.id + 1})
		require.Equal(t, domain.ExecutionID(1), one(t, to.cancels).ID)
	})
}

// TestStoppingOffersNothing: what is still queued belongs to other nodes, and
// its row must not be touched.
func TestStoppingOffersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		to := r.join(1, nil)
		run, lonely := r.Run(r.Job(nil), time.Now()), r.Run(r.Job(func(s *domain.JobSpec) { s.Handler = "other" }), time.Now())
		to.handler = "close-day"
		r.d.fire([]domain.Execution{run, lonely})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r.d.Run(ctx)
		require.Empty(t, to.sent())
		require.Equal(t, run, r.Find(run.ID))
		require.Equal(t, lonely, r.Find(lonely.ID))
	})
}

// TestAnswersThatAreQueuedAtTheEndAreStillHandled, also one whose transaction
// was under way.
func TestAnswersThatAreQueuedAtTheEndAreStillHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		to := r.join(2, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.d.Run(ctx); close(done) }()
		job := r.Job(nil)
		r.fire(r.Run(job, time.Now()), r.Run(job, time.Now()))
		offers := to.sent()
		require.Len(t, offers, 2)
		answer := func(o store.OfferResult) {
			r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: o.Execution.ID, Fence: o.Execution.Fence, Accepted: true})
		}
		var once sync.Once // two workers may be at it
		r.store.fail(func(method string) error {
			if method == "GrantOffers" {
				once.Do(func() {
					answer(offers[1]) // waits behind this batch
					cancel()          // just before the statement
				})
			}
			return nil
		}, nil)
		answer(offers[0])
		<-done
		require.Len(t, to.told(), 2)
		for _, o := range offers {
			require.Equal(t, domain.Running, r.Find(o.Execution.ID).State)
		}
	})
}
