package storetest

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func serial(s *domain.JobSpec)  { s.Blocking = domain.BlockSerial }
func discard(s *domain.JobSpec) { s.Blocking = domain.BlockDiscard }

func testSlotSerial(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second, third := f.runAt(j, now.Add(-3*time.Second)), f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	require.True(t, running.HoldsSlot)

	blocked := f.offer(store.OfferBlocked, second)
	require.Equal(t, domain.Due, blocked.State)
	require.Equal(t, domain.ReasonWaitSlot, blocked.Reason)
	require.True(t, blocked.WakeAt.After(now.Add(20*time.Second)))
	f.offer(store.OfferBlocked, third)
	f.offer(store.OfferBlocked, second) // idempotent

	got := f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Woken), "the oldest is woken")
	woken := f.find(second)
	require.Equal(t, got.Woken[0], woken)
	require.True(t, woken.WakeAt.Before(f.now().Add(5*time.Second)), "any node takes it soon")
	require.False(t, f.find(first).HoldsSlot)

	f.offer(store.OfferBlocked, third) // the woken one goes first
	running = f.start(second)
	got = f.finish(running, domain.OutcomeFailed)
	require.Equal(t, []domain.ExecutionID{third.ID}, identify(got.Woken))
	require.Empty(t, f.finish(f.start(third), domain.OutcomeSucceeded).Woken)
}

// A run that ends without an attempt frees its slot for its successor all the same. The
// successor is looked at soon, and not 30 s after it began to wait.
func testSlotFreedWithoutAResult(t *testing.T, f *fixture) {
	for name, end := range map[string]func(domain.Execution){
		"an offer that comes too late": func(e domain.Execution) { f.offer(store.OfferDiscarded, e) },
		"set aside": func(e domain.Execution) {
			f.ok(f.s.SetAside(f.ctx, map[domain.ExecutionID]error{e.ID: errors.New("cannot be read")}))
		},
	} {
		j := f.job(func(s *domain.JobSpec) { serial(s); s.DispatchTimeout = 10 * time.Second })
		now := f.now()
		first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
		offered := f.offer(store.OfferMade, first)
		back, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{Tenant: f.tenant, ID: first.ID, Fence: offered.Fence, Instance: offered.Instance, Refused: true, Reason: domain.ReasonOfferRefused, Message: "full"}})
		f.ok(err)
		require.True(t, back[0].Execution.HoldsSlot)
		require.True(t, f.offer(store.OfferBlocked, second).WakeAt.After(now.Add(20*time.Second)))
		f.age(first, 10*time.Second)
		end(first)
		require.True(t, f.find(first).State.Terminal(), name)
		require.True(t, f.find(second).WakeAt.Before(f.now().Add(5*time.Second)), "%s: any node takes it soon", name)
		f.start(second)
	}
}

// A run that finds no instance keeps its place before later runs that do.
func testSlotWaitKeepsOrder(t *testing.T, f *fixture) {
	for _, blocking := range []func(*domain.JobSpec){serial, discard} {
		j := f.job(blocking)
		now := f.now()
		first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
		wait := store.Wait{Tenant: f.tenant, ID: first.ID, Reason: domain.ReasonWaitInstance, Message: "full", For: 10 * time.Second}
		for range 2 { // swept and tried again
			f.wait([]store.Wait{wait})
		}
		require.Equal(t, domain.ReasonWaitInstance, f.find(first).Reason)
		if j.Spec.Blocking == domain.BlockDiscard {
			f.offer(store.OfferDiscarded, second)
			f.offer(store.OfferMade, first)
			continue
		}
		f.offer(store.OfferBlocked, second)
		running := f.start(first)
		require.Equal(t, []domain.ExecutionID{second.ID}, identify(f.finish(running, domain.OutcomeSucceeded).Woken))
		running = f.start(second)

		// Waiting for an instance while the slot is taken is not waiting in vain either.
		third, fourth := f.run(j), f.run(j)
		wait.ID = third.ID
		f.wait([]store.Wait{wait})
		f.offer(store.OfferBlocked, fourth)
		f.age(third, domain.DefaultDispatchTimeout)
		f.sweep()
		require.Equal(t, domain.Missed, f.find(third).State, "it ends, and leaves the queue")
		require.Equal(t, []domain.ExecutionID{fourth.ID}, identify(f.finish(running, domain.OutcomeSucceeded).Woken))
		f.start(fourth)
	}
}

// A batch in the wrong order is served by fire time.
func testSlotOrder(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	older, newer := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	got := f.offerTo(f.instance, newer, older, older)
	require.Equal(t, store.OfferBlocked, got[0].Status)
	require.Equal(t, store.OfferMade, got[1].Status)
	require.Equal(t, store.OfferGone, got[2].Status, "once is enough")
	require.Equal(t, newer.ID, got[0].Execution.ID)

	// An older one that comes later stands before those that wait.
	oldest := f.runAt(j, now.Add(-time.Minute))
	f.offer(store.OfferBlocked, oldest)
	woken := f.finish(f.grant(got[1].Execution), domain.OutcomeSucceeded).Woken
	require.Equal(t, []domain.ExecutionID{oldest.ID}, identify(woken))
}

