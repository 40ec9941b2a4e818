package dispatch

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// flood plans n runs of one job, one a millisecond since just now.
func flood(w *storetest.World, n int, change func(*domain.JobSpec)) []domain.Execution {
	base := time.Now().Truncate(time.Millisecond).Add(-time.Duration(n) * time.Millisecond)
	w.JobFiring(base, change)
	got, err := w.S.ClaimDueTriggers(w.T.Context(), store.ClaimDueTriggersParams{
		Partitions: storetest.HoldAll(w.T, w.S), Limit: 1,
		Plan: func(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
			p := store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: now}
			for i := range n {
				at := base.Add(time.Duration(i) * time.Millisecond)
				p.Executions = append(p.Executions, domain.Execution{
					ID: domain.ExecutionID(storetest.NewID()), TenantID: t.TenantID, JobID: t.JobID, Revision: t.Revision,
					Executor: t.Executor, Partition: t.Partition, Cause: domain.CauseSchedule, Priority: spec.Priority,
					FireAt: at, State: domain.Due, MaxAttempts: 1, NotBefore: at, PlannedAt: now, LogLines: -1,
					WakeAt: now.Add(time.Hour), ExpireAt: now.Add(2 * time.Hour),
				})
			}
			return p
		},
	})
	require.NoError(w.T, err)
	require.Len(w.T, got.Executions, n)
	return got.Executions
}

// TestAnotherTenantsBurstDelaysNobody is fault row F33 for this package: tenant A
// has thousands of runs due at once. At each of its two steps a run of tenant B
// has a batch of its own at once.
func TestAnotherTenantsBurstDelaysNobody(t *testing.T) {
	const fixed, row = 3 * time.Millisecond, 40 * time.Microsecond // of a transaction on MariaDB
	inBubble(t, func(t *testing.T, r *rig) {
		other := storetest.NewWorld(t, r.S)
		r.store.cost = func(rows int) time.Duration { return fixed + time.Duration(rows)*row }
		var mu sync.Mutex
		began := map[domain.ExecutionID]time.Time{}
		waits := map[domain.ExecutorID][]time.Duration{}
		fire := func(runs ...domain.Execution) {
			mu.Lock()
			for _, e := range runs {
				began[e.ID] = time.Now()
			}
			mu.Unlock()
			r.d.fire(runs)
		}
		for _, w := range []*storetest.World{r.World, other} {
			to := &instance{id: w.Instance("boot", time.Hour), slots: 100_000, executor: w.Executor}
			to.onOffers = func(offers []store.OfferResult) {
				for _, o := range offers {
					r.d.Answered(Answer{Tenant: w.Tenant, From: to, ID: o.Execution.ID, Fence: o.Execution.Fence, Accepted: true})
				}
			}
			to.onGrants = func(grants []Grant) {
				mu.Lock()
				defer mu.Unlock()
				for _, g := range grants {
					if !g.Granted {
						t.Errorf("%s is not granted", g.ID)
					}
					waits[w.Executor] = append(waits[w.Executor], time.Since(began[g.ID]))
				}
			}
			r.fleet.join(to)
		}
		single := func() time.Duration { // the slowest of 40 runs of B, one at a time
			waits[other.Executor] = nil
			for _, e := range flood(other, 40, nil) {
				fire(e)
				time.Sleep(11 * time.Millisecond)
			}
			time.Sleep(200 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, waits[other.Executor], 40)
			return slices.Max(waits[other.Executor])
		}
		quiet := single()
		const burst = 8_000
		for range 4 { // several jobs: both workers are flooded
			fire(flood(r.World, burst/4, nil)...)
		}
		loud := single()
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, waits[r.Executor], burst)
		require.Greater(t, slices.Max(waits[r.Executor]), 240*time.Millisecond, "it was a burst")
		t.Logf("B's slowest run: %v beside nobody, %v beside the burst; A's slowest: %v", quiet, loud, slices.Max(waits[r.Executor]))
		require.Less(t, loud, fixed+offerBatch*row, "less than one full batch")
	})
}

// TestTheMoreUrgentRunGoesFirst: among one tenant's due runs, and among those
// that wait for an instance.
func TestTheMoreUrgentRunGoesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		with := func(priority int) domain.Job {
			return r.Job(func(s *domain.JobSpec) { s.Priority = priority })
		}
		at := time.Now().Truncate(time.Millisecond)
		low, plain := r.Run(with(-5), at), r.Run(with(0), at)
		urgent := r.Run(with(30), at.Add(20*time.Second))
		aged := r.Run(with(0), at.Add(-11*time.Second)) // due 31 s before urgent
		require.Equal(t, 30, urgent.Priority)
		time.Sleep(20 * time.Second)
		want := []domain.ExecutionID{aged.ID, urgent.ID, plain.ID, low.ID}

		to := r.join(0, nil)
		for _, e := range []domain.Execution{plain, urgent, low, aged} { // in batches of one
			r.fire(e)
		}
		to.slots = 1
		for _, id := range want {
			r.d.SlotsFreed(r.Executor, 0, 1)
			synctest.Wait()
			o := one(t, to.sent())
			require.Equal(t, id, o.Execution.ID)
			to.Release(o.Execution.ID, o.Execution.Fence)
		}
	})
}

