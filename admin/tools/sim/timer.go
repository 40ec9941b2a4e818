package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// makeTimers makes a job of kind timer and sets timers of it: some before the world
// begins, the others while it lasts, due at once or soon. People leave the job alone.
func (w *world) makeTimers(r *rand.Rand) {
	spec := domain.JobSpec{
		Name: "timers", Handler: oneOf(r, handlerOnce, handlerSafe), Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone},
		Misfire: domain.Misfire{Policy: domain.MisfireSkip}, Routing: domain.RouteRoundRobin, Blocking: domain.BlockParallel,
		OnLost: oneOf(r, domain.OnLostAuto, domain.OnLostFail, domain.OnLostRetry), Retry: domain.Retry{MaxAttempts: 1 + r.IntN(3), Delay: time.Second},
		DispatchTimeout: time.Minute,
	}
	id := domain.JobID(w.newID())
	w.db.jobs[id] = &jobRow{id: id, state: domain.JobEnabled, specs: []*domain.JobSpec{&spec}, trigger: domain.Trigger{
		JobID: id, TenantID: tenant, Executor: executorID, Revision: 1, NextFireAt: domain.Never,
	}}
	w.timed = true
	keys := 10 + r.IntN(40)
	w.planTimerEdits(w.faults.chance("timer edits"), id, keys)
	for n := range keys {
		at := time.Duration(r.Float64() * float64(healAt))
		t := domain.Timer{TenantID: tenant, JobID: id, Key: timerKey(n), Partition: r.IntN(domain.Partitions)}
		set := func(ahead time.Duration) {
			t.ID = domain.TimerID(w.newID())
			t.FireAt = w.epoch.Add(min(w.now+ahead, healAt)).Truncate(time.Millisecond) // by the application's clock, which is right
			w.db.setTimer(t, domain.TimerKeep)
		}
		if r.IntN(2) == 0 {
			set(at)
		} else {
			ahead := between(r, 0, 6*time.Second)
			w.after(nil, at, func() { set(ahead) })
		}
	}
}

func timerKey(n int) string { return fmt.Sprint("order ", n) }

// planTimerEdits has applications set timers of keys that are in use, move and
// cancel them, each through a node: pending ones, and those that have runs.
func (w *world) planTimerEdits(r *rand.Rand, job domain.JobID, keys int) {
	for range r.IntN(2 * keys) {
		what, key, through, policy := r.IntN(3), timerKey(r.IntN(keys)), r.Int(), domain.TimerPolicy(r.IntN(3))
		ahead, partition := between(r, 0, 8*time.Second), r.IntN(domain.Partitions)
		w.after(nil, time.Duration(r.Float64()*float64(healAt)), func() {
			n := w.nodes[through%len(w.nodes)]
			if !n.up {
				return
			}
			t := domain.Timer{
				ID: domain.TimerID(w.newID()), TenantID: tenant, JobID: job, Key: key, Partition: partition,
				FireAt: w.epoch.Add(min(w.now+ahead, healAt)).Truncate(time.Millisecond),
			}
			n.flow(func() {
				switch what {
				case 0:
					_ = n.call("set timer", anyCall, func() { w.db.setTimer(t, policy) })
				case 1:
					_ = n.call("move timer", anyCall, func() { w.db.moveTimer(t) })
				case 2:
					n.cancelTimer(key)
				}
				_ = n.planner.Claim(context.Background())
			})
		})
	}
}

func (n *node) cancelTimer(key string) {
	run, err := ask(n, "cancel timer", anyCall, func(d *database) (domain.Execution, error) {
		return d.cancelTimer(key, domain.ExecutionID(n.w.newID()))
	})
	switch {
	case err != nil || run.ID == 0:
	case run.State.Terminal():
		n.completer.Ended([]domain.Execution{run})
	default:
		n.dispatch.SendCancel(run)
	}
}

// timerOf returns where the pending timer of a key stands, -1: there is none, and
// the newest run of the key, nil: there is none.
func (d *database) timerOf(key string) (pending int, newest *domain.Execution) {
	pending = slices.IndexFunc(d.timers, func(t domain.Timer) bool { return t.Key == key })
	for _, id := range slices.Backward(d.order) {
		if e := d.find(id); e.Cause == domain.CauseTimer {
			if t, _ := domain.TimerOf(e); t.Key == key {
				return pending, e
			}
		}
	}
	return pending, nil
}

// setTimer is SetTimers of one.
func (d *database) setTimer(t domain.Timer, policy domain.TimerPolicy) {
	pending, newest := d.timerOf(t.Key)
	switch {
	case pending >= 0 && policy != domain.TimerReplace:
		return
	case pending >= 0: // it goes, and leaves nothing
		gone := d.timers[pending].ID
		d.timers = slices.Delete(d.timers, pending, pending+1)
		d.timersSet = slices.DeleteFunc(d.timersSet, func(t domain.Timer) bool { return t.ID == gone })
	case newest == nil || newest.State == domain.Cancelled:
	case policy != domain.TimerReplace:
		return
	case !newest.State.Terminal() && d.takeBackTimer(newest.ID) != nil:
		return
	}
	d.timers, d.timersSet = append(d.timers, t), append(d.timersSet, t)
}

