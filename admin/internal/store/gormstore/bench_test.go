package gormstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// BenchmarkCycle measures whole lives of 500 runs: claimed, offered, granted,
// finished, each step one batch. Figures are runs per second; "all" is the
// whole life.
func BenchmarkCycle(b *testing.B) {
	for name, options := range bothDatabases {
		for _, blocking := range []domain.Blocking{domain.BlockParallel, domain.BlockSerial} {
			b.Run(fmt.Sprintf("%s/%s", name, blocking), func(b *testing.B) { benchmarkCycle(b, openStore(b, options(b)), blocking) })
		}
	}
}

const benchBatch = 500

func benchmarkCycle(b *testing.B, s *Store, blocking domain.Blocking) {
	ctx := b.Context()
	ids := domain.NewIDSource(7, time.Now)
	tenant, executor, instance := domain.TenantID(ids.Next()), domain.ExecutorID(ids.Next()), domain.InstanceID(ids.Next())
	require.NoError(b, s.CreateTenant(ctx, domain.Tenant{ID: tenant, Name: "bench"}))
	require.NoError(b, s.CreateExecutor(ctx, domain.Executor{ID: executor, TenantID: tenant, Name: "bench"}))
	start := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	for i := range benchBatch {
		_, err := s.CreateJob(ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: tenant, Executor: executor, Source: domain.SourceConsole,
			Spec: domain.JobSpec{Name: fmt.Sprint("job ", i), Handler: "h", Blocking: blocking, Timeout: time.Minute}},
			func(time.Time, *domain.JobSpec) time.Time { return start })
		require.NoError(b, err)
	}
	partitions := make([]int, domain.Partitions)
	for i := range partitions {
		partitions[i] = i
	}
	plan := func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Second), LastFireAt: t.NextFireAt, Executions: []domain.Execution{{
			ID: domain.ExecutionID(ids.Next()), TenantID: t.TenantID, JobID: t.JobID, Revision: t.Revision, Executor: t.Executor, Partition: t.Partition,
			Cause: domain.CauseSchedule, FireAt: t.NextFireAt, State: domain.Due, MaxAttempts: 1, NotBefore: t.NextFireAt,
			WakeAt: now.Add(domain.PickupGrace), ExpireAt: now.Add(time.Hour), PlannedAt: now, LogLines: -1,
		}}}
	}
	spent := map[string]time.Duration{}
	step := func(name string, fn func()) {
		began := time.Now()
		fn()
		spent[name] += time.Since(began)
	}
	b.ResetTimer()
	for range b.N {
		var claimed store.ClaimedTriggers
		offers, grants, reports := make([]store.Offer, benchBatch), make([]store.GrantRequest, benchBatch), make([]store.AttemptReport, benchBatch)
		step("claim", func() {
			var err error
			claimed, err = s.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{Partitions: partitions, Limit: benchBatch, Plan: plan})
			require.NoError(b, err)
			require.Len(b, claimed.Executions, benchBatch)
		})
		for i, e := range claimed.Executions {
			offers[i] = store.Offer{Tenant: tenant, ID: e.ID, Node: 1, Instance: instance + domain.InstanceID(i%4)}
		}
		step("offer", func() {
			made, err := s.OfferExecutions(ctx, offers)
			require.NoError(b, err)
			for i, r := range made {
				require.Equal(b, store.OfferMade, r.Status)
				grants[i] = store.GrantRequest{Tenant: tenant, ID: r.Execution.ID, Fence: r.Execution.Fence, Instance: r.Execution.Instance}
			}
		})
		step("grant", func() {
			granted, err := s.GrantOffers(ctx, grants)
			require.NoError(b, err)
			for i, r := range granted {
				require.True(b, r.Granted)
				reports[i] = store.AttemptReport{Tenant: tenant, Executor: executor, Report: domain.Report{
					ExecutionID: r.Execution.ID, Fence: r.Execution.Fence, Outcome: domain.OutcomeSucceeded, Output: []byte(fmt.Sprintf(`{"rows":%d}`, i)),
					StartedAt: r.Execution.GrantedAt.Add(time.Duration(i%7) * time.Millisecond), LogLines: int64(i % 5),
				}}
			}
		})
		step("finish", func() {
			done, err := s.FinishAttempts(ctx, reports)
			require.NoError(b, err)
			require.Equal(b, store.FinishStored, done[benchBatch-1].Code)
		})
	}
	runs := float64(b.N * benchBatch)
	for name, d := range spent {
		b.ReportMetric(runs/d.Seconds(), name+"/s")
	}
	b.ReportMetric(runs/b.Elapsed().Seconds(), "all/s")
}