func testSlotDiscard(t *testing.T, f *fixture) {
	j := f.job(discard)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	got := f.offerTo(f.instance, first, second)
	require.Equal(t, store.OfferMade, got[0].Status)
	require.Equal(t, store.OfferDiscarded, got[1].Status)
	after := f.find(second)
	require.Equal(t, got[1].Execution, after)
	require.Equal(t, domain.Discarded, after.State)
	require.Equal(t, domain.ReasonOverlap, after.Reason)
	require.Empty(t, f.finish(f.grant(got[0].Execution), domain.OutcomeSucceeded).Woken)
	f.offer(store.OfferMade, f.run(j))
}

// testSlotQueueFull checks the bound of a queue. Further fires of the schedule are
// discarded, and a manual run waits. One alert is written in an hour. It lasts until the
// queue is empty.
func testSlotQueueFull(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		serial(s)
		s.MaxWaiting = 3
	})
	now := f.now()
	var runs []domain.Execution
	for n := range 6 {
		runs = append(runs, f.asked(domain.CauseSchedule, j, now.Add(time.Duration(n-10)*time.Second)))
	}
	running := f.start(runs[0])
	for _, e := range runs[1:4] {
		f.offer(store.OfferBlocked, e)
	}
	for _, e := range runs[4:] {
		f.offer(store.OfferDiscarded, e)
		require.Equal(t, domain.Discarded, f.find(e).State)
		require.Equal(t, domain.ReasonQueueFull, f.find(e).Reason)
		require.Equal(t, "3 runs of the job waited for its slot", f.find(e).Message)
	}
	f.offer(store.OfferBlocked, runs[3]) // it waits already
	asked := f.run(j)
	f.offer(store.OfferBlocked, asked)
	require.EqualValues(t, 4, f.view(j).Waiting)

	f.finish(running, domain.OutcomeSucceeded)
	piles := f.alertsOf(domain.AlertRunsPileUp)
	require.NotEmpty(t, piles)
	require.LessOrEqual(t, len(piles), 2, "one in an hour, which may have ended between the two")
	require.Equal(t, "3 runs wait for earlier ones, as many as may: further fires are discarded", piles[0].Detail)
}

// testSlotPilesUp checks that a job with slow runs piles up, and that a job that catches up
// does not.
func testSlotPilesUp(t *testing.T, f *fixture) {
	for interval, long := range map[time.Duration]bool{time.Millisecond: true, time.Hour: false} {
		j := f.job(func(s *domain.JobSpec) {
			serial(s)
		})
		now := f.now()
		var runs []domain.Execution
		for n := range 6 {
			runs = append(runs, f.asked(domain.CauseSchedule, j, now.Add(time.Duration(n-10)*interval)))
		}
		running := f.start(runs[0])
		for _, e := range runs[1:] {
			f.offer(store.OfferBlocked, e)
		}
		v := f.view(j)
		require.EqualValues(t, 5, v.Waiting)
		f.tick()
		f.tick()
		f.age(runs[1], time.Minute) // the sweep finds the head of the queue
		f.sweep()
		require.Equal(t, domain.ReasonWaitSlot, f.find(runs[1]).Reason)
		require.Equal(t, long, len(takeEvents(t, f.s, f.tenant)) == 1, "while the run goes on")
		f.tick()
		report := f.report(running, domain.OutcomeSucceeded)
		report.Report.Took = time.Minute // as long as it can have been
		_, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
		f.ok(err)
		f.start(runs[1])
		v = f.view(j)
		require.Equal(t, []any{int64(4), long}, []any{v.Waiting, v.PilesUp})
		require.LessOrEqual(t, len(takeEvents(t, f.s, f.tenant)), 1, "none but in another hour")
	}
}

func testSlotParallel(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Blocking, s.Parallelism = domain.BlockParallel, 2 })
	now := f.now()
	var es []domain.Execution
	for i := range 5 {
		es = append(es, f.runAt(j, now.Add(time.Duration(i-10)*time.Second)))
	}
	got := f.offerTo(f.instance, es...)
	for i, want := range []store.OfferStatus{store.OfferMade, store.OfferMade, store.OfferBlocked, store.OfferBlocked, store.OfferBlocked} {
		require.Equal(t, want, got[i].Status, "execution %d", i)
	}
	a, b := f.grant(got[0].Execution), f.grant(got[1].Execution)
	results, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(a, domain.OutcomeSucceeded), f.report(b, domain.OutcomeSucceeded)})
	f.ok(err)
	woken := append(identify(results[0].Woken), identify(results[1].Woken)...)
	require.Equal(t, []domain.ExecutionID{es[2].ID, es[3].ID}, woken)
	f.offer(store.OfferBlocked, es[4])
	f.offer(store.OfferMade, es[3])
	f.offer(store.OfferMade, es[2])
}