// moveTimer is RescheduleTimer, to where t is; its id is for a timer that takes the
// place of a run.
func (d *database) moveTimer(t domain.Timer) {
	pending, newest := d.timerOf(t.Key)
	if pending >= 0 {
		moved := &d.timers[pending]
		moved.FireAt, moved.Partition = t.FireAt, t.Partition
		set := slices.IndexFunc(d.timersSet, func(t domain.Timer) bool { return t.ID == moved.ID })
		d.timersSet[set] = *moved
		if d.rules.dropMoved {
			d.timers = slices.Delete(d.timers, pending, pending+1)
		}
		return
	}
	if newest != nil && d.takeBackTimer(newest.ID) == nil {
		d.timers, d.timersSet = append(d.timers, t), append(d.timersSet, t)
	}
}

// takeBackTimer ends the run of a timer that is moved or replaced, if it has not
// started.
func (d *database) takeBackTimer(id domain.ExecutionID) error {
	b := d.load(run.Request{Kind: run.Ends, IDs: []domain.ExecutionID{id}}, nil)
	m := b.Find(tenant, id)
	if err := domain.TimerMovable(&m.E); err != nil {
		return err
	}
	d.tookBack = append(d.tookBack, id)
	if d.rules.keepMoved {
		return nil
	}
	_, err := b.RequestCancel(tenant, id, domain.ReasonRescheduled, "")
	must(err)
	b.save()
	return nil
}

// cancelTimer is CancelTimers of one; made is the id of what a pending one leaves.
// It returns the run that was cancelled, if any was.
func (d *database) cancelTimer(key string, made domain.ExecutionID) (domain.Execution, error) {
	pending, newest := d.timerOf(key)
	if pending >= 0 {
		t := d.timers[pending]
		d.timers = slices.Delete(d.timers, pending, pending+1)
		j := d.jobs[t.JobID]
		d.insert(t.EndedRun(made, d.clock(), j.trigger, j.spec(), domain.Cancelled, domain.ReasonKilled, ""))
		return domain.Execution{}, nil
	}
	if newest == nil || newest.State.Terminal() {
		return domain.Execution{}, nil
	}
	waits := domain.TimerMovable(newest) == nil
	run, err := d.cancel(tenant, newest.ID)
	if err == nil && waits {
		d.tookBack = append(d.tookBack, run.ID)
	}
	return run, err
}

// ClaimDueTimers implements store.DueTimers.
func (s *nodeStore) ClaimDueTimers(_ context.Context, p store.ClaimDueTimersParams) (store.ClaimedTimers, error) {
	return ask(s.n, "claim timers", anyCall, func(d *database) (store.ClaimedTimers, error) {
		s.n.w.claimer = s.n
		return d.claimTimers(p)
	})
}

// claimTimers is ClaimDueTimers.
func (d *database) claimTimers(p store.ClaimDueTimersParams) (out store.ClaimedTimers, err error) {
	now := d.clock()
	if err := checkClock(now, p.Latest); err != nil {
		return out, err
	}
	var due []domain.Timer
	var under []domain.PartitionTerm
	for _, t := range d.timers {
		i := slices.IndexFunc(p.Partitions, func(h domain.PartitionTerm) bool { return h.Partition == t.Partition })
		if i < 0 || t.FireAt.After(now.Add(p.Horizon)) || slices.Contains(p.Except, t.TenantID) {
			continue
		}
		if !d.holds(p.Partitions, t.Partition, now) && !d.rules.skipTerm {
			return out, domain.Errorf(domain.CodeStaleTerm, "partition %d is not held any more", t.Partition)
		}
		due, under = append(due, t), append(under, p.Partitions[i])
	}
	if len(due) == 0 {
		return out, nil
	}
	for n, t := range due {
		j := d.jobs[t.JobID]
		e := t.Run(domain.ExecutionID(p.NewID()), now, j.trigger, j.spec())
		if d.rules.dropTimer && n%3 == 2 {
			continue
		}
		if d.insert(e) {
			out.Executions = append(out.Executions, e)
		}
	}
	if !d.rules.keepTimer {
		d.timers = slices.DeleteFunc(d.timers, func(t domain.Timer) bool {
			return slices.ContainsFunc(due, func(o domain.Timer) bool { return o.ID == t.ID })
		})
	}
	out.Timers = len(due)
	d.claimed(store.ClaimDueTriggersParams{Partitions: under})
	return out, nil
}

// checkTimers is P1 and P2 of timers: each one that was set, and that no other one
// replaced while it was pending, has one run, for the instant that it was moved to;
// and P11: what was taken back before it started has not started.
func (w *world) checkTimers() {
	runs := map[string][]*domain.Execution{}
	for _, id := range w.db.order {
		if e := w.db.find(id); e.Cause == domain.CauseTimer {
			runs[e.OccurrenceKey] = append(runs[e.OccurrenceKey], e)
		}
	}
	for _, t := range w.db.timersSet {
		if of := runs[domain.TimerOccurrence(t.ID, t.Key)]; len(of) != 1 {
			w.fail("P1, P2: timer %d of %s has %d runs", t.ID, t.FireAt.Format(time.TimeOnly), len(of))
		} else if !of[0].FireAt.Equal(t.FireAt) {
			w.fail("P1, P2: the run of timer %d is for %s, not for %s", t.ID, of[0].FireAt.Format(time.TimeOnly), t.FireAt.Format(time.TimeOnly))
		}
	}
	for _, id := range w.db.tookBack {
		if n := len(w.witness.byRun[id]); n > 0 {
			w.fail("P11: run %d of a timer was taken back before its start, and started %d times", id, n)
		}
	}
}
