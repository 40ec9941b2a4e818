package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func leaving() *proto.ControlToAdmin {
	return &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Leave{Leave: &proto.Leave{}}}
}

// TestACleanStopLeavesTheListAtOnce, and not when the lease has run out.
func TestACleanStopLeavesTheListAtOnce(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	_ = proto.WriteFrame(p.control, leaving(), proto.MaxFrame) // may see the session end while it writes
	require.Equal(t, s.Instance, get(t, b.fleet.left))
	require.Same(t, s, get(t, b.rec.left), "the admin ends the session when it is done")
	require.ErrorIs(t, s.err(), errLeft)
}

func TestAStopWithoutTheDatabaseEndsTheSessionAllTheSame(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	b.fleet.broken.Store(true)
	_ = proto.WriteFrame(p.control, leaving(), proto.MaxFrame) // may see the session end while it writes
	require.Same(t, s, get(t, b.rec.left))
	require.Empty(t, b.fleet.left)
}

// TestAnOldSessionIsReplaced when its last offer has been answered; until then
// it takes answers and gets no offers.
func TestAnOldSessionIsReplaced(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	require.NotNil(t, p.nextCommand().GetOffers())

	now := s.retires
	require.Positive(t, b.gate.watcher.retire(s, now.Add(-time.Hour)))
	require.False(t, s.isDraining())
	require.Equal(t, retireEvery, b.gate.watcher.retire(s, now))
	require.Empty(t, b.gate.Sessions(1, 2, "close-day"))
	require.False(t, s.Reserve(8, 1, 1, 0))
	require.Equal(t, retireEvery, b.gate.watcher.retire(s, now.Add(retireEvery)), "an offer is open")
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{
		Answers: []*proto.Answer{{ExecutionId: 7, Fence: 1, Accepted: true}},
	}}})
	get(t, b.rec.answers)
	require.Equal(t, retireEvery, b.gate.watcher.retire(s, now.Add(retireEvery)), "its grant is on the way")
	s.SendGrants([]*proto.Grant{{ExecutionId: 7, Fence: 1, Granted: true}})
	require.True(t, p.nextCommand().GetGrants().GetGrants()[0].Granted)
	require.Eventually(t, s.command.empty, 10*time.Second, time.Millisecond) // its writer may not have come back
	require.Equal(t, retirement, b.gate.watcher.retire(s, now.Add(2*retireEvery)))
	require.Equal(t, codeRecycled, p.nextControl().GetError().GetCode())
	require.Same(t, s, get(t, b.rec.left))
	var end *closeError
	require.ErrorAs(t, s.err(), &end)

	again := b.join(bootA, 5)
	require.Equal(t, p.registered.InstanceId, again.registered.InstanceId)
}

// TestAnOldSessionDoesNotWaitForEver for an answer that does not come.
func TestAnOldSessionDoesNotWaitForEver(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	b.gate.watcher.retire(s, s.retires)
	b.gate.watcher.retire(s, s.retires.Add(retirement))
	require.Equal(t, codeRecycled, p.nextControl().GetError().GetCode())
	require.Same(t, s, get(t, b.rec.left))
}

// TestANodeThatStopsWaitsForWhatIsUnderWay: an answer to its offer, the
// acknowledgement of a result; and no longer than it was told.
func TestANodeThatStopsWaitsForWhatIsUnderWay(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	b.gate.Settle(t.Context()) // nothing is under way
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	b.gate.Settle(short)
	require.Error(t, short.Err(), "the answer is missing")

	settled := make(chan struct{})
	go func() { b.gate.Settle(t.Context()); close(settled) }()
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: []*proto.Result{{ExecutionId: 6, Fence: 1}}}}})
	get(t, b.rec.results)
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{Answers: []*proto.Answer{{ExecutionId: 7, Fence: 1, Accepted: true}}}}})
	get(t, b.rec.answers)
	s.SendGrants([]*proto.Grant{{ExecutionId: 7, Fence: 1, Granted: true}})
	require.False(t, s.quiescent(), "the result is not acknowledged")
	s.SendAcks([]*proto.ResultAck{{ExecutionId: 6, Fence: 1}})
	get(t, settled)
}

func TestSessionsDoNotGrowOldTogether(t *testing.T) {
	g := New(Options{Logger: slog.New(slog.DiscardHandler), RecycleAfter: 10 * time.Hour})
	seen := map[time.Duration]bool{}
	for range 200 {
		d := g.lifetime(&peer{})
		require.LessOrEqual(t, d, 10*time.Hour)
		require.GreaterOrEqual(t, d, 8*time.Hour)
		seen[d.Truncate(time.Minute)] = true
	}
	require.Greater(t, len(seen), 50)
	d := g.lifetime(&peer{serial: "1", until: time.Now().Add(time.Hour)})
	require.Less(t, d, time.Hour, "never longer than the certificate")
	require.Zero(t, g.lifetime(&peer{serial: "1", until: time.Now()}))
}

// TestWhoReportsFasterThanIsStoredWaits: its results stay with it, not in the
// node's memory.
func TestWhoReportsFasterThanIsStoredWaits(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	result := func(id int64) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{
			Results: []*proto.Result{{ExecutionId: id, Fence: 1, Output: bytes.Repeat([]byte("1"), proto.MaxOutput)}},
		}}}
	}
	const fit = maxOutstanding / (proto.MaxOutput + 200)
	sent := make(chan error, 1)
	go func() {
		for id := range int64(fit + 1) {
			if err := proto.WriteFrame(p.command, result(id), proto.MaxFrame); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for range fit {
		get(t, b.rec.results)
	}
	require.NoError(t, <-sent, "the last one fits into the window")
	// Heartbeats go on meanwhile.
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, p.nextControl().GetHeartbeatAck().GetSeq())
	require.Empty(t, b.rec.results)
	s.SendAcks([]*proto.ResultAck{{ExecutionId: 0, Fence: 1}})
	require.EqualValues(t, fit, get(t, b.rec.results).ExecutionId)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, fit, s.results.count)
}

func TestDebtIsPaidOff(t *testing.T) {
	s := &Session{results: newOutstanding(), account: newAccount()}
	results := []*proto.Result{{Output: make([]byte, 800)}, {Output: make([]byte, 1800)}}
	require.True(t, s.addOutstanding(&s.results, len(results), sizeOfResults(results)))
	require.Equal(t, 2, s.results.count)
	require.EqualValues(t, 3000, s.results.bytes)
	s.endOutstanding(&s.results, 1)
	require.EqualValues(t, 1500, s.results.bytes)
	s.endOutstanding(&s.results, 5)
	require.Zero(t, s.results.count)
	require.Zero(t, s.results.bytes)
	require.True(t, s.results.room.TryAcquire(maxOutstanding))
	require.True(t, s.account.outstanding.TryAcquire(maxTenantOutstanding))
}