// A waiter that ends lets the next one move up.
func testSlotCancelWaiter(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second, third := f.runAt(j, now.Add(-3*time.Second)), f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	f.offer(store.OfferBlocked, second)
	f.offer(store.OfferBlocked, third)
	_, err := f.s.RequestCancel(f.ctx, f.tenant, second.ID, domain.ReasonKilled, "")
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{third.ID}, identify(f.finish(running, domain.OutcomeSucceeded).Woken))

	// Also when the slot is free already and the first in line had been woken.
	fourth := f.runAt(j, now)
	f.offer(store.OfferBlocked, fourth)
	_, err = f.s.RequestCancel(f.ctx, f.tenant, third.ID, domain.ReasonKilled, "")
	f.ok(err)
	require.True(t, f.find(fourth).WakeAt.Before(f.now().Add(5*time.Second)), "woken by the cancel")
	f.offer(store.OfferMade, fourth)
}

// An offer that comes back keeps its place in the slot.
func testSlotGiveBackKeeps(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	offered := f.offer(store.OfferMade, first)
	_, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{Tenant: f.tenant, ID: first.ID, Fence: offered.Fence, Instance: offered.Instance, Reason: domain.ReasonOfferRefused}})
	f.ok(err)
	require.True(t, f.find(first).HoldsSlot)
	f.offer(store.OfferBlocked, second)
	f.start(first)
}

// Runs of serial jobs, offered and finished by several goroutines at once:
// never two at the same time, and all get their turn.
func testSlotRace(t *testing.T, f *fixture) {
	const jobs, runs, workers = 3, 8, 4
	now := f.now()
	var all []domain.Execution
	for range jobs {
		j := f.job(serial)
		for i := range runs {
			all = append(all, f.runAt(j, now.Add(time.Duration(i-runs)*time.Second)))
		}
	}
	var mu sync.Mutex
	holders, last := map[domain.JobID]int{}, map[domain.JobID]time.Time{}
	var done atomic.Int32
	work := func(e domain.Execution) (again []domain.Execution, ended bool) {
		got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: e.ID, Node: 1, Instance: f.instance, Idempotent: true, Granted: true}})
		if err != nil {
			t.Errorf("offer: %v", err)
			return nil, true
		}
		if got[0].Status != store.OfferMade {
			return nil, false
		}
		mu.Lock()
		holders[e.JobID]++
		if holders[e.JobID] > 1 {
			t.Errorf("job %s runs twice at the same time", e.JobID)
		}
		if e.FireAt.Before(last[e.JobID]) {
			t.Errorf("job %s: %s after %s", e.JobID, e.FireAt, last[e.JobID])
		}
		last[e.JobID] = e.FireAt
		holders[e.JobID]--
		mu.Unlock()
		finished, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(got[0].Execution, domain.OutcomeSucceeded)})
		if err != nil || finished[0].Code != store.FinishStored {
			t.Errorf("finish: %v %v", finished, err)
			return nil, true
		}
		done.Add(1)
		return finished[0].Woken, true
	}
	// Everything is offered in order first, so that the queues stand; then the
	// workers follow what the finishes wake.
	first := f.offerTo(f.instance, all...)
	var wake []domain.Execution
	var granted []store.GrantRequest
	for _, r := range first {
		if r.Status == store.OfferMade {
			granted = append(granted, store.GrantRequest{Tenant: f.tenant, ID: r.Execution.ID, Fence: r.Execution.Fence, Instance: f.instance})
			wake = append(wake, r.Execution)
		}
	}
	require.Len(t, wake, jobs)
	_, err := f.s.GrantOffers(f.ctx, granted)
	f.ok(err)
	queue := make(chan domain.Execution, jobs*runs*workers)
	race(jobs, func(i int) {
		got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(wake[i], domain.OutcomeSucceeded)})
		if err != nil || len(got[0].Woken) != 1 {
			t.Errorf("finish: %v %v", got, err)
			return
		}
		done.Add(1)
		for range workers { // several nodes hear of the same wake
			queue <- got[0].Woken[0]
		}
	})
	race(workers, func(int) {
		for {
			select {
			case e := <-queue:
				woken, _ := work(e)
				for _, w := range woken {
					for range workers {
						queue <- w
					}
				}
			default:
				if done.Load() >= jobs*runs || t.Failed() || f.ctx.Err() != nil {
					return
				}
				runtime.Gosched() // another worker holds what is left
			}
		}
	})
	require.EqualValues(t, jobs*runs, done.Load())
}
