package watchdog

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Nodes are warned of by what their rules say, not by what they are called, and
// once for each change.
func TestNodesWithOtherRulesOfTimeZones(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var table partitions
	w := &Zones{Logger: slog.New(slog.NewTextHandler(&log, nil)), Store: &table}
	node := func(name, version, digest string) (n domain.NodeStatus) {
		n.Name, n.Zones = name, domain.ZoneRules{Source: "/usr/share/zoneinfo", Version: version, Digest: digest}
		return n
	}
	look := func(nodes ...domain.NodeStatus) string {
		log.Reset()
		table.Nodes = nodes
		require.NoError(t, w.Look(t.Context()))
		return log.String()
	}
	a, b := node("a", "2026a", "aa"), node("b", "2026b", "bb")
	require.Empty(t, look())
	require.Empty(t, look(a, node("c", "2025c", "aa"), domain.NodeStatus{}), "another name of the same rules; and a node that does not say")
	require.Contains(t, look(a, b), `nodes="a: 2026a (/usr/share/zoneinfo), rules aa; b: 2026b (/usr/share/zoneinfo), rules bb"`)
	require.Empty(t, look(a, b), "told already")
	require.Equal(t, 1, strings.Count(look(a, b, node("c", "2026a", "aa")), "level=WARN"))
	require.Contains(t, look(b, node("c", "", "bb")), "level=INFO")
}

// partitions is the table of a store.
type partitions domain.PartitionTable

func (p *partitions) ReadPartitions(context.Context) (domain.PartitionTable, error) {
	return domain.PartitionTable(*p), nil
}
