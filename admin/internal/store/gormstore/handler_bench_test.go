package gormstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// BenchmarkHandlers measures reads of an executor with 14,400 handlers with schemas, which
// versions before the bound allowed. It reads all of them, as each call did then, one handler,
// and the names around a misspelled one. Then a registration brings them below the bound.
func BenchmarkHandlers(b *testing.B) {
	for name, options := range bothDatabases {
		b.Run(name, func(b *testing.B) {
			s := openStore(b, options(b))
			w := newWorld(b, s, 1, domain.BlockParallel)
			require.NoError(b, s.Run(b.Context(), "fill", func(t *db.Tx) error {
				var rows []record.HandlerRow
				for i := range 14_400 {
					rows = append(rows, record.HandlerRow{
						TenantID: int64(w.tenant), ExecutorID: int64(w.executor), Name: fmt.Sprintf("handler-%05d", i),
						InputSchema: []byte(`{"type":"object","title":"` + strings.Repeat("s", 900) + `"}`), FirstSeenAt: 1, LastSeenAt: 1,
					})
				}
				return t.Gorm.Create(&rows).Error
			}))
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					page, err := s.ListHandlers(b.Context(), store.ListHandlersParams{Tenant: w.tenant, Executor: w.executor, Limit: 20_000})
					require.NoError(b, err)
					require.Len(b, page.Items, 14_400)
				}
			})
			b.Run("named", func(b *testing.B) {
				for b.Loop() {
					_, err := s.FindHandler(b.Context(), w.tenant, w.executor, "handler-07000")
					require.NoError(b, err)
				}
			})
			b.Run("misspelled", func(b *testing.B) {
				for b.Loop() {
					names, err := s.ListHandlerNames(b.Context(), w.tenant, w.executor, "handler-07000x", 500)
					require.NoError(b, err)
					require.Len(b, names, 500)
				}
			})
			b.Run("page", func(b *testing.B) {
				for b.Loop() {
					_, err := s.ListHandlers(b.Context(), store.ListHandlersParams{Tenant: w.tenant, Executor: w.executor, Limit: 200, Bytes: domain.MaxPageBytes})
					require.NoError(b, err)
				}
			})
			b.Run("bound", func(b *testing.B) {
				began := time.Now()
				require.NoError(b, s.DefineHandlers(b.Context(), w.tenant, w.executor, []domain.Handler{{Name: "new"}}))
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/first")
				for b.Loop() {
					require.NoError(b, s.DefineHandlers(b.Context(), w.tenant, w.executor, []domain.Handler{{Name: "new"}}))
				}
			})
		})
	}
}
