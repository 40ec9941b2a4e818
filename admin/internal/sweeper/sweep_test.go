package sweeper

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is something that the Sweeper handed over, with the instant.
type seen struct {
	e  domain.Execution
	at time.Time
}

// rig is a running Sweeper on a real database in virtual time.
type rig struct {
	*storetest.World
	sweeper *Sweeper

	mu           sync.Mutex
	later, ended []seen // guarded by mu
	cancels      []seen // guarded by mu
	resends      []seen // guarded by mu
	partitions   []int  // guarded by mu
	ownerless    []int  // guarded by mu
}

func (r *rig) record(list *[]seen, executions ...domain.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range executions {
		*list = append(*list, seen{e, time.Now().UTC()})
	}
}

// took returns what was handed over since the last call.
func (r *rig) took(list *[]seen) []seen {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := *list
	*list = nil
	return out
}

// Job makes a job whose partition is swept from now on.
func (r *rig) Job(change func(*domain.JobSpec)) domain.Job {
	job := r.World.Job(change)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions = append(slices.Clone(r.partitions), job.Partition)
	return job
}

func newRig(t *testing.T) *rig {
	// Ids hold times from 2026 on.
	time.Sleep(time.Until(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)))
	o := gormstore.Options{
		Driver: "sqlite", DSN: gormtest.SQLite(t),
		NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler),
	}
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &rig{World: storetest.NewWorld(t, s)}
	r.sweeper = New(Options{
		Store: s, Retention: s, Logger: slog.New(slog.DiscardHandler),
		Held:      func() []domain.PartitionTerm { r.mu.Lock(); defer r.mu.Unlock(); return held(r.partitions...) },
		Ownerless: func() []int { r.mu.Lock(); defer r.mu.Unlock(); return r.ownerless },
		Later:     func(e ...domain.Execution) { r.record(&r.later, e...) },
		Cancel:    func(e domain.Execution) { r.record(&r.cancels, e) },
		Resend: func(offers []store.OfferResult) {
			for _, o := range offers {
				r.record(&r.resends, o.Execution)
			}
		},
		Ended: func(e []domain.Execution) { r.record(&r.ended, e...) },
	})
	return r
}

// held are partitions in their first term.
func held(partitions ...int) []domain.PartitionTerm {
	out := make([]domain.PartitionTerm, len(partitions))
	for i, p := range partitions {
		out[i] = domain.PartitionTerm{Partition: p, Term: 1}
	}
	return out
}

func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.sweeper.Run(ctx) }()
		defer func() { cancel(); require.NoError(t, <-done) }()
		synctest.Wait()
		test(t, r)
	})
}

// within requires that something happened at or after an instant, and not more
// than two sweeps later.
func within(t *testing.T, at, from time.Time) {
	t.Helper()
	require.False(t, at.Before(from), "%s too early", from.Sub(at))
	require.Less(t, at.Sub(from), 2*sweepEvery)
}

func one(t *testing.T, list []seen) seen {
	t.Helper()
	require.Len(t, list, 1)
	return list[0]
}

// TestDueRunsOfADeadNodeAreTakenOver: nobody's timer holds them.
func TestDueRunsOfADeadNodeAreTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		at := time.Now().Truncate(time.Millisecond).Add(2 * time.Second)
		run := r.Run(r.Job(nil), at)
		time.Sleep(2*time.Second + domain.PickupGrace - time.Millisecond)
		require.Empty(t, r.took(&r.later), "the node that planned it has a second")
		time.Sleep(sweepHold)
		got := one(t, r.took(&r.later))
		require.Equal(t, run.ID, got.e.ID)
		require.Equal(t, domain.Due, got.e.State)
		within(t, got.at, at.Add(domain.PickupGrace))
		require.Equal(t, got.at.Add(sweepHold), r.Find(run.ID).WakeAt, "left to this node for a while")
		time.Sleep(sweepHold)
		require.NotEmpty(t, r.took(&r.later), "and looked at again when nothing happened")
		require.Empty(t, r.took(&r.ended))
	})
}

func TestExpiredOffersComeBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := r.Run(r.Job(nil), time.Now())
		_, err := r.S.OfferExecutions(t.Context(), []store.Offer{{Tenant: r.Tenant, ID: run.ID, Node: 1, Instance: r.Instance("boot", time.Minute)}})
		require.NoError(t, err)
		offered := time.Now()
		time.Sleep(domain.OfferTTL - time.Millisecond)
		require.Empty(t, r.took(&r.later))
		time.Sleep(2 * sweepEvery)
		got := one(t, r.took(&r.later))
		require.Equal(t, domain.Due, got.e.State)
		require.Equal(t, domain.ReasonOfferExpired, got.e.Reason)
		require.Equal(t, int64(1), got.e.Fence)
		within(t, got.at, offered.Add(domain.OfferTTL))
	})
}

func TestAttemptsOfASilentInstanceAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		instance := r.Instance("boot", domain.LeaseTTL)
		leaseEnd := time.Now().Add(domain.LeaseTTL)
		e := r.Start(instance, r.Run(r.Job(nil), time.Now()))[0]
		time.Sleep(10 * time.Second) // it is heard of once more
		_, renewed, err := r.S.RenewInstances(t.Context(), []store.InstanceRenewal{{ID: instance, Running: 1, Slots: 10}}, domain.LeaseTTL)
		require.NoError(t, err)
		require.Len(t, renewed, 1)
		leaseEnd = leaseEnd.Add(10 * time.Second)

		time.Sleep(time.Until(leaseEnd.Add(domain.LeaseMargin)))
		require.Empty(t, r.took(&r.ended))
		time.Sleep(2 * sweepEvery)
		got := one(t, r.took(&r.ended))
		require.Equal(t, domain.Lost, got.e.State)
		require.Equal(t, domain.ReasonLeaseExpired, got.e.Reason)
		within(t, got.at, leaseEnd.Add(domain.LeaseMargin))
		require.Equal(t, got.e, r.Find(e.ID))
		alerts := r.Alerts()
		require.Len(t, alerts, 1)
		require.Equal(t, domain.AlertRunLost, alerts[0].Kind)
		require.Equal(t, e.ID, alerts[0].ExecutionID)
		time.Sleep(instanceEvery)
		synctest.Wait()
		i, err := r.S.FindInstance(t.Context(), r.Tenant, instance)
		require.NoError(t, err)
		require.False(t, i.GoneAt.IsZero())
		require.Empty(t, r.took(&r.later))
	})
}

func TestLostAttemptsThatMayBeRepeatedAre(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.Start(r.Instance("boot", domain.LeaseTTL), r.Run(r.Job(func(s *domain.JobSpec) {
			s.OnLost, s.Retry = domain.OnLostRetry, domain.Retry{MaxAttempts: 2, Delay: 5 * time.Second}
		}), time.Now()))[0]
		time.Sleep(domain.LeaseTTL + domain.LeaseMargin + 2*sweepEvery)
		got := one(t, r.took(&r.later))
		require.Equal(t, domain.RetryWait, got.e.State)
		require.Equal(t, got.e.NotBefore, got.at, "the first loss costs no delay")
		require.Equal(t, got.e, one(t, r.took(&r.ended)).e, "whoever looks at attempts hears of it")
		require.Empty(t, r.Alerts(), "it has not failed for good")

		// Nobody offered it: the sweep brings it again after its time.
		time.Sleep(domain.PickupGrace + 2*sweepEvery)
		again := one(t, r.took(&r.later))
		within(t, again.at, got.e.NotBefore.Add(domain.PickupGrace))
		require.Equal(t, domain.RetryWait, r.Find(e.ID).State)
		require.Empty(t, r.took(&r.ended), "once per attempt")
	})
}

func TestRunsThatFoundNoInstanceInTimeAreMissed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := r.Run(r.Job(func(s *domain.JobSpec) { s.DispatchTimeout = 5 * time.Second }), time.Now())
		_, err := r.S.RecordWaits(t.Context(), []store.Wait{{Tenant: r.Tenant, ID: run.ID, Reason: domain.ReasonWaitInstance}})
		require.NoError(t, err)
		time.Sleep(5*time.Second + sweepHold + 2*sweepEvery)
		got := one(t, r.took(&r.ended))
		require.Equal(t, domain.Missed, got.e.State)
		require.Equal(t, domain.ReasonNoExecutor, got.e.Reason)
		require.Equal(t, got.e, r.Find(run.ID))
		require.False(t, got.at.Before(run.FireAt.Add(5*time.Second)))
	})
}

func TestOneStepOffersThatNobodyTookAreSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := r.Run(r.Job(nil), time.Now())
		_, err := r.S.OfferExecutions(t.Context(), []store.Offer{{
			Tenant: r.Tenant, ID: run.ID, Node: 1, Instance: r.Instance("boot", time.Hour), Idempotent: true, Granted: true,
		}})
		require.NoError(t, err)
		offered := time.Now()
		time.Sleep(domain.OfferTTL + domain.StartResend + 2*sweepEvery)
		got := r.took(&r.resends)
		require.Len(t, got, 2)
		within(t, got[0].at, offered.Add(domain.OfferTTL))
		within(t, got[1].at, got[0].at.Add(domain.StartResend))
		require.Equal(t, int64(1), got[1].e.Fence)
		e := r.Find(run.ID)
		require.NoError(t, r.S.RecordStarts(t.Context(), []store.Start{{
			Tenant: r.Tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, StartedAt: time.Now(),
		}}))
		time.Sleep(time.Minute)
		require.Empty(t, r.took(&r.resends))
	})
}

func TestUnansweredCancelsAreSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.Start(r.Instance("boot", domain.LeaseTTL), r.Run(r.Job(nil), time.Now()))[0]
		_, err := r.S.RequestCancel(t.Context(), r.Tenant, e.ID, domain.ReasonKilled, "enough")
		require.NoError(t, err)
		asked := time.Now()
		time.Sleep(domain.CancelResend - time.Millisecond)
		require.Empty(t, r.took(&r.cancels))
		time.Sleep(4*domain.CancelResend + 2*sweepEvery)
		got := r.took(&r.cancels)
		require.GreaterOrEqual(t, len(got), 3)
		within(t, got[0].at, asked.Add(domain.CancelResend))
		for i := 1; i < len(got); i++ {
			require.GreaterOrEqual(t, got[i].at.Sub(got[i-1].at), domain.CancelResend)
		}
		require.Equal(t, "enough", got[0].e.Message)
		time.Sleep(domain.LeaseTTL) // and when its instance dies, it is cancelled by force
		ended := one(t, r.took(&r.ended))
		require.Equal(t, domain.Cancelled, ended.e.State)
		require.Equal(t, domain.ReasonCancelForced, ended.e.Reason)
	})
}

func TestPassedDeadlinesEndRunsAndCancelThem(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.Start(r.Instance("boot", time.Hour), r.Run(r.Job(func(s *domain.JobSpec) { s.Timeout = 10 * time.Second }), time.Now()))[0]
		time.Sleep(time.Until(e.Deadline) - time.Millisecond)
		require.Empty(t, r.took(&r.ended))
		time.Sleep(2 * sweepEvery)
		got := one(t, r.took(&r.ended))
		require.Equal(t, domain.TimedOut, got.e.State)
		require.Equal(t, e.ID, one(t, r.took(&r.cancels)).e.ID, "its handler may still be running")
		require.Len(t, r.Alerts(), 1)
	})
}

// TestOwnerlessPartitionsAreSweptByEverybody: where nobody holds the partition.
func TestOwnerlessPartitionsAreSweptByEverybody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := r.World.Job(nil)
		run := r.Run(job, time.Now())
		time.Sleep(domain.PickupGrace + 10*ownerlessOverdue)
		require.Empty(t, r.took(&r.later), "a living node has it in a queue")
		r.mu.Lock()
		r.ownerless = []int{job.Partition}
		r.mu.Unlock()
		time.Sleep(foreignSweepEvery)
		require.Equal(t, run.ID, one(t, r.took(&r.later)).e.ID)
	})
}

// TestForeignPartitionsAreSweptByEverybody: what its own node leaves alone for longer than
// any work takes is found by the others.
func TestForeignPartitionsAreSweptByEverybody(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		patient := r.World.Job(func(s *domain.JobSpec) { s.DispatchTimeout = time.Hour })
		run := r.Run(patient, time.Now()) // in a partition that is not held
		time.Sleep(domain.PickupGrace + foreignOverdue - time.Millisecond)
		require.Empty(t, r.took(&r.later))
		time.Sleep(time.Millisecond + foreignSweepEvery)
		require.Equal(t, run.ID, one(t, r.took(&r.later)).e.ID)
	})
}

