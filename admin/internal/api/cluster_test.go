package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func TestCluster(t *testing.T) {
	held := false
	w := newWorld(t, func(d *Deps) {
		d.ClockHeld = func() (time.Time, time.Duration, bool) { return time.Unix(1_800_000_000, 0), time.Hour, held }
	})
	ctx := t.Context()
	self, err := w.store.RegisterNode(ctx, domain.Node{BootID: "boot-1", Name: "here", Version: "1.0", ExecutorAddress: "a:7070"}, time.Minute)
	require.NoError(t, err)
	got, err := w.store.AcquirePartitions(ctx, store.AcquirePartitionsParams{
		Node: self.ID, BootID: self.BootID, Want: []domain.PartitionTerm{{Partition: 0}, {Partition: 63}}, TTL: time.Hour,
	})
	require.NoError(t, err)
	require.Len(t, got, 2)
	_, err = w.store.RenewPartitions(ctx, store.RenewPartitionsParams{Node: self.ID, BootID: self.BootID, TTL: time.Minute, Wall: time.Now().Add(time.Minute)})
	require.NoError(t, err)

	c := into[Cluster](w.call("acme/viewer", "GET", "/cluster", nil).is(200))
	require.Equal(t, "sqlite", c.Database.Kind)
	require.Equal(t, "primary", c.Database.Role)
	require.False(t, c.Database.ReadOnly)
	require.Empty(t, c.Database.Findings)
	require.False(t, c.Clock.Held)
	require.Nil(t, c.Clock.HeldAt)
	require.Len(t, c.Nodes, 1)
	n := c.Nodes[0]
	require.Equal(t, "live", n.State)
	require.True(t, n.Current)
	require.Equal(t, 2, n.Partitions)
	require.InDelta(t, time.Minute.Milliseconds(), n.ClockSkewMs, 5000)
	require.Len(t, c.Partitions, domain.Partitions)
	require.Equal(t, "held", c.Partitions[63].State)
	require.Equal(t, "here", c.Partitions[63].NodeName)
	require.Equal(t, n.ID, *c.Partitions[63].NodeID)
	require.Equal(t, "1", c.Partitions[63].Term)
	require.Equal(t, "free", c.Partitions[1].State)
	require.Nil(t, c.Partitions[1].NodeID)
	require.Nil(t, c.Partitions[1].Until)

	require.Equal(t, ClusterHistory{Epoch: "0"}, c.History)
	w.call("acme/admin", "POST", "/cluster/accept-history", nil).problem(403, "permission_denied")
	w.call("platform", "POST", "/cluster/accept-history", nil).problem(409, "conflict")
	w.store.RememberHistory(domain.History{Mark: 1 << 40})
	c = into[Cluster](w.call("acme/viewer", "GET", "/cluster", nil).is(200))
	require.True(t, c.History.Held)
	require.Contains(t, c.History.Reason, "it was at 0:1099511627776")
	require.Equal(t, AcceptedHistory{Epoch: "1"}, into[AcceptedHistory](w.call("platform", "POST", "/cluster/accept-history", nil).is(200)))
	require.Equal(t, ClusterHistory{Epoch: "1"}, into[Cluster](w.call("acme/viewer", "GET", "/cluster", nil).is(200)).History)

	held = true
	c = into[Cluster](w.call("acme/viewer", "GET", "/cluster", nil).is(200))
	require.True(t, c.Clock.Held)
	require.Equal(t, time.Hour.Milliseconds(), c.Clock.JumpMs)
	w.call("acme/admin", "POST", "/cluster/confirm-clock", nil).problem(403, "permission_denied")
	confirmed := into[ConfirmedClock](w.call("platform", "POST", "/cluster/confirm-clock", nil).is(200))
	table, err := w.store.ReadPartitions(ctx)
	require.NoError(t, err)
	require.Equal(t, confirmed.ConfirmedAt, web.Instant(table.ClockConfirmedAt))
}

func TestClusterLags(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	table := domain.PartitionTable{Now: now, Leases: []domain.PartitionLease{
		{PartitionTerm: domain.PartitionTerm{Partition: 0, Term: 3}, Node: 7, BootID: "a", Until: now.Add(time.Second)},
		{PartitionTerm: domain.PartitionTerm{Partition: 1, Term: 4}, Node: 7, BootID: "a", Until: now.Add(time.Second)},
		{PartitionTerm: domain.PartitionTerm{Partition: 2, Term: 5}, Node: 9, BootID: "gone", Until: now},
		{PartitionTerm: domain.PartitionTerm{Partition: 3}},
	}, Nodes: []domain.NodeStatus{
		{Node: domain.Node{ID: 7, BootID: "a", Name: "one", HeartbeatAt: ago(1), Sessions: 4}, RenewedAt: ago(1), Connected: true},
		{Node: domain.Node{ID: 8, BootID: "b", Name: "two", HeartbeatAt: ago(2), Sessions: 4}},
		{Node: domain.Node{ID: 9, BootID: "c", Name: "three", HeartbeatAt: ago(1), Sessions: 4}, RenewedAt: ago(30), Connected: true},
	}}
	c := clusterOf(table, []domain.PartitionLag{
		{NextFireAt: ago(-2), OldestWakeAt: ago(-1)}, {NextFireAt: ago(4), OldestWakeAt: ago(2)}, {NextFireAt: ago(9)}, {},
	}, "a")
	require.Equal(t, []int{4, 0, 0}, []int{*c.Nodes[0].Sessions, *c.Nodes[1].Sessions, *c.Nodes[2].Sessions})
	states := []string{c.Nodes[0].State, c.Nodes[1].State, c.Nodes[2].State}
	require.Equal(t, []string{"live", "leaving", "silent"}, states)
	require.EqualValues(t, 30_000, c.Nodes[2].HeartbeatAgeMs)
	require.EqualValues(t, 4000, c.Nodes[0].PlanningLagMs)
	require.Equal(t, 2, c.Nodes[0].Partitions)
	for i, want := range []struct {
		state    string
		planning int64
		due      int64
	}{{"held", 0, 0}, {"held", 4000, 2000}, {"expired", 9000, 0}, {"free", 0, 0}} {
		p := c.Partitions[i]
		require.Equal(t, want.state, p.State, i)
		require.Equal(t, want.planning, p.PlanningLagMs, i)
		require.Equal(t, want.due, p.DueLagMs, i)
		require.Equal(t, want.due > 0, p.OldestDueAt != nil, i)
	}
	require.Empty(t, c.Partitions[2].NodeName)
	require.Nil(t, c.Partitions[3].NextFireAt)
}
