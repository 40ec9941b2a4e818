package gormstore

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// BenchmarkTimers measures, with 200,000 pending timers (keys of 20 characters,
// inputs of 40 bytes): what a timer takes in the database with its indexes, how many
// are set in a second (in lists of 10,000, and one by one by 16 callers), and how
// many are claimed. Run it once: -benchtime 1x.
func BenchmarkTimers(b *testing.B) {
	for name, options := range bothDatabases {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				benchmarkTimers(b, openStore(b, options(b)))
			}
		})
	}
}

func benchmarkTimers(b *testing.B, s *Store) {
	const pending, singles, callers = 200_000, 8_000, 16
	w := newWorld(b, s, 1, domain.BlockParallel)
	job := w.timers(1, time.Now().Add(time.Hour))
	number := 0
	timer := func(at time.Time) store.SetTimer {
		number++
		return store.SetTimer{Timer: domain.Timer{
			ID: domain.TimerID(w.ids.Next()), TenantID: w.tenant, JobID: job, FireAt: at, RequestedBy: "key:shop",
			Key: fmt.Sprintf("order-%014d", number*7_919%10_000_000), Input: fmt.Appendf(nil, `{"order":"%029d"}`, number),
		}}
	}
	before := bytesOf(b, s)
	var spent time.Duration
	for range pending / domain.MaxTimerBatch {
		list := make([]store.SetTimer, domain.MaxTimerBatch)
		for i := range list {
			list[i] = timer(time.Now().Add(time.Hour + time.Duration(number%86_400)*time.Second))
		}
		began := time.Now()
		results := s.SetTimers(b.Context(), store.SetTimersParams{Timers: list})
		spent += time.Since(began)
		for i := range results {
			require.NoError(b, results[i].Err)
		}
	}
	b.ReportMetric(pending/spent.Seconds(), "set/s")
	b.ReportMetric(float64(bytesOf(b, s)-before)/pending, "B/timer")

	each := make([][]store.SetTimer, callers)
	for i := range singles {
		each[i%callers] = append(each[i%callers], timer(time.Now()))
	}
	began := time.Now()
	var wg sync.WaitGroup
	for _, list := range each {
		wg.Go(func() {
			for i := range list {
				if err := s.SetTimers(b.Context(), store.SetTimersParams{Timers: list[i : i+1]})[0].Err; err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(singles/time.Since(began).Seconds(), "single/s")

	claimed := 0
	began = time.Now()
	for claimed < pending {
		got, err := s.ClaimDueTimers(b.Context(), store.ClaimDueTimersParams{Partitions: w.held, Horizon: 48 * time.Hour, Limit: 500, NewID: w.ids.Next})
		require.NoError(b, err)
		claimed += len(got.Executions)
	}
	b.ReportMetric(float64(claimed)/time.Since(began).Seconds(), "claim/s")
}

// bytesOf is what the tables and indexes of timers take.
func bytesOf(b *testing.B, s *Store) (bytes int64) {
	b.Helper()
	statement := "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat WHERE name IN ('timers', 'uq_timers_key', 'ix_timers_due')"
	if s.Dialect.Name() != "sqlite" {
		_, err := s.Write.ExecContext(b.Context(), "ANALYZE TABLE timers")
		require.NoError(b, err)
		statement = "SELECT DATA_LENGTH + INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'timers'"
	}
	require.NoError(b, db.Query(b.Context(), s.Write, func(rows *sql.Rows) error { return rows.Scan(&bytes) }, statement))
	return bytes
}
