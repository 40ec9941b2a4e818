package dispatch

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (r *rig) refuse(from *instance, o store.OfferResult) {
	from.Release(o.Execution.ID, o.Execution.Fence) // as the session does
	r.d.Answered(Answer{Tenant: r.Tenant, From: from, ID: o.Execution.ID, Fence: o.Execution.Fence, Code: "draining", Message: "it stops"})
	synctest.Wait()
}

// TestASendThatIsRefusedGoesToAnother, after the job's own pause, and costs no
// attempt.
func TestASendThatIsRefusedGoesToAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first, second := r.join(5, nil), r.join(5, nil)
		run := r.Run(r.Job(func(s *domain.JobSpec) {
			s.SendRetry = domain.SendRetry{Delay: 2 * time.Second, Backoff: 2}
		}), time.Now())
		r.fire(run)
		r.refuse(first, one(t, first.sent()))
		time.Sleep(2*time.Second - time.Millisecond)
		synctest.Wait()
		require.Empty(t, second.sent())
		time.Sleep(time.Millisecond)
		synctest.Wait()
		o := one(t, second.sent())
		require.Equal(t, int64(2), o.Execution.Fence)
		r.refuse(second, o)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		o = one(t, first.sent())
		r.accept(first, o)
		after := r.Find(run.ID)
		require.Equal(t, domain.Running, after.State)
		require.Equal(t, 1, after.Attempt)
		require.Equal(t, 2, after.Sends().Failed())
	})
}

// TestAFullInstanceUsesUpNoSends: it has been reached, and is asked again.
func TestAFullInstanceUsesUpNoSends(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(5, nil)
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.SendRetry = domain.SendRetry{MaxSends: 2} }), time.Now())
		r.fire(run)
		for range 10 {
			o := one(t, to.sent())
			to.Release(o.Execution.ID, o.Execution.Fence)
			r.d.Answered(Answer{Tenant: r.Tenant, From: to, ID: o.Execution.ID, Fence: o.Execution.Fence, Code: "busy"})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		r.accept(to, one(t, to.sent()))
		after := r.Find(run.ID)
		require.Equal(t, domain.Running, after.State)
		require.Zero(t, after.Sends().Failed())
	})
}

func TestTheLastSendEndsTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(5, nil)
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.SendRetry = domain.SendRetry{MaxSends: 2} }), time.Now())
		r.fire(run)
		for range 2 {
			r.refuse(to, one(t, to.sent()))
			time.Sleep(time.Second)
			synctest.Wait()
		}
		require.Empty(t, to.sent())
		after := r.Find(run.ID)
		require.Equal(t, domain.Failed, after.State)
		require.Equal(t, domain.ReasonSendFailed, after.Reason)
		require.Equal(t, run.ID, one(t, r.ended).ID)
		require.Empty(t, to.taken)
		require.Equal(t, domain.AlertRunFailed, one(t, r.Alerts()).Kind)
	})
}

// TestSendsToSessionsThatBreakAreCountedToo.
func TestSendsToSessionsThatBreakAreCountedToo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first, second := r.join(5, nil), r.join(5, nil)
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.Routing = domain.RouteFirst }), time.Now())
		r.fire(run)
		o := one(t, first.sent())
		r.fleet.leave(first)
		r.d.Left(r.Tenant, first.id, map[domain.ExecutionID]int64{run.ID: o.Execution.Fence})
		r.d.Moved(r.Executor)
		synctest.Wait()
		require.Equal(t, run.ID, one(t, second.sent()).Execution.ID, "first is the second one now")
		after := r.Find(run.ID)
		require.Equal(t, 1, after.Sends().Failed())
	})
}

// TestARunThatWaitsSaysHowManySlotsAreTaken.
func TestARunThatWaitsSaysHowManySlotsAreTaken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for range 2 {
			r.join(1, func(i *instance) { i.load = Load{Taken: 1, Of: 1} })
		}
		j := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockParallel })
		runs := []domain.Execution{r.Run(j, time.Now()), r.Run(j, time.Now()), r.Run(j, time.Now())}
		r.fire(runs...)
		r.settle()
		require.Equal(t, "every instance that serves the handler is full (2 of 2 slots are taken)", r.Find(runs[2].ID).Message)
	})
}

