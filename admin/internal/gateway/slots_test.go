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
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}, seat: &seat{}}, nil)
	s.Slots.occupancy.slots = 8
	s.Slots.weigh([]*proto.Handler{{Name: "bake", Weight: 3}, {Name: "old"}, {Name: "strange", Weight: -4}, {Name: "huge", Weight: 100}})
	require.Equal(t, 3, s.Slots.Weight("bake"))
	require.Equal(t, 1, s.Slots.Weight("old"), "an SDK that tells none")
	require.Equal(t, 1, s.Slots.Weight("strange"))
	require.Equal(t, 8, s.Slots.Weight("huge"), "all that there are, as the SDK counts it")

	require.True(t, s.Reserve(1, 1, 3, 0))
	require.True(t, s.Reserve(2, 1, 3, 0))
	require.Equal(t, 2, s.Free())
	require.False(t, s.Reserve(3, 1, 3, 0))
	require.True(t, s.Reserve(3, 1, 2, 0))
	slots, _, _ := s.Load()
	require.Equal(t, 1000, slots)
	s.Slots.occupancy.Counted(6)
	require.Zero(t, s.Free(), "the last two slots may be on their way")
	require.Equal(t, 3, s.Slots.ended(attemptKey{1, 1}))
	require.Equal(t, 3, s.Free())
	s.Slots.occupancy.Counted(5)
	require.Equal(t, 3, s.Free(), "the same, counted by the instance")
	require.Zero(t, s.Slots.occupancy.surplus)
	s.Slots.occupancy.Counted(2)
	s.Slots.occupancy.Counted(2)
	require.Equal(t, 6, s.Free(), "it has ended elsewhere")
	require.Equal(t, 2, s.Slots.occupancy.surplus)
	require.Equal(t, 5, s.Slots.forget(attemptKey{2, 1}, attemptKey{3, 1}))
	require.Zero(t, s.Slots.occupancy.taken)
	require.Equal(t, [2]int{}, s.Slots.occupancy.young)
}

// What other nodes have offered is in what the instance reports, and what this one
// has offered since comes on top of it.
func TestRoomCountsOtherNodes(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}, seat: &seat{}}, nil)
	s.Slots.occupancy.slots = 16
	for id := range int64(4) {
		require.True(t, s.Reserve(id, 1, 1, 0))
	}
	s.Slots.occupancy.Counted(14) // ten are another node's
	require.Equal(t, 2, s.Free())
	require.True(t, s.Reserve(10, 1, 1, 0))
	require.Equal(t, 1, s.Free())
	require.True(t, s.Reserve(11, 1, 1, 0))
	require.Zero(t, s.Free())
	require.False(t, s.Reserve(12, 1, 1, 0))
	require.Equal(t, 1, s.Slots.ended(attemptKey{0, 1}))
	require.Equal(t, 1, s.Free())
	require.Equal(t, 1, s.Slots.ended(attemptKey{10, 1}))
	require.Equal(t, 2, s.Free(), "the heartbeat has not counted it")
}

// What a full instance has refused is not offered again before it has room: one of
// its attempts has ended here, or it tells of room.
func TestAFullInstanceIsBelieved(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}, seat: &seat{}}, nil)
	s.Slots.occupancy.slots = 4
	for id := range int64(3) {
		require.True(t, s.Reserve(id, 1, 1, 0))
	}
	require.Equal(t, 1, s.Free(), "another node has taken it")
	require.True(t, s.Reserve(3, 1, 1, 0))
	s.Slots.full(attemptKey{3, 1})
	require.Zero(t, s.Free())
	require.Equal(t, 1, s.Slots.ended(attemptKey{0, 1}))
	require.Equal(t, 1, s.Free(), "its own are in what it counted")
	require.False(t, s.Reserve(4, 1, 2, 0))
	require.True(t, s.Reserve(4, 1, 1, 0))
	s.Slots.occupancy.Counted(2)
	require.Equal(t, 1, s.Free(), "what was offered last is on its way")
	s.Slots.weigh([]*proto.Handler{{Name: "bake", Weight: 3}})
	s.Slots.occupancy.Counted(1)
	s.Slots.occupancy.Counted(1)
	require.True(t, s.Reserve(5, 1, 3, 0))
	s.Slots.full(attemptKey{5, 1})
	require.Equal(t, 2, s.Free(), "there is no room for three, but there may be for two")
}

// An instance gets no more than its line takes: what is on its way counts until
// it was written, or is given back.
func TestRoomCountsBytes(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}, seat: &seat{}}, nil)
	s.Slots.occupancy.slots = 10
	const half = maxLoading / 2
	require.True(t, s.Reserve(1, 1, 1, 3*maxLoading), "one goes in any case")
	require.Equal(t, 9, s.Free())
	require.False(t, s.Reserve(2, 1, 1, 1))
	require.True(t, s.Slots.SendQueueFull())
	require.Zero(t, s.Free())
	s.Slots.Release(1, 1)
	require.False(t, s.Slots.SendQueueFull())
	require.Equal(t, 10, s.Free())

	for id := range int64(2) {
		require.True(t, s.Reserve(id, 1, 1, half))
	}
	require.False(t, s.Slots.SendQueueFull(), "it is full, and nobody has asked for more")
	require.False(t, s.Reserve(2, 1, 1, 1))
	offer := func(id int64, input int) bulk {
		return bulk{offer: &proto.Offer{ExecutionId: id, Fence: 1, Input: make([]byte, input)}}
	}
	require.False(t, s.Slots.loaded([]bulk{offer(7, half), {step: &proto.StepAck{}}}), "not one of these")
	require.True(t, s.Slots.loaded([]bulk{offer(0, half)}))
	require.False(t, s.Slots.loaded([]bulk{offer(0, half)}), "once")
	require.Equal(t, 8, s.Free())
	require.Equal(t, half, s.Slots.loading)
	s.Slots.ended(attemptKey{0, 1}, attemptKey{1, 1})
	require.Zero(t, s.Slots.loading)
	require.Zero(t, s.Slots.occupancy.taken)
}
