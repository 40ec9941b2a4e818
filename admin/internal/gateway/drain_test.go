package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What somebody drains gets nothing new, keeps what it has, and is told to nobody as
// leaving; when that is undone its room is free again.
func TestDrainedFromOutside(t *testing.T) {
	b := start(t)
	b.join(bootA, 4)
	s := get(t, b.rec.joined)
	require.True(t, s.Reserve(1, 1, 1, 0))
	require.Len(t, b.gate.Sessions(s.Tenant, s.Executor, "sync"), 1)

	b.fleet.drain(s.Instance, 4711)
	require.Same(t, s, get(t, b.rec.draining))
	require.False(t, s.Reserve(2, 1, 1, 0))
	require.Zero(t, s.Free())
	require.True(t, s.Slots.Holds(1, 1), "what it runs goes on")
	require.Positive(t, s.drainingFor(), "its row says so")
	require.Empty(t, b.gate.Sessions(s.Tenant, s.Executor, "sync"))
	require.Equal(t, 1, b.gate.Stats().Draining)

	b.fleet.drain()
	room := get(t, b.rec.freed)
	require.Same(t, s, room.of)
	require.Equal(t, 3, s.Free())
	require.True(t, s.Reserve(2, 1, 1, 0))
	require.Zero(t, s.drainingFor())
	require.Len(t, b.gate.Sessions(s.Tenant, s.Executor, "sync"), 1)

	// The same process comes again while it is drained, and never gets anything.
	b.fleet.drain(s.Instance)
	get(t, b.rec.draining)
	b.join(bootA, 4)
	again := get(t, b.rec.joined)
	require.Equal(t, s.Instance, again.Instance)
	require.Zero(t, again.Free())
	require.False(t, again.Reserve(3, 1, 1, 0))
}
