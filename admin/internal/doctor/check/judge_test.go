package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// codesOf are status and code of each line; what is wrong has something to do.
func codesOf(t *testing.T, lines ...doctor.Result) (out []string) {
	t.Helper()
	for _, r := range lines {
		out = append(out, string(r.Status)+" "+r.Code)
		if r.Status == doctor.Warning || r.Status == doctor.Failed {
			require.True(t, r.Do != "" && r.Code != "", "%+v", r)
		}
	}
	return out
}

func TestJudgingClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offset, bound time.Duration
		want          string
	}{
		{0, time.Millisecond, "ok "},
		{-400 * time.Millisecond, time.Millisecond, "ok "},
		{700 * time.Millisecond, 300 * time.Millisecond, "ok "}, // the network may be to blame
		{700 * time.Millisecond, time.Millisecond, "warn clocks_differ"},
		{-2 * time.Second, time.Millisecond, "warn clocks_differ"},
	} {
		require.Equal(t, []string{c.want}, codesOf(t, judgeClock("the database's clock", c.offset, c.bound)), "%v", c)
	}
	require.Equal(t, "the database's clock is 2s behind this machine's, within 1ms", judgeClock("the database's clock", -2*time.Second, time.Millisecond).Found)

	nodes := func(skews ...time.Duration) (table domain.PartitionTable) {
		for _, s := range skews {
			table.Nodes = append(table.Nodes, domain.NodeStatus{Node: domain.Node{Name: "n"}, ClockSkew: s})
		}
		return table
	}
	require.Equal(t, []string{"skipped "}, codesOf(t, judgeNodesClocks(nodes())...))
	require.Equal(t, []string{"ok "}, codesOf(t, judgeNodesClocks(nodes(0, time.Millisecond))...))
	require.Equal(t, []string{"warn clocks_differ", "warn clocks_differ"}, codesOf(t, judgeNodesClocks(nodes(0, time.Second, -time.Minute))...))
}

func TestJudgingZones(t *testing.T) {
	t.Parallel()
	ours := domain.ZoneRules{Source: "/usr/share/zoneinfo", Version: "2026a", Digest: "one"}
	table := func(digests ...string) (table domain.PartitionTable) {
		for _, d := range digests {
			table.Nodes = append(table.Nodes, domain.NodeStatus{Node: domain.Node{Name: "n" + d, Zones: domain.ZoneRules{Digest: d}}})
		}
		return table
	}
	require.Equal(t, []string{"ok "}, codesOf(t, judgeZones(ours, table())...))
	require.Equal(t, []string{"ok "}, codesOf(t, judgeZones(ours, table("one", ""))...))
	require.Equal(t, []string{"warn zones_differ"}, codesOf(t, judgeZones(ours, table("one", "two"))...))
}

func TestJudgingACluster(t *testing.T) {
	t.Parallel()
	one := domain.PartitionTable{Nodes: []domain.NodeStatus{{Node: domain.Node{Name: "a", Version: "1.0"}}}}
	require.Equal(t, []string{"ok "}, codesOf(t, judgeCluster(one, nil)...))
	require.Equal(t, []string{"skipped "}, codesOf(t, judgeCluster(domain.PartitionTable{}, nil)...))
	require.Equal(t, []string{"fail clock_jump"}, codesOf(t, judgeCluster(one, map[string]string{domain.ClockHoldValue: "300000"})...))
	one.Doubted.Mark = 9
	require.Equal(t, []string{"fail db_rollback"}, codesOf(t, judgeCluster(one, nil)...))
	one.History.Epoch = 1 // somebody has accepted it
	require.Equal(t, []string{"ok "}, codesOf(t, judgeCluster(one, nil)...))
}

func TestJudgingConnections(t *testing.T) {
	t.Parallel()
	const each = gormstore.ConnectionsPerNode
	for _, c := range []struct {
		limits gormstore.Capacity
		nodes  int
		want   string
	}{
		{gormstore.Capacity{Connections: 151}, 0, "ok "},
		{gormstore.Capacity{Connections: 2 * each}, 1, "ok "},
		{gormstore.Capacity{Connections: 2*each - 1}, 1, "warn too_few_connections"},
		{gormstore.Capacity{Connections: 151}, 4, "warn too_few_connections"},
		{gormstore.Capacity{Connections: 1000, PerUser: 40}, 1, "warn too_few_connections"},
	} {
		require.Equal(t, []string{c.want}, codesOf(t, judgeCapacity(c.limits, c.nodes)), "%+v", c)
	}
}

func TestJudgingMigrations(t *testing.T) {
	t.Parallel()
	for schema, want := range map[gormstore.Schema]string{
		{Applied: 3, Known: 3}:             "ok ",
		{Known: 3, Pending: 3}:             "ok ", // an empty database
		{Applied: 2, Known: 3, Pending: 1}: "warn migrations_pending",
		{Applied: 4, Known: 3}:             "fail database_of_a_newer_version",
	} {
		require.Equal(t, []string{want}, codesOf(t, judgeSchema(schema)))
	}
}

func TestJudgingGroups(t *testing.T) {
	t.Parallel()
	members := []domain.DatabaseMember{{ID: "a"}, {ID: "b", Current: true}}
	for want, g := range map[string]*domain.DatabaseGroup{
		"skipped ":                     nil,
		"ok ":                          {Kind: "galera", Quorum: true, Writer: "b", Members: members},
		"fail group_without_quorum":    {Kind: "galera", Writer: "b", Members: members},
		"warn endpoint_not_the_writer": {Kind: "group_replication", Quorum: true, Writer: "a", Members: members},
	} {
		require.Equal(t, []string{want}, codesOf(t, judgeGroup(g)))
	}
	require.Equal(t, []string{"ok "}, codesOf(t, judgeGroup(&domain.DatabaseGroup{Quorum: true, Members: members})), "nobody writes yet")
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]string{
		"sync_binlog is 0: a crash can lose it; set it to 1":               {"sync_binlog is 0: a crash can lose it", "Set it to 1."},
		"the database is read-only: give the address of the primary":       {"the database is read-only", "Give the address of the primary."},
		"it has several writers, which lose updates: use one, or allow it": {"it has several writers, which lose updates", "Use one, or allow it."},
		"something": {"something", "See docs/guide/install.md, MySQL or MariaDB."},
	} {
		what, do := advice(message)
		require.Equal(t, want, [2]string{what, do})
	}
}
