package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func testCluster(t *testing.T, f *fixture) {
	f.ok(f.s.Ping(f.ctx))
	require.WithinDuration(t, time.Now(), f.now(), 5*time.Second)
	values := make([]string, 8)
	key := "key " + f.tenant.String()
	race(8, func(i int) {
		v, err := f.s.ClusterValue(f.ctx, key, fmt.Sprint(i))
		if err != nil {
			t.Errorf("cluster value: %v", err)
		}
		values[i] = v
	})
	for _, v := range values {
		require.Equal(t, values[0], v)
		require.NotEmpty(t, v)
	}

	f.ok(f.s.SetClusterValue(f.ctx, key, "changed"))
	v, err := f.s.ClusterValue(f.ctx, key, "initial")
	f.ok(err)
	require.Equal(t, "changed", v)
	f.ok(f.s.SetClusterValue(f.ctx, key+"new", "set"))
	v, err = f.s.ClusterValue(f.ctx, key+"new", "initial")
	f.ok(err)
	require.Equal(t, "set", v)

	now := f.now()
	good := domain.SigningKey{ID: "good " + f.tenant.String(), PublicKey: []byte{0, 1, 2}, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	old := domain.SigningKey{ID: "old " + f.tenant.String(), PublicKey: []byte{3}, CreatedAt: now, ExpiresAt: now.Add(-time.Second)}
	f.ok(f.s.SaveSigningKey(f.ctx, good))
	f.ok(f.s.SaveSigningKey(f.ctx, good))
	f.ok(f.s.SaveSigningKey(f.ctx, old))
	keys, err := f.s.ListSigningKeys(f.ctx)
	f.ok(err)
	require.Contains(t, keys, good)
	require.NotContains(t, keys, old)
}

func testNodeNumbers(t *testing.T, f *fixture) {
	nodes := make([]domain.Node, 8)
	race(8, func(i int) {
		n, err := f.s.RegisterNode(f.ctx, domain.Node{BootID: fmt.Sprint(f.tenant, "-", i), Name: "n", ExecutorAddress: "a:1", Version: "v", StartedAt: f.now(),
			Zones: domain.ZoneRules{Source: "/usr/share/zoneinfo", Version: "2026a", Digest: fmt.Sprint("d", i)}}, time.Minute)
		if err != nil {
			t.Errorf("register: %v", err)
		}
		nodes[i] = n
	})
	seen := map[domain.NodeID]bool{}
	for _, n := range nodes {
		require.False(t, seen[n.ID], "number %s was given twice", n.ID)
		require.True(t, n.ID >= 1 && n.ID <= domain.MaxNodeID)
		seen[n.ID] = true
	}
	table, err := f.s.ReadPartitions(f.ctx)
	f.ok(err)
	digests := 0
	for _, n := range table.Nodes {
		if seen[n.ID] {
			require.Equal(t, []string{"/usr/share/zoneinfo", "2026a"}, []string{n.Zones.Source, n.Zones.Version})
			digests++
		}
	}
	require.Equal(t, 8, digests)
	require.True(t, table.ZonesDiffer())
	nodes[0].Sessions = 5
	now, live, err := f.s.HeartbeatNode(f.ctx, nodes[0], time.Minute)
	f.ok(err)
	require.WithinDuration(t, time.Now(), now, 5*time.Second)
	found := 0
	for _, n := range live {
		if seen[n.ID] {
			found++
		}
		if n.ID == nodes[0].ID {
			require.Equal(t, 5, n.Sessions)
			require.Equal(t, "a:1", n.ExecutorAddress)
		}
	}
	require.Equal(t, 8, found)
	again, err := f.s.RegisterNode(f.ctx, nodes[3], time.Minute)
	f.ok(err)
	require.Equal(t, nodes[3].ID, again.ID, "the same boot keeps its number")
	for _, n := range nodes[1:] {
		f.ok(f.s.RemoveNode(f.ctx, n.ID, n.BootID))
	}
	_, live, err = f.s.HeartbeatNode(f.ctx, nodes[0], time.Minute)
	f.ok(err)
	for _, n := range live {
		require.False(t, seen[n.ID] && n.ID != nodes[0].ID, "a removed node is off the list")
	}
	f.ok(f.s.RemoveNode(f.ctx, nodes[0].ID, nodes[0].BootID))
}

func testNodeTakenOver(t *testing.T, f *fixture) {
	n, err := f.s.RegisterNode(f.ctx, domain.Node{BootID: "mine " + f.tenant.String(), Name: "n"}, time.Minute)
	f.ok(err)
	f.ok(f.s.RemoveNode(f.ctx, n.ID, "somebody else"))
	_, _, err = f.s.HeartbeatNode(f.ctx, n, time.Minute)
	f.ok(err)
	stranger := n
	stranger.BootID = "stranger"
	_, _, err = f.s.HeartbeatNode(f.ctx, stranger, time.Minute)
	f.code(domain.CodeNotFound, err)
	f.ok(f.s.RemoveNode(f.ctx, n.ID, n.BootID))
	_, _, err = f.s.HeartbeatNode(f.ctx, n, time.Minute)
	f.code(domain.CodeNotFound, err)
}
