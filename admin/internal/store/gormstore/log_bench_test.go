package gormstore

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// BenchmarkMillionLines reads and searches a log of a million lines. Each
// figure is of one ReadLog; a search that is not over in one goes on, and
// counts as one. It measures a fixed number of reads: run it with -benchtime 1x.
func BenchmarkMillionLines(b *testing.B) {
	for name, options := range bothDatabases {
		b.Run(name, func(b *testing.B) {
			const lines = 1_000_000
			w := newLogWorld(b, options(b))
			began := time.Now()
			w.fill(lines)
			b.ReportMetric(lines/time.Since(began).Seconds(), "append_lines/s")
			b.ReportMetric(float64(w.stored())/lines, "stored_B/line")
			b.ReportMetric(float64(w.aids())/lines, "aid_B/line")
			random := rand.New(rand.NewPCG(1, 1))
			failures := 8
			for what, p := range map[string]func() store.ReadLogParams{
				"middle": func() store.ReadLogParams { return store.ReadLogParams{After: random.Int64N(lines), Limit: 1000} },
				"tail":   func() store.ReadLogParams { return store.ReadLogParams{Before: 1 << 60, Limit: 1000} },
				"search_once": func() store.ReadLogParams {
					return store.ReadLogParams{Text: fmt.Sprintf("order %d ", random.Int64N(lines)), Limit: 1000}
				},
				"search_none": func() store.ReadLogParams { return store.ReadLogParams{Text: "no such thing", Limit: 1000} },
				"search_many": func() store.ReadLogParams { return store.ReadLogParams{Text: "reconciled", Limit: 1000} },
				// A number that is nowhere, of digits that are everywhere.
				"search_number": func() store.ReadLogParams {
					return store.ReadLogParams{Text: fmt.Sprint(1_000_000_000 + random.Int64N(1_000_000_000)), Limit: 1000}
				},
				"level_at_rest": func() store.ReadLogParams { return store.ReadLogParams{MinLevel: &failures, Limit: 1000} },
			} {
				var took []time.Duration
				for range 100 {
					began := time.Now()
					w.readOn(p())
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, what+"_p50_ms")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, what+"_p99_ms")
			}
		})
	}
}

// aids is how long all search aids are together.
func (w *logWorld) aids() (bytes int64) {
	w.tb.Helper()
	require.NoError(w.tb, db.Query(w.tb.Context(), w.s.Read, func(rows *sql.Rows) error { return rows.Scan(&bytes) },
		"SELECT COALESCE(SUM(LENGTH(aid)), 0) FROM log_chunks WHERE tenant_id = ?", int64(w.tenant)))
	return bytes
}

// fill writes lines as a handler's batches bring them.
func (w *logWorld) fill(lines int64) {
	w.tb.Helper()
	random := rand.New(rand.NewPCG(2, 2))
	at := time.UnixMilli(1800000000000).UTC()
	const batch = 4000
	for first := int64(1); first <= lines; first += batch {
		c := domain.LogChunk{TenantID: w.tenant, ExecutionID: w.run.ID, Attempt: 1, FirstLine: first}
		for n := first; n < first+batch; n++ {
			at = at.Add(time.Duration(random.IntN(3)) * time.Millisecond)
			c.Lines = append(c.Lines, domain.LogLine{
				Number: n, At: at, Message: fmt.Sprintf("order %d of customer %08x reconciled", n, random.Uint32()), Attrs: fmt.Appendf(nil, `{"amount":%d}`, random.IntN(1e6)),
			})
		}
		_, err := w.s.AppendLogs(w.tb.Context(), []store.LogAppend{{Tenant: w.tenant, Executor: w.executor, Chunks: []domain.LogChunk{c}}})
		require.NoError(w.tb, err)
	}
}

// readOn reads until there is a page or the log is at its end.
func (w *logWorld) readOn(p store.ReadLogParams) {
	for {
		page := w.read(p)
		if len(page.Lines) > 0 || p.Before > 0 || page.Reached >= page.LastLine {
			return
		}
		p.After = page.Reached
	}
}