// TestMoreThanOneBatchIsSweptAtOnce: a backlog does not wait for ticks.
func TestMoreThanOneBatchIsSweptAtOnce(t *testing.T) {
	var calls int
	batches := []int{sweepLimit, sweepLimit, 3, 0}
	s := New(Options{
		Store: fake{sweep: func() (store.Swept, error) { calls++; return store.Swept{Seen: batches[calls-1]}, nil }}, Logger: slog.New(slog.DiscardHandler),
		Held: func() []domain.PartitionTerm { return held(1) }, Later: func(...domain.Execution) {}, Ended: func([]domain.Execution) {},
	})
	require.NoError(t, s.sweep(t.Context()))
	require.Equal(t, 3, calls)
}

// fake is a Store with function fields, for errors and for hours.
type fake struct {
	Store
	store.Retention
	sweep  func() (store.Swept, error)
	delete func(what string, before time.Time, limit int) (int64, error)
}

func (f fake) SweepExecutions(_ context.Context, p store.SweepParams) (store.Swept, error) {
	if p.Overdue > 0 {
		return store.Swept{}, nil // foreign partitions
	}
	if f.sweep == nil {
		return store.Swept{}, nil
	}
	return f.sweep()
}
func (f fake) ExpireInstances(context.Context, int, func() time.Time) ([]domain.Instance, error) {
	return nil, nil
}
func (f fake) RearmDelays(context.Context, int) (int, error) { return 0, nil }
func (f fake) AdmitWaiting(context.Context, []domain.LimitKey) ([]domain.Execution, error) {
	return nil, nil
}
func (f fake) Now(context.Context) (time.Time, error) { return time.Now(), nil }
func (f fake) DeleteLogsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("logs", before, limit)
}
func (f fake) DeleteRunsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("runs", before, limit)
}

func (f fake) DeleteTimersBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("timers", before, limit)
}
func (f fake) DeleteRunPurgesBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("purges", before, limit)
}
func (f fake) ApplyRetentionRules(_ context.Context, limit int) (runs, chunks int64, err error) {
	runs, err = f.delete("rules", time.Now(), limit)
	return runs, 0, err
}
func (f fake) DeleteDocumentsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("documents", before, limit)
}
func (f fake) RecountStored(_ context.Context, since time.Time) (int, error) {
	n, err := f.delete("counts", since, deleteLimit)
	return int(n), err
}
func (f fake) TrimLogs(context.Context, int64, int) (int64, error) { return 0, nil }

func (f fake) DeleteOutboxBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("alerts", before, limit)
}
func (f fake) DeleteInstancesBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("instances", before, limit)
}
func (f fake) DeleteHandlersBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("handlers", before, limit)
}
func (f fake) DeleteJoinTokenBootsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("boots", before, limit)
}
func (f fake) DeleteRefusalsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("refusals", before, limit)
}
func (f fake) DeleteMaintenanceBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("maintenance", before, limit)
}
func (f fake) DeleteJobsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("jobs", before, limit)
}
func (f fake) DeleteExecutorsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("executors", before, limit)
}
func (f fake) DeleteTenantsBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("tenants", before, limit)
}
func (f fake) DeleteRefreshTokensBefore(_ context.Context, before time.Time, limit int) (int64, error) {
	return f.delete("tokens", before, limit)
}

func TestSweepingGoesOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		var logged logs
		s := New(Options{
			Store: fake{sweep: func() (store.Swept, error) {
				if n := calls.Add(1); n >= 3 && n <= 6 {
					return store.Swept{}, errors.New("the database is down")
				}
				return store.Swept{}, nil
			}},
			Logger: slog.New(slog.NewTextHandler(&logged, nil)), Held: func() []domain.PartitionTerm { return held(1) },
			Later: func(...domain.Execution) {}, Ended: func([]domain.Execution) {},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*sweepEvery-time.Millisecond)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		require.EqualValues(t, 10, calls.Load())
		require.Equal(t, 2, logged.lines, "told when it changes, not at each try")
	})
}

type logs struct{ lines int }

func (l *logs) Write(p []byte) (int, error) { l.lines++; return len(p), nil }
