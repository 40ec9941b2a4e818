package dispatch

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// lines are those in which runs wait in the database.
func (r *rig) lines() []store.WaitingLine {
	list, err := r.S.WaitingLines(context.Background(), 0, 10)
	require.NoError(r.T, err)
	return list
}

func TestFullInstancesLetRunsWaitOldestFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		job := r.Job(nil)
		base := time.Now().Truncate(time.Millisecond)
		var runs []domain.Execution
		for i := range 4 {
			runs = append(runs, r.Run(job, base.Add(time.Duration(i)*time.Millisecond)))
		}
		r.fire(runs[0])
		first := one(t, to.sent())
		r.fire(runs[3], runs[1]) // one batch, then another: the order is that of the fire times
		r.fire(runs[2])
		require.Empty(t, to.sent())
		r.settle()
		for _, e := range runs[1:] {
			waits := r.Find(e.ID)
			require.Equal(t, domain.Due, waits.State)
			require.Equal(t, domain.ReasonWaitInstance, waits.Reason)
			require.Contains(t, waits.Message, "full")
			require.Equal(t, e.ExpireAt.UnixMilli(), waits.WakeAt.UnixMilli(), "it is this node's until its wait is over")
			require.Zero(t, waits.Fence)
		}
		r.fire(runs[1]) // swept meanwhile: it waits once
		done := first.Execution
		for _, next := range runs[1:] {
			to.Release(done.ID, done.Fence)
			r.d.SlotsFreed(r.Executor, 0, 1)
			synctest.Wait()
			done = one(t, to.sent()).Execution
			require.Equal(t, next.ID, done.ID)
		}
		to.Release(done.ID, done.Fence)
		r.d.SlotsFreed(r.Executor, 0, 5)
		synctest.Wait()
		require.Empty(t, to.sent())
	})
}

// TestAnotherHandlersWaitersAreNotInTheWay: the oldest waiter of an executor
// may need instances that are full while others have room.
func TestAnotherHandlersWaitersAreNotInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		full := r.join(0, func(i *instance) { i.handler = "bake" })
		free := r.join(0, func(i *instance) { i.handler = "fry" })
		bake := r.Job(func(s *domain.JobSpec) { s.Handler = "bake" })
		fry := r.Job(func(s *domain.JobSpec) { s.Handler = "fry" })
		r.fire(r.Run(bake, time.Now().Add(-time.Second)))
		waiting := r.Run(fry, time.Now())
		r.fire(waiting)
		free.slots = 1
		r.d.SlotsFreed(r.Executor, 0, 1)
		synctest.Wait()
		require.Equal(t, waiting.ID, one(t, free.sent()).Execution.ID)
		require.Empty(t, full.sent())
	})
}

// TestRoomThatBecomesFreeMeanwhileIsSeen: between the choice and the entry
// into the wait queues nobody would be told.
func TestRoomThatBecomesFreeMeanwhileIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(0, nil)
		r.store.fail(func(method string) error {
			if method == "RecordWaits" {
				to.mu.Lock()
				to.slots = 1 // Freed came just before: nobody waited then
				to.mu.Unlock()
			}
			return nil
		}, nil)
		run := r.Run(r.Job(serial), time.Now())
		r.fire(run)
		require.Equal(t, run.ID, one(t, to.sent()).Execution.ID)
	})
}

// TestRoomThatAnOfferDidNotUseGoesToTheNext: the two workers share instances.
func TestRoomThatAnOfferDidNotUseGoesToTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		jobs := [offerWorkers]domain.Job{}
		for jobs[0].ID == 0 || jobs[1].ID == 0 {
			job := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })
			jobs[job.Partition%offerWorkers] = job
		}
		gone, next := r.Run(jobs[0], time.Now()), r.Run(jobs[1], time.Now())
		_, err := r.S.RequestCancel(t.Context(), r.Tenant, gone.ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		gate := make(chan struct{})
		r.store.fail(func(method string) error {
			if method == "OfferExecutions" {
				<-gate
			}
			return nil
		}, nil)
		r.fire(gone) // holds the room
		r.fire(next) // by the other worker: full
		require.Equal(t, domain.ReasonWaitInstance, r.Find(next.ID).Reason, "a serial job's order is kept in the database")
		close(gate)
		synctest.Wait()
		require.Equal(t, next.ID, one(t, to.sent()).Execution.ID)
	})
}

func TestARefusedGrantGivesItsRoomToTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		job := r.Job(nil)
		slow, next := r.Run(job, time.Now()), r.Run(job, time.Now())
		r.fire(slow)
		o := one(t, to.sent())
		time.Sleep(domain.OfferTTL)
		r.fire(next)
		require.Empty(t, to.sent())
		r.accept(to, o)
		require.False(t, one(t, to.told()).Granted)
		require.Equal(t, next.ID, one(t, to.sent()).Execution.ID)
	})
}

// TestWaitsThatCannotBeRecordedStillWaitHere.
func TestWaitsThatCannotBeRecordedStillWaitHere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := r.Run(r.Job(nil), time.Now())
		r.store.fail(only("RecordWaits"), nil)
		r.fire(run)
		r.store.heal()
		to := r.join(1, nil)
		r.d.SlotsFreed(r.Executor, 0, 1)
		synctest.Wait()
		require.Equal(t, run.ID, one(t, to.sent()).Execution.ID)
	})
}

// TestAnOutageIsToldOnceToEachOwner: not once for each job, nor for each run.
func TestAnOutageIsToldOnceToEachOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		own := func(s *domain.JobSpec) { s.Owner.Email = "ops@shop.example" }
		jobs := []domain.Job{r.Job(own), r.Job(own), r.Job(func(s *domain.JobSpec) { s.Owner.Email = "books@shop.example" })}
		fire := func() {
			for _, job := range jobs {
				r.fire(r.Run(job, time.Now()))
			}
		}
		fire()
		time.Sleep(noExecutorAfter - time.Millisecond)
		r.look()
		require.Empty(t, r.Alerts(), "a restarting application is no news")
		time.Sleep(time.Millisecond)
		r.look()
		events := r.Alerts()
		require.Len(t, events, 2)
		for _, event := range events {
			require.Equal(t, domain.AlertNoExecutor, event.Kind)
		}
		require.ElementsMatch(t, []string{jobs[0].Spec.Name + ", " + jobs[1].Spec.Name, jobs[2].Spec.Name}, []string{events[0].Detail, events[1].Detail})
		fire()
		for range 10 {
			time.Sleep(time.Second)
			r.look()
		}
		require.Empty(t, r.Alerts(), "it is the same outage")
	})
}

// TestOutagesAreToldOnceAnHour: an executor that comes and goes is one piece of
// news, and nothing is kept of one that nobody waits for.
func TestOutagesAreToldOnceAnHour(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		time.Sleep(time.Until(time.Now().Truncate(outageRepeat).Add(outageRepeat)))
		job := r.Job(nil)
		outage := func() int {
			r.fire(r.Run(job, time.Now()))
			time.Sleep(noExecutorAfter)
			r.look()
			told := len(r.Alerts())
			to := r.join(100, nil)
			r.d.SlotsFreed(r.Executor, to.id, 100)
			synctest.Wait()
			r.look()
			require.Empty(t, r.d.look.outages)
			r.fleet.leave(to)
			require.NoError(t, storetest.LeaveInstance(t.Context(), r.S, r.Tenant, to.id, "restart"))
			return told
		}
		require.Equal(t, 1, outage())
		require.Equal(t, 0, outage(), "within the same hour")
		time.Sleep(outageRepeat)
		require.Equal(t, 1, outage())
	})
}

// TestAnExecutorThatIsAwayCostsNothing: what waits for it is written once, and
// looked at when an instance comes.
func TestAnExecutorThatIsAwayCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		writes := 0
		r.store.fail(func(method string) error {
			if method == "RecordWaits" || method == "OfferExecutions" {
				writes++
			}
			return nil
		}, nil)
		job := r.Job(nil)
		var runs []domain.Execution
		for range 50 {
			runs = append(runs, r.Run(job, time.Now()))
		}
		r.fire(runs...)
		for range 160 {
			time.Sleep(time.Second)
			r.look()
			require.Empty(t, r.d.Unattended([]domain.ExecutionID{runs[0].ID}), "no sweep takes it")
		}
		require.Equal(t, 1, writes)
		to := r.join(100, nil)
		r.d.SlotsFreed(r.Executor, to.id, 100)
		synctest.Wait()
		require.Len(t, to.sent(), 50)
	})
}

