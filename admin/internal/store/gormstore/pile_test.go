package gormstore

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// everyStatement is an explainer that explains all statements.
type everyStatement struct{ *explainer }

func (e everyStatement) QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error) {
	e.seen++
	e.explain(ctx, statement, args...)
	return e.s.Read.QueryContext(ctx, statement, args...)
}

// TestPilesUseTheirIndexes counts and explains the statements of a page of jobs. The slots
// cost one, and jobs with many waiting runs two more together. Each uses an index.
func TestPilesUseTheirIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 20, domain.BlockSerial)
			ctx := t.Context()
			e := everyStatement{&explainer{t: t, s: s, tables: map[string]bool{"executions": true, "job_slots": true, "slot_waiters": true}}}
			lookup, snapshot := s.Lookup, s.InSnapshot
			statements := func() int {
				before := e.seen
				s.Lookup, s.InSnapshot = e, func(_ context.Context, fn func(db.Querier) error) error { return fn(e) }
				_, err := s.ListJobs(ctx, store.ListJobsParams{Tenant: w.tenant, Limit: 20})
				require.NoError(t, err)
				s.Lookup, s.InSnapshot = lookup, snapshot
				return e.seen - before
			}
			w.plan(1)
			few := statements()
			runs := w.plan(59)
			_, err := s.OfferExecutions(ctx, w.offers(runs))
			require.NoError(t, err)
			if name == "mysql" {
				_, err := s.Write.ExecContext(ctx, "ANALYZE TABLE executions, job_slots, slot_waiters")
				require.NoError(t, err)
			}
			require.Equal(t, few+2, statements())
			jobs, err := s.ListJobs(ctx, store.ListJobsParams{Tenant: w.tenant, Limit: 20})
			require.NoError(t, err)
			require.EqualValues(t, 58, jobs[0].Waiting)
		})
	}
}