// TestARunThatWaitsSaysWhoRefuses: an instance that cannot write its journal is
// not full.
func TestARunThatWaitsSaysWhoRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(0, func(i *instance) { i.load = Load{Taken: 1, Of: 64, Refusing: true} })
		j := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockParallel })
		run := r.Run(j, time.Now())
		r.fire(run)
		r.settle()
		require.Equal(t, "no instance that serves the handler can write its journal", r.Find(run.ID).Message)
		r.join(1, func(i *instance) { i.load = Load{Taken: 1, Of: 1} })
		runs := []domain.Execution{r.Run(j, time.Now()), r.Run(j, time.Now())}
		r.fire(runs...)
		r.settle()
		require.Equal(t, "every instance that could take it is full (1 of 1 slots are taken), and 1 cannot write their journals", r.Find(runs[1].ID).Message)
	})
}

// TestUnheardOneStepOffersGoElsewhereAtOnce, and the first instance is told so.
func TestUnheardOneStepOffersGoElsewhereAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		safe := func(i *instance) { i.idempotent = true }
		first, second := r.join(5, safe), r.join(5, safe)
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.Routing, s.OnLost = domain.RouteFirst, domain.OnLostAuto }), time.Now())
		r.fire(run)
		o := one(t, first.sent())
		first.handler = "none" // it is in doubt: there for cancels, and for nothing else
		began := time.Now()
		r.d.Unheard(r.Tenant, first.id, map[domain.ExecutionID]int64{run.ID: o.Execution.Fence})
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		again := one(t, second.sent())
		require.Equal(t, run.ID, again.Execution.ID)
		require.Equal(t, o.Execution.Fence+1, again.Execution.Fence)
		require.LessOrEqual(t, time.Since(began), 100*time.Millisecond)
		told := one(t, first.cancels)
		require.Equal(t, o.Execution.Fence, told.Fence)
		require.Equal(t, domain.ReasonLeaseLost, told.Reason, "the run is not killed: it goes on")
		after := r.Find(run.ID)
		require.Zero(t, after.Sends().Failed())
	})
}

// TestThePinnedMoveWithTheirInstance: they wait while it is full, take nobody
// else's room, and take the next one as soon as it is gone.
func TestThePinnedMoveWithTheirInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var waits atomic.Int32
		r.store.fail(func(method string) error {
			if method == "RecordWaits" {
				waits.Add(1)
			}
			return nil
		}, nil)
		first, second := r.join(1, nil), r.join(1, nil)
		pinned := r.Job(func(s *domain.JobSpec) { s.Routing = domain.RouteFirst })
		runs := []domain.Execution{r.Run(pinned, time.Now()), r.Run(pinned, time.Now())}
		r.fire(runs...)
		require.Equal(t, runs[0].ID, one(t, first.sent()).Execution.ID)
		require.Empty(t, second.sent())
		r.settle()
		require.Equal(t, "the one instance that the routing strategy first takes is full", r.Find(runs[1].ID).Message)
		require.Equal(t, int32(1), waits.Load(), "room elsewhere is none for it")
		r.d.SlotsFreed(r.Executor, 0, 1)
		synctest.Wait()
		require.Equal(t, int32(1), waits.Load())

		free := r.Run(r.Job(nil), time.Now())
		r.fire(free)
		require.Equal(t, free.ID, one(t, second.sent()).Execution.ID, "others are not held up")
		second.Release(free.ID, 1)
		r.fleet.leave(first)
		r.d.Moved(r.Executor)
		synctest.Wait()
		require.Equal(t, runs[1].ID, one(t, second.sent()).Execution.ID)
	})
}