func TestNoOutageWhileAnInstanceIsOnlineElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.Instance("on another node", 30*time.Second)
		run := r.Run(r.Job(nil), time.Now())
		r.fire(run)
		row := r.Find(run.ID)
		require.Equal(t, row.ExpireAt, row.WakeAt, "it is written once")
		others, err := r.S.ListWaiting(t.Context(), store.ListWaitingParams{Line: one(t, r.lines()).Line, Read: 10, Limit: 10})
		require.NoError(t, err)
		require.Equal(t, run.ID, one(t, others).ID, "the other node may take it at once")
		time.Sleep(noExecutorAfter)
		r.look()
		require.Empty(t, r.Alerts())
		time.Sleep(time.Minute) // its lease has run out
		r.look()
		r.look()
		require.Len(t, r.Alerts(), 1)
	})
}

func TestFullInstancesAreNoOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(0, nil)
		run := r.Run(r.Job(nil), time.Now())
		time.Sleep(time.Minute)
		r.fire(run)
		r.look()
		require.Empty(t, r.Alerts())
	})
}

// TestLateAndRepeatedRunsHaveNotWaited: the ten seconds count from when the
// wait began, not from the fire time.
func TestLateAndRepeatedRunsHaveNotWaited(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		job := r.Job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Minute} })
		run := r.Run(job, time.Now())
		r.fire(run)
		o := one(t, to.sent())
		r.accept(to, o)
		_, err := r.S.FinishAttempts(t.Context(), []store.AttemptReport{r.Report(o.Execution, domain.OutcomeFailed)})
		require.NoError(t, err)
		r.Alerts()
		r.fleet.leave(to)
		require.NoError(t, storetest.LeaveInstance(t.Context(), r.S, r.Tenant, to.id, "restart"))
		time.Sleep(time.Minute)
		r.fire(r.Find(run.ID))
		r.look()
		require.Empty(t, r.Alerts())
		time.Sleep(noExecutorAfter)
		r.look()
		require.Len(t, r.Alerts(), 1)
	})
}

func TestAnOutageIsTriedAgainAfterADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.fire(r.Run(r.Job(nil), time.Now()))
		time.Sleep(noExecutorAfter)
		r.store.fail(only("CountOnline"), nil)
		require.ErrorIs(t, r.d.LookAfterWaiting(t.Context()), errDatabase)
		r.store.heal()
		require.Empty(t, r.Alerts())
		r.look()
		require.Len(t, r.Alerts(), 1)
	})
}

// TestRunsWaitForALineThatIsBusy: slots are free, but inputs of other runs are
// still on their way.
func TestRunsWaitForALineThatIsBusy(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(10, func(i *instance) { i.line = 1000 })
		job := r.Job(func(s *domain.JobSpec) { s.Input = []byte(strings.Repeat("7", 600)) })
		base := time.Now().Truncate(time.Millisecond)
		var runs []domain.Execution
		for i := range 3 {
			runs = append(runs, r.Run(job, base.Add(time.Duration(i)*time.Millisecond)))
		}
		r.fire(runs...)
		for i, e := range runs {
			require.Equal(t, e.ID, one(t, to.sent()).Execution.ID)
			r.settle()
			for _, behind := range runs[i+1:] {
				waits := r.Find(behind.ID)
				require.Equal(t, domain.ReasonWaitInstance, waits.Reason)
				require.Equal(t, "inputs of other runs are still on their way to the instances that serve the handler", waits.Message)
			}
			to.relieve()
			r.d.SlotsFreed(r.Executor, 0, to.Free())
			synctest.Wait()
		}
		require.Empty(t, to.sent())
	})
}

func serial(s *domain.JobSpec) { s.Blocking = domain.BlockSerial }
