package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// The fleet of the overload: two executors of slots each, whose handlers take
// workTime, so that boundPerSecond runs a second can be done at most.
const (
	overloadSlots  = 2
	overloadWork   = 400 * time.Millisecond
	boundPerSecond = 2 * overloadSlots * int(time.Second/time.Millisecond) / int(overloadWork/time.Millisecond)

	overloadFrom  = 10 * time.Second
	overloadLasts = 7 * time.Minute
	// freshWithin is how late a run may start that counts as on time.
	freshWithin = time.Second
	// wellWithin is how long after the load's end fresh runs may be late (P13).
	wellWithin = time.Minute
)

// overloadWorld has n jobs that fire each second until the load is over, and
// few that go on for two minutes more.
func overloadWorld(t *testing.T, seed uint64, n, few int, lasts time.Duration) *world {
	t.Helper()
	w, err := emptyWorld(Case{Seed: seed, Only: []string{}}, rules{})
	require.NoError(t, err)
	w.work = overloadWork
	over := w.epoch.Add(overloadFrom + lasts)
	for i := range n {
		spec := domain.JobSpec{
			Name: "overload", Handler: handlerOnce, Blocking: domain.BlockParallel, DispatchTimeout: 2 * time.Minute,
			Misfire: domain.Misfire{Policy: domain.MisfireAll, Window: time.Hour, MaxRuns: 10_000},
			Schedule: domain.ScheduleSpec{
				Kind: domain.ScheduleFixedRate, Every: time.Second, StartAt: w.epoch.Add(overloadFrom - 500*time.Millisecond),
				Anchor: w.epoch.Add(time.Duration(i) * time.Second / time.Duration(n)), EndAt: over,
			},
		}
		if i%3 == 1 { // these do not want to run late
			spec.DispatchTimeout = lasts / 4
		}
		if i%2 == 1 { // a line of their own, whose first run is always the younger one
			spec.Handler, spec.DispatchTimeout = handlerElse, spec.DispatchTimeout/2
		}
		if i < few {
			spec.Schedule.EndAt = over.Add(2 * time.Minute)
		}
		w.db.createJob(domain.Job{
			ID: domain.JobID(w.newID()), TenantID: tenant, Executor: executorID, Partition: i % domain.Partitions, Revision: 1, Spec: spec,
		}, timing.Next(w.epoch, &spec))
	}
	for range 2 {
		w.addNode(0)
		w.addExecutor(overloadSlots, 0)
	}
	w.begin()
	return w
}

// until lets the world go on; nothing may break.
func (w *world) until(t *testing.T, at time.Duration) {
	t.Helper()
	for len(w.broken) == 0 && w.step(at) {
		continue
	}
	require.Empty(t, w.broken)
	w.now = at
}

// done is how many runs a second succeeded in a part of the time.
func (w *world) done(from, to time.Duration) float64 {
	n := 0
	for _, id := range w.db.order {
		e := w.db.find(id)
		if at := e.FinishedAt.Sub(w.epoch); e.State == domain.Succeeded && at >= from && at < to {
			n++
		}
	}
	return float64(n) / (to - from).Seconds()
}

// onTime says of each second from an instant on whether all of its runs started
// in time, or have an end that is planned.
func (w *world) onTime(from, to time.Duration) []bool {
	out := make([]bool, int((to-from)/time.Second))
	for i := range out {
		out[i] = true
	}
	for _, id := range w.db.order {
		e := w.db.find(id)
		i := int((e.FireAt.Sub(w.epoch) - from) / time.Second)
		if e.FireAt.Before(w.epoch.Add(from)) || i >= len(out) {
			continue
		}
		started := w.witness.byRun[id]
		if len(started) == 0 || e.StartedAt.IsZero() || e.StartedAt.Sub(e.FireAt) > freshWithin {
			out[i] = false
		}
	}
	return out
}

// again is how long after an instant the first of five seconds begins that are
// all on time, and whether there are five.
func again(good []bool) (time.Duration, bool) {
	row := 0
	for i, ok := range good {
		if row++; !ok {
			row = 0
		}
		if row == 5 {
			return time.Duration(i-4) * time.Second, true
		}
	}
	return 0, false
}

// capacityWhile is how many runs a second can be done while something is wrong.
func capacityWhile(t *testing.T, begin func(*world)) float64 {
	t.Helper()
	w := overloadWorld(t, 1, boundPerSecond*21/20, 0, time.Minute)
	begin(w)
	w.until(t, overloadFrom+time.Minute)
	w.end()
	capacity := w.done(overloadFrom+20*time.Second, overloadFrom+time.Minute)
	require.Greater(t, capacity, float64(boundPerSecond)/2)
	return capacity
}

// end ends all flows.
func (w *world) end() {
	for _, n := range w.nodes {
		n.die()
	}
}

// TestWellAgainAfterOverload is P13 in virtual time: three times what can be
// done for seven minutes, then a tenth of it. During it at least nine tenths of
// what can be done is done, and within a minute of its end fresh runs are on
// time, whatever the queues hold.
func TestWellAgainAfterOverload(t *testing.T) {
	for name, kind := range map[string]struct {
		begin, heal func(w *world)
		none        bool // nothing can be done meanwhile
	}{
		"few slots": {func(*world) {}, func(*world) {}, false},
		// A statement takes about 3 ms there and back.
		"slow database": {func(w *world) { w.slowed = 15 * time.Millisecond }, func(w *world) { w.slowed = 0 }, false},
		"executors away": {func(w *world) {
			for _, e := range w.execs {
				e.crash()
			}
		}, func(w *world) {
			for _, e := range w.execs {
				e.boots()
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			capacity := float64(boundPerSecond)
			if !kind.none {
				capacity = capacityWhile(t, kind.begin)
			}
			few := max(2, int(capacity)/10) // one in each line
			w := overloadWorld(t, 2, 3*int(capacity), few, overloadLasts)
			w.until(t, overloadFrom)
			kind.begin(w)
			over := overloadFrom + overloadLasts
			w.until(t, over)
			kind.heal(w)
			w.until(t, over+2*time.Minute)
			w.end()
			goodput := w.done(overloadFrom+overloadLasts/5, over)
			if !kind.none {
				require.GreaterOrEqual(t, goodput, 0.9*capacity, "runs a second, of %.1f that can be done", capacity)
			}
			after, ok := again(w.onTime(over, over+wellWithin+10*time.Second))
			require.True(t, ok && after <= wellWithin, "fresh runs are late for more than %s", wellWithin)
			t.Logf("%.1f of %.1f runs a second were done, fresh runs on time again after %s, %d steps", goodput, capacity, after, w.steps)
		})
	}
}
