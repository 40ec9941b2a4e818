package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockAgreed(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	node := func(age, skew time.Duration) NodeStatus {
		return NodeStatus{RenewedAt: now.Add(-age), ClockSkew: skew}
	}
	const jump = 300 * time.Second
	for name, c := range map[string]struct {
		nodes []NodeStatus
		want  bool
	}{
		"nobody has voted":                       {nil, false},
		"one agrees":                             {[]NodeStatus{node(time.Second, -4*time.Second)}, true},
		"one does not":                           {[]NodeStatus{node(time.Second, -jump)}, false},
		"half is not most":                       {[]NodeStatus{node(0, 0), node(0, -jump)}, false},
		"two of three":                           {[]NodeStatus{node(0, 0), node(0, -jump), node(0, 5*time.Second)}, true},
		"a vote from before the leap is none":    {[]NodeStatus{node(jump, 0), node(0, -jump)}, false},
		"nor is one from after a leap backwards": {[]NodeStatus{node(-jump, 0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			table := PartitionTable{Now: now, Nodes: c.nodes}
			require.Equal(t, c.want, table.ClockAgreed(2*time.Second, 5*time.Second))
		})
	}
}
