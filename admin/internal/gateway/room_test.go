package gateway

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// Attempts have as many slots as their handlers weigh: in what is free, in the
// load, in what their end gives back, and beside what heartbeats count.
func TestRoomCountsWeights(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}}, nil)
	s.slots = 8
	s.weigh([]*proto.Handler{{Name: "bake", Weight: 3}, {Name: "old"}, {Name: "strange", Weight: -4}, {Name: "huge", Weight: 100}})
	require.Equal(t, 3, s.Weight("bake"))
	require.Equal(t, 1, s.Weight("old"), "an SDK that tells none")
	require.Equal(t, 1, s.Weight("strange"))
	require.Equal(t, 8, s.Weight("huge"), "all that there are, as the SDK counts it")

	require.True(t, s.Reserve(1, 1, 3))
	require.True(t, s.Reserve(2, 1, 3))
	require.Equal(t, 2, s.Free())
	require.False(t, s.Reserve(3, 1, 3))
	require.True(t, s.Reserve(3, 1, 2))
	slots, _, _ := s.Load()
	require.Equal(t, 1000, slots)
	s.counted(6)
	require.Zero(t, s.Free(), "the last two slots may be on their way")
	require.Equal(t, 3, s.ended(attemptKey{1, 1}))
	require.Equal(t, 3, s.Free())
	s.counted(5)
	require.Equal(t, 3, s.Free(), "the same, counted by the instance")
	require.Zero(t, s.surplus)
	s.counted(2)
	s.counted(2)
	require.Equal(t, 6, s.Free(), "it has ended elsewhere")
	require.Equal(t, 2, s.surplus)
	require.Equal(t, 5, s.forget(attemptKey{2, 1}, attemptKey{3, 1}))
	require.Zero(t, s.taken)
	require.Equal(t, [2]int{}, s.young)
}
