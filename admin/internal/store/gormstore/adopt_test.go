package gormstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// What a node of the version before leaves comes into the outbox once.
func TestTheOutboxOfTheVersionBeforeIsAdopted(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			ends := []domain.RunEnd{{Tenant: 1, Executor: 2, Job: 3, Minute: 4, State: domain.Succeeded, Late: -1, Took: -1}}
			require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
				_, err := x.Exec(x.Ctx, "INSERT INTO statistics_journal (id, body) VALUES (7, ?)", record.EncodeEnds(ends))
				if err == nil {
					_, err = x.Exec(x.Ctx, "INSERT INTO callbacks (execution_id, success, tenant_id, created_at) VALUES (8, 0, 1, 5), (8, 1, 1, 6)")
				}
				return err
			}))
			for range 2 {
				require.NoError(t, s.AdoptOutbox(t.Context()))
			}
			require.Equal(t, []domain.Callback{{Tenant: 1, ID: 8}, {Tenant: 1, ID: 8, Success: true}}, storetest.TakeOutbox[domain.Callback](t, s, domain.TopicCallbacks))
			rows, err := s.ReadOutbox(t.Context(), domain.TopicEnds, 10)
			require.NoError(t, err)
			require.Len(t, rows, 1)
			got, err := record.DecodeEnds(rows[0].Body)
			require.NoError(t, err)
			require.Equal(t, ends, got)
			var left int
			require.NoError(t, s.Read.QueryRowContext(t.Context(), "SELECT (SELECT COUNT(*) FROM statistics_journal) + (SELECT COUNT(*) FROM callbacks)").Scan(&left))
			require.Zero(t, left)
		})
	}
}
