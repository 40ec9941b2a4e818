package gormstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// A move of a tenant parks runs that wait. A node that planned them before has them in
// its memory. It cannot change them any more, with the rows that it remembers or after it
// has read them again.
func TestAParkedRunDoesNotChange(t *testing.T) {
	for _, remembered := range []string{"remembered", "read again"} {
		t.Run(remembered, func(t *testing.T) {
			onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
				planned := n.plan(2)
				age(t, n.there, planned)
				n.exec("UPDATE executions SET version = version + 1, wake_at = wake_at + ?", int64(record.ParkedFrom))
				if remembered == "read again" {
					n.here.Rows.Entries.Purge()
				}
				before := n.versions()
				for _, r := range n.offer(n.here, planned...) {
					require.Equal(t, store.OfferGone, r.Status)
				}
				var waits []store.Wait
				for _, e := range planned {
					waits = append(waits, store.Wait{Tenant: e.TenantID, ID: e.ID, Reason: domain.ReasonMaintenance, For: time.Second})
				}
				_, err := n.here.RecordWaits(t.Context(), waits)
				require.NoError(t, err)
				_, err = n.here.RequestCancel(t.Context(), planned[0].TenantID, planned[0].ID, domain.ReasonKilled, "")
				require.Equal(t, domain.CodeNotFound, domain.CodeOf(err))
				swept, err := n.here.SweepExecutions(t.Context(), store.SweepParams{Partitions: everyPartition(), Limit: 100, Hold: time.Second})
				require.NoError(t, err)
				require.Zero(t, swept.Seen)
				require.Equal(t, before, n.versions())
				require.Zero(t, n.holders())
			})
		})
	}
}

// versions are those of all runs, in the order of their ids.
func (n *twoNodes) versions() (all []int64) {
	n.t.Helper()
	rows, err := n.here.Write.QueryContext(n.t.Context(), "SELECT version FROM executions ORDER BY id")
	require.NoError(n.t, err)
	defer rows.Close()
	for rows.Next() {
		var v int64
		require.NoError(n.t, rows.Scan(&v))
		all = append(all, v)
	}
	require.NoError(n.t, rows.Err())
	return all
}
