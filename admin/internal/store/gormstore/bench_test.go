package gormstore

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// BenchmarkCycle measures whole lives of 500 runs: claimed, offered, granted,
// finished, one batch after the other. Figures are runs per second; "all" is
// the whole life.
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
	w := newWorld(b, s, benchBatch, blocking)
	w.plan(1) // fills the caches
	spent := map[string]time.Duration{}
	step := func(name string, fn func()) {
		began := time.Now()
		fn()
		spent[name] += time.Since(began)
	}
	b.ResetTimer()
	for range b.N {
		var claimed []domain.Execution
		var offered []store.OfferResult
		var granted []store.GrantResult
		var finished []store.FinishResult
		var err error
		step("claim", func() { claimed = w.plan(1) })
		step("offer", func() { offered, err = s.OfferExecutions(ctx, w.offers(claimed)) })
		require.NoError(b, err)
		step("grant", func() { granted, err = s.GrantOffers(ctx, w.grants(offered)) })
		require.NoError(b, err)
		step("finish", func() { finished, err = s.FinishAttempts(ctx, w.reports(granted)) })
		require.NoError(b, err)
		for i := range benchBatch {
			require.Equal(b, store.FinishStored, finished[i].Code)
		}
	}
	runs := float64(b.N * benchBatch)
	for name, d := range spent {
		b.ReportMetric(runs/d.Seconds(), name+"/s")
	}
	b.ReportMetric(runs/b.Elapsed().Seconds(), "all/s")
}

// BenchmarkChangeJobs measures new revisions of 1,000 jobs, one in a transaction and several.
func BenchmarkChangeJobs(b *testing.B) {
	for name, options := range bothDatabases {
		for _, together := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/together=%t", name, together), func(b *testing.B) { benchmarkChangeJobs(b, openStore(b, options(b)), together) })
		}
	}
}

func benchmarkChangeJobs(b *testing.B, s *Store, together bool) {
	w := newWorld(b, s, 1000, domain.BlockParallel)
	revision := func(job domain.Job) store.UpdateJobParams {
		job.Spec.Priority++
		return store.UpdateJobParams{
			Tenant: w.tenant, ID: job.ID, Spec: job.Spec, Source: domain.SourceConsole, By: "ann",
			Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never },
		}
	}
	ids, err := s.ListJobIDs(b.Context(), store.ListJobsParams{Tenant: w.tenant, Limit: 1000}, 0, math.MaxInt64)
	require.NoError(b, err)
	require.Len(b, ids, 1000)
	jobs, err := s.FindJobsByID(b.Context(), w.tenant, ids)
	require.NoError(b, err)
	b.ResetTimer()
	for range b.N {
		if together {
			for _, err := range s.ChangeJobs(b.Context(), w.tenant, ids, func(_ int, job *store.LockedJob) error { return job.Update(revision(job.Job)) }) {
				require.NoError(b, err)
			}
			continue
		}
		for i := range jobs {
			_, err := s.UpdateJob(b.Context(), revision(jobs[i].Job))
			require.NoError(b, err)
		}
	}
	b.ReportMetric(float64(b.N*len(ids))/b.Elapsed().Seconds(), "jobs/s")
}