// TestALoadedRunIsNotFresh: a run that was loaded late goes by its age, and takes no turn of a
// fresh one.
func TestALoadedRunIsNotFresh(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := r.Job(nil)
		_, err := r.d.opt.Store.JobSpec(t.Context(), r.Tenant, job.ID, job.Revision)
		require.NoError(t, err)
		fresh, loaded := r.Run(job, time.Now()), r.Run(job, time.Now().Add(-2*lateAfter))
		for run, newest := range map[*domain.Execution]bool{&fresh: true, &loaded: false} {
			require.Equal(t, newest, r.d.dueInTurn(&run).Newest)
		}
	})
}

// TestACopyOfAQueuedRunIsNotOfferedTwice: the sweep finds what a busy node has
// in its queue.
func TestACopyOfAQueuedRunIsNotOfferedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(10, nil)
		var mu sync.Mutex
		asked := map[string]int{}
		gate := make(chan struct{})
		r.store.fail(func(method string) error {
			mu.Lock()
			asked[method]++
			first := asked[method] == 1
			mu.Unlock()
			if method == "OfferExecutions" && first {
				<-gate
			}
			return nil
		}, nil)
		job := r.Job(nil)
		run := r.Run(job, time.Now())
		r.fire(r.Run(job, time.Now())) // keeps the worker busy
		for range 5 {
			r.fire(run)
		}
		close(gate)
		synctest.Wait()
		require.Equal(t, map[string]int{"OfferExecutions": 2, "JobSpec": 2}, asked)
		require.Zero(t, r.d.opt.Table.Len())
	})
}

// TestWhatWaitsHereIsAttendedTo: the sweep leaves it alone while it waits and
// while it is offered, but not beyond the end of its wait for an instance.
func TestWhatWaitsHereIsAttendedTo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(10, nil)
		gate := make(chan struct{})
		r.store.fail(func(method string) error {
			if method == "OfferExecutions" {
				<-gate
			}
			return nil
		}, nil)
		job := r.Job(nil)
		offering, waiting := r.Run(job, time.Now()), r.Run(job, time.Now())
		patient := r.Run(job, time.Now())
		patient.ExpireAt = time.Time{}
		r.fire(offering)
		r.fire(waiting)
		r.fire(patient)
		unattended := func() []domain.ExecutionID {
			return r.d.Unattended([]domain.ExecutionID{1, offering.ID, waiting.ID, 2, patient.ID})
		}
		require.Equal(t, []domain.ExecutionID{1, 2}, unattended())
		time.Sleep(time.Until(waiting.ExpireAt))
		require.Equal(t, []domain.ExecutionID{1, waiting.ID, 2}, unattended())
		close(gate)
		synctest.Wait()
		require.Len(t, unattended(), 5)
	})
}

// TestABatchEndsOnlyItsOwnOffers: a run that is in a second batch already is still
// being offered when the first one is over.
func TestABatchEndsOnlyItsOwnOffers(t *testing.T) {
	var table runtable.Table
	q := newDueRuns(&table)
	run := []*domain.Execution{{ID: 1}}
	q.enter(run, nil)
	first := q.begin(run)
	q.enter(run, nil)
	second := q.begin(run)
	first.end()
	require.Equal(t, 1, table.Len())
	second.end()
	require.Zero(t, table.Len())
	require.Empty(t, table.Load().Pending)
	require.Empty(t, q.jobs)
}

// TestAnOutageOfTheDatabaseIsTwoLines, however many runs it concerns.
func TestAnOutageOfTheDatabaseIsTwoLines(t *testing.T) {
	for _, method := range []string{"JobSpec", "OfferExecutions"} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				to := r.join(1000, nil)
				r.store.fail(only(method), nil)
				r.fire(flood(r.World, 300, nil)...)
				time.Sleep(10 * time.Second) // each comes again some 20 times
				synctest.Wait()
				require.Len(t, r.log.read(), 1)
				r.store.heal()
				time.Sleep(time.Second)
				synctest.Wait()
				require.Len(t, to.sent(), 300)
				text := r.log.read()
				require.Len(t, text, 1)
				require.Contains(t, text[0], "dispatch works again")
				time.Sleep(time.Minute)
				require.Empty(t, r.log.read())
			})
		})
	}
}

// TestRoomThatAFailedOfferGaveBackIsUsed as soon as the database takes offers
// again, also when the run that had it is gone by then.
func TestRoomThatAFailedOfferGaveBackIsUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		job := r.Job(nil)
		first, second := r.Run(job, time.Now().Add(-time.Second)), r.Run(job, time.Now())
		gate := make(chan struct{})
		r.store.fail(func(method string) error {
			if method == "OfferExecutions" {
				<-gate
				return errDatabase
			}
			return nil
		}, nil)
		r.d.fire([]domain.Execution{first, second}) // the second one finds a full house
		synctest.Wait()
		_, err := r.S.RequestCancel(t.Context(), r.Tenant, first.ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		r.store.heal()
		close(gate)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, second.ID, one(t, to.sent()).Execution.ID)
		require.True(t, strings.Contains(strings.Join(r.log.read(), ""), "postponed=1"))
	})
}
