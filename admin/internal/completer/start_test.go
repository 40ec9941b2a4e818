package completer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (r *rig) started(e domain.Execution) {
	r.c.Started(store.Start{Tenant: r.Tenant, ID: e.ID, Fence: e.Fence, Instance: r.instance, StartedAt: time.Now()})
}

func TestOnlyLongAttemptsAreWrittenWhenTheyStart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		var list []store.Start
		r.store.starts = func(s []store.Start) error { mu.Lock(); defer mu.Unlock(); list = append(list, s...); return nil }
		writes := func() []store.Start { mu.Lock(); defer mu.Unlock(); return slices.Clone(list) }
		job := r.Job(nil)
		from := &session{}
		short, long := r.running(job), r.running(job)
		r.started(short)
		r.started(long)
		r.started(long) // told again after a reconnect
		began := time.Now()
		time.Sleep(900 * time.Millisecond)
		r.report(from, short, domain.OutcomeSucceeded)
		synctest.Wait()
		require.Empty(t, writes())
		time.Sleep(time.Second)
		synctest.Wait()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		require.Len(t, writes(), 1)
		require.Equal(t, long.ID, writes()[0].ID)
		require.Equal(t, began.UnixMilli(), r.Find(long.ID).StartedAt.UnixMilli())
		time.Sleep(time.Minute)
		require.Len(t, writes(), 1, "once")
		require.Equal(t, domain.Succeeded, r.Find(short.ID).State)
		require.Equal(t, began.UnixMilli(), r.Find(short.ID).StartedAt.UnixMilli(), "the result brought it")
	})
}

// TestAnAttemptThatEndsInItsSecondGenerationIsNotWritten.
func TestAnAttemptThatEndsInItsSecondGenerationIsNotWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var writes atomic.Int32
		r.store.starts = func([]store.Start) error { writes.Add(1); return nil }
		e := r.running(r.Job(nil))
		time.Sleep(StartEvery - time.Millisecond)
		r.started(e)
		time.Sleep(StartEvery) // one tick has passed: it is old now
		r.report(&session{}, e, domain.OutcomeSucceeded)
		synctest.Wait()
		time.Sleep(time.Minute)
		require.Zero(t, writes.Load())
	})
}

// TestARunWhoseResultIsHereIsAttendedTo: neither its start is written nor does
// the sweep look at it, however long the result waits to be written.
func TestARunWhoseResultIsHereIsAttendedTo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var writes atomic.Int32
		r.store.starts = func([]store.Start) error { writes.Add(1); return nil }
		gate := make(chan struct{})
		r.store.finish = func(context.Context, []store.AttemptReport) error { <-gate; return nil }
		e := r.running(r.Job(nil))
		r.started(e)
		r.report(&session{}, e, domain.OutcomeSucceeded)
		time.Sleep(5 * StartEvery)
		require.Zero(t, writes.Load())
		require.Equal(t, []store.ReportedRun{{Tenant: r.Tenant, Executor: r.Executor, ID: e.ID}}, r.c.Reported([]domain.ExecutionID{e.ID, 7}))
		close(gate)
		synctest.Wait()
		require.Equal(t, domain.Succeeded, r.Find(e.ID).State)
		require.Empty(t, r.c.Reported([]domain.ExecutionID{e.ID, 7}))
		require.Empty(t, r.c.arrived.runs)
	})
}

func TestAStartThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var down atomic.Bool
		down.Store(true)
		r.store.starts = func([]store.Start) error {
			if down.Load() {
				return errDatabase
			}
			return nil
		}
		e := r.running(r.Job(nil))
		r.started(e)
		time.Sleep(5 * time.Second)
		require.True(t, r.Find(e.ID).StartedAt.IsZero())
		down.Store(false)
		time.Sleep(2 * StartEvery)
		synctest.Wait()
		require.False(t, r.Find(e.ID).StartedAt.IsZero())
	})
}

// TestStartsThatCannotBeWrittenAreBounded: while the database is away each tenant
// keeps its earliest ones, and no other tenant's are in their way.
func TestStartsThatCannotBeWrittenAreBounded(t *testing.T) {
	var s starts
	base := time.Now()
	start := func(tenant domain.TenantID, i int) store.Start {
		return store.Start{Tenant: tenant, ID: domain.ExecutionID(i), Fence: 1, StartedAt: base.Add(-time.Duration(i) * time.Millisecond)}
	}
	const each = maxStarts * 2 / 3
	for round := range 3 {
		var list []store.Start
		for i := range each {
			list = append(list, start(1, round*each+i))
		}
		s.keep(append(list, start(2, round)))
	}
	kept := s.turn()
	require.Len(t, kept, maxStarts+3)
	require.EqualValues(t, []domain.ExecutionID{0, 1, 2}, []domain.ExecutionID{kept[0].ID, kept[1].ID, kept[2].ID}, "the other tenant's")
	require.EqualValues(t, 3*each-maxStarts, kept[3].ID, "the latest have gone")
}

// Many tenants together are bounded too, and the large ones give way to the small ones.
func TestStartsOfAllTenantsAreBounded(t *testing.T) {
	base := time.Now()
	var list []store.Start
	for tenant := range 6 {
		each := maxStarts
		if tenant == 0 {
			each = 3
		}
		for i := range each {
			list = append(list, store.Start{Tenant: domain.TenantID(tenant + 1), ID: domain.ExecutionID(i), Fence: 1, StartedAt: base.Add(time.Duration(i))})
		}
	}
	of := func(kept []store.Start) map[domain.TenantID]int {
		n := map[domain.TenantID]int{}
		for _, s := range kept {
			n[s.Tenant]++
		}
		return n
	}
	var s starts
	s.keep(slices.Clone(list))
	kept := s.turn()
	require.LessOrEqual(t, len(kept), maxAllStarts)
	for tenant, n := range of(kept) {
		require.Equal(t, map[bool]int{true: 3, false: (maxAllStarts - 3) / 5}[tenant == 1], n)
	}

	c := &Completer{}
	c.Started(list[3:]...)
	c.Started(list[:3]...)
	c.starts.turn()
	kept = c.starts.turn()
	require.LessOrEqual(t, len(kept), 2*maxAllStarts)
	require.Equal(t, 3, of(kept)[1], "a tenant that comes late has room")
}

// TestResultsAreCountedByWhoSentThem: what another tenant, or another executor,
// says of the id ends nothing of the run's own.
func TestResultsAreCountedByWhoSentThem(t *testing.T) {
	var a arrived
	result := func(of store.ReportedRun) []Result {
		r := Result{}
		r.Tenant, r.Executor, r.Report.ExecutionID = of.Tenant, of.Executor, of.ID
		return []Result{r}
	}
	own, foreign, other := store.ReportedRun{Tenant: 1, Executor: 3, ID: 5}, store.ReportedRun{Tenant: 2, Executor: 3, ID: 5}, store.ReportedRun{Tenant: 1, Executor: 4, ID: 5}
	for _, of := range []store.ReportedRun{own, foreign, other} {
		a.enter(result(of))
	}
	a.leave(result(foreign))
	a.leave(result(foreign)) // a flush that panicked is repeated
	require.Equal(t, []store.ReportedRun{own, other}, a.among([]domain.ExecutionID{4, 5}))
	a.leave(result(own))
	require.Equal(t, []store.ReportedRun{other}, a.among([]domain.ExecutionID{5}))
	a.leave(result(other))
	require.Empty(t, a.runs)
}
