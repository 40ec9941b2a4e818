package gateway

import (
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
		require.True(t, s.Reserve(id, 1))
	}
	require.False(t, s.Reserve(9, 1), "it is full")
	s.mu.Lock() // 0 and 1 were offered long ago, 2 just now
	for id := range int64(2) {
		s.inflight[attemptKey{id, 1}] = flight{since: time.Now().Add(-reviewAfter - time.Second)}
	}
	s.mu.Unlock()
	b.fleet.mu.Lock()
	b.fleet.held = []domain.Held{{ID: 1, Fence: 1}}
	b.fleet.mu.Unlock()

	for seq := range int64(reviewBeats) {
		require.Zero(t, s.Free(), "an instance may report less while something is on its way")
		p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: seq, Running: 1, Slots: 3}}})
		require.Equal(t, seq, p.nextControl().GetHeartbeatAck().Seq)
	}
	require.Equal(t, room{s, 1}, get(t, b.rec.freed), "whoever waits for room hears of it")
	require.False(t, s.Holds(0, 1))
	require.True(t, s.Holds(1, 1), "the database says that it runs")
	require.True(t, s.Holds(2, 1), "its offer may not be committed yet")
	require.Equal(t, 1, s.Free())
}