// TestWhoNeedsLabelsWaitsForThem, without a round for every room elsewhere.
func TestWhoNeedsLabelsWaitsForThem(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var waits atomic.Int32
		r.store.fail(func(method string) error {
			if method == "RecordWaits" {
				waits.Add(1)
			}
			return nil
		}, nil)
		plain := r.join(5, nil)
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.Require = selector(t, "gpu, zone=eu") }), time.Now())
		r.fire(run)
		r.settle()
		require.Equal(t, "no connected instance that serves the handler has the labels gpu, zone=eu", r.Find(run.ID).Message)
		r.d.SlotsFreed(r.Executor, 0, 5)
		synctest.Wait()
		require.Empty(t, plain.sent())
		require.Equal(t, int32(1), waits.Load())
		gpu := r.join(1, func(i *instance) { i.traits.Labels = map[string]string{"gpu": "a100", "zone": "eu"} })
		r.d.SlotsFreed(r.Executor, 0, 1)
		synctest.Wait()
		require.Equal(t, run.ID, one(t, gpu.sent()).Execution.ID)
	})
}

// TestBlockedRunsTakeNoTurn: a run that is not offered gives its turn back.
func TestBlockedRunsTakeNoTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.join(5, nil), r.join(5, nil)
		job := r.Job(func(s *domain.JobSpec) { s.Routing, s.Blocking = domain.RouteRoundRobin, domain.BlockSerial })
		first := r.Run(job, time.Now())
		r.fire(first)
		from, other := a, b
		if len(b.taken) > 0 {
			from, other = b, a
		}
		o := one(t, from.sent())
		r.accept(from, o)
		second := r.Run(job, time.Now().Add(time.Millisecond))
		time.Sleep(time.Millisecond)
		r.fire(second)
		require.Equal(t, domain.ReasonWaitSlot, r.Find(second.ID).Reason)
		r.finish(from, o.Execution)
		synctest.Wait()
		require.Equal(t, second.ID, one(t, other.sent()).Execution.ID)
	})
}

// TestUsesAreReadFromTheRows: a new process goes on where the last one stopped.
func TestUsesAreReadFromTheRows(t *testing.T) {
	for _, routing := range []domain.Routing{domain.RouteRoundRobin, domain.RouteLeastRecentlyUsed, domain.RouteLeastFrequentlyUsed} {
		t.Run(string(routing), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				all := []*instance{r.join(50, nil), r.join(50, nil), r.join(50, nil)}
				job := r.Job(func(s *domain.JobSpec) { s.Routing = routing })
				turn := func() int {
					time.Sleep(time.Millisecond)
					r.fire(r.Run(job, time.Now()))
					for n, i := range all {
						if len(i.sent()) > 0 {
							return n
						}
					}
					return -1
				}
				turns := []int{turn(), turn(), turn()}
				require.ElementsMatch(t, []int{0, 1, 2}, turns)
				for n := range 8 {
					require.Equal(t, turns[n], turn())
					turns = append(turns, turns[n])
					if n == 2 || n == 4 {
						r.d.choices.uses = uses{} // as in another process
					}
				}
				r.d.choices.uses = uses{}
				r.store.fail(only("RecentInstances"), nil)
				require.GreaterOrEqual(t, turn(), 0, "without an answer it goes by what is known")
				r.store.heal()
			})
		})
	}
}

// TestAFloodIsNotReadUp: jobs that nobody knows are not held up by a reading.
func TestAFloodIsNotReadUp(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var reads atomic.Int32
		r.store.fail(func(method string) error {
			if method == "RecentInstances" {
				reads.Add(1)
			}
			return nil
		}, nil)
		r.join(500, nil)
		var runs []domain.Execution
		for range 2 * maxTurnsRead {
			runs = append(runs, r.Run(r.Job(func(s *domain.JobSpec) { s.Routing = domain.RouteRoundRobin }), time.Now()))
		}
		part := func(n int) (out []domain.Execution) { // of one worker, so that they come in one batch
			for _, e := range runs {
				if e.Partition%offerWorkers == 0 && len(out) < n {
					out = append(out, e)
				}
			}
			return out
		}
		r.fire(part(2)...)
		require.Equal(t, int32(1), reads.Load())
		r.d.choices.uses = uses{}
		due, specs := r.d.specsOf(t.Context(), pointers(runs), map[place]int{})
		r.d.choices.recall(t.Context(), due, specs)
		require.Equal(t, int32(1), reads.Load())
	})
}
