package gateway

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// Attempts that ended through another node give their slots back here too,
// though the session never hears of their ends.
func TestSlotsOfAttemptsThatEndedElsewhereAreFree(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 3)
	s := get(t, b.rec.joined)
	for id := range int64(3) {
		require.True(t, s.Reserve(id, 1, 1, 0))
	}
	require.False(t, s.Reserve(9, 1, 1, 0), "it is full")
	s.mu.Lock() // 0 and 1 were offered long ago, 2 just now
	for id := range int64(2) {
		f := s.Slots.inflight[attemptKey{id, 1}]
		f.since = time.Now().Add(-reviewAfter - time.Second)
		s.Slots.inflight[attemptKey{id, 1}] = f
	}
	s.mu.Unlock()
	b.fleet.mu.Lock()
	b.fleet.held = []domain.Held{{ID: 1, Fence: 1}}
	b.fleet.mu.Unlock()

	for seq := range int64(reviewBeats) {
		require.Zero(t, s.Free(), "an instance reports less while something is on its way")
		p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: seq, Running: 1, Slots: 3}}})
		require.Equal(t, seq, p.nextControl().GetHeartbeatAck().Seq)
	}
	require.Equal(t, room{s, 2}, get(t, b.rec.freed), "by the last heartbeat")
	require.Equal(t, room{s, 1}, get(t, b.rec.freed), "by the database")
	require.False(t, s.Slots.Holds(0, 1))
	require.True(t, s.Slots.Holds(1, 1), "the database says that it runs")
	require.True(t, s.Slots.Holds(2, 1), "its offer may not be committed yet")
	require.Equal(t, 2, s.Free(), "what is older than two heartbeats is in what was reported, or over")
}

// What this node offered and what the instance counts are put together so that
// nothing is counted twice, and nothing left out.
func TestRoomIsKnownFromTwoSides(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)}).newSession(&peer{hello: &proto.ClientHello{}, seat: &seat{}}, nil)
	s.Slots.occupancy.slots = 10
	free := func(want int, why string) {
		t.Helper()
		require.Equal(t, want, s.Free(), why)
	}
	s.Slots.occupancy.Counted(4)
	free(6, "other nodes' attempts run there")
	require.True(t, s.Reserve(1, 1, 1, 0))
	require.True(t, s.Reserve(2, 1, 1, 0))
	free(4, "the two come on top of the four")
	s.Slots.occupancy.Counted(6)
	free(4, "now they are beside them")
	require.Equal(t, 1, s.Slots.ended(attemptKey{1, 1}))
	free(5, "the heartbeat had counted it")
	require.True(t, s.Reserve(3, 1, 1, 0))
	require.Equal(t, 1, s.Slots.ended(attemptKey{3, 1}))
	free(5, "no heartbeat has counted it")
	for id := range int64(4) {
		require.True(t, s.Reserve(10+id, 1, 1, 0))
	}
	s.Slots.occupancy.Counted(0)
	free(6, "the four may be on their way; the other is in what was reported, or over")
	s.Slots.occupancy.Counted(0)
	free(10, "they have ended elsewhere")
	require.True(t, s.Reserve(10, 1, 1, 0), "reserved again")
	require.Equal(t, 5, s.Slots.forget(attemptKey{2, 1}, attemptKey{10, 1}, attemptKey{11, 1}, attemptKey{12, 1}, attemptKey{13, 1}, attemptKey{14, 1}))
	free(10, "none is left")
	require.Equal(t, [2]int{}, s.Slots.occupancy.young)
}
