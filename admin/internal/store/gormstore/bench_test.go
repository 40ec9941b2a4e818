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
