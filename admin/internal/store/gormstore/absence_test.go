package gormstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// All nodes were away for longer than a lease, after a stop or a death. No lease could be
// renewed. Executors get the time to connect before any node counts their runs as lost.
func TestExecutorsComeBackAfterAnAbsence(t *testing.T) {
	for name, leaving := range map[string]bool{"stopped": true, "died": false} {
		t.Run(name, func(t *testing.T) {
			onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
				running := n.grant(n.here, n.offer(n.here, n.plan(1)...)...)
				n.renew(n.here)
				if leaving {
					_, err := n.here.ReleasePartitions(t.Context(), store.ReleasePartitionsParams{BootID: "here", Leaving: true})
					require.NoError(t, err)
				}
				ms := (domain.LeaseTTL + domain.LeaseMargin + time.Second).Milliseconds()
				n.exec("UPDATE node_states SET renewed_at = renewed_at - CASE WHEN renewed_at > 0 THEN ? ELSE -? END", ms, ms)
				n.exec("UPDATE instances SET lease_until = last_seen_at - ?", domain.LeaseMargin.Milliseconds()+1)
				n.exec("UPDATE executions SET wake_at = 1 WHERE wake_at IS NOT NULL")
				n.judged(n.there, 0, "nobody has come back")
				n.exec("UPDATE executions SET wake_at = 1 WHERE wake_at IS NOT NULL")
				n.renew(n.here)
				n.renew(n.there)
				n.judged(n.there, 0, "their executors may be about to come back")
				n.exec("UPDATE cluster_values SET value = value - ? WHERE name = 'nodes_returned'", (domain.ReturnTime+domain.LeaseMargin).Milliseconds()+1)
				n.exec("UPDATE executions SET wake_at = 1 WHERE wake_at IS NOT NULL")
				n.judged(n.here, len(running), "they did not")
			})
		})
	}
}

func (n *twoNodes) renew(s *Store) {
	n.t.Helper()
	name := map[*Store]string{n.here: "here", n.there: "there"}[s]
	_, err := s.RenewPartitions(n.t.Context(), store.RenewPartitionsParams{Node: domain.NodeID(len(name)), BootID: name, Wall: time.Now(), TTL: time.Second})
	require.NoError(n.t, err)
}

// judged looks for lost runs and lost instances.
func (n *twoNodes) judged(s *Store, runs int, why string) {
	n.t.Helper()
	gone, err := s.ExpireInstances(n.t.Context(), 100, func() time.Time { return time.Time{} })
	require.NoError(n.t, err)
	swept, err := s.SweepExecutions(n.t.Context(), store.SweepParams{Partitions: everyPartition(), Limit: 100, Hold: time.Second})
	require.NoError(n.t, err)
	require.Len(n.t, swept.Ended, runs, why)
	require.Equal(n.t, runs > 0, len(gone) > 0, why)
}
