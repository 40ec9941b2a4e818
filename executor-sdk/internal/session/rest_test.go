package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// TestWhenTheNextHeartbeatIsDue: the node's leave counts for the heartbeat that
// it answers, and until something is offered.
func TestWhenTheNextHeartbeatIsDue(t *testing.T) {
	const pace, rest = 3 * time.Second, time.Hour
	sent := time.Now()
	link := func() *Link {
		l := &Link{events: newRecorder(), interval: pace, retime: make(chan struct{}, 1), sent: map[int64]time.Time{}}
		l.seq, l.beatAt = 7, sent
		return l
	}
	ack := func(seq int64) *proto.HeartbeatAck {
		return &proto.HeartbeatAck{Seq: seq, LeaseRenewed: true, NextMs: rest.Milliseconds()}
	}
	for name, c := range map[string]struct {
		happens func(*Link)
		rests   bool
	}{
		"nothing is known yet":         {func(*Link) {}, false},
		"an older node":                {func(l *Link) { l.acknowledged(&proto.HeartbeatAck{Seq: 7, LeaseRenewed: true}) }, false},
		"it may rest":                  {func(l *Link) { l.acknowledged(ack(7)) }, true},
		"an answer that was overtaken": {func(l *Link) { l.acknowledged(ack(6)) }, false},
		"something is offered":         {func(l *Link) { l.acknowledged(ack(7)); l.stir() }, false},
		"while the answer comes":       {func(l *Link) { l.stir(); l.acknowledged(ack(7)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := link()
			c.happens(l)
			if c.rests {
				require.GreaterOrEqual(t, l.nextBeat().Sub(sent), rest)
			} else {
				require.Equal(t, sent.Add(pace), l.nextBeat())
			}
		})
	}
}

// TestALongerLease counts as one that was renewed later, for offers as well.
func TestALongerLease(t *testing.T) {
	const extra = 17 * time.Second
	sent := time.Now()
	l := &Link{events: newRecorder(), sent: map[int64]time.Time{7: sent, 8: sent}, beats: []beatAt{{0, sent, sent}, {7, sent, sent}, {8, sent, sent}}, seq: 8}
	l.acknowledged(&proto.HeartbeatAck{Seq: 7, LeaseRenewed: true, LeaseExtraMs: extra.Milliseconds()})
	l.acknowledged(&proto.HeartbeatAck{Seq: 8, LeaseExtraMs: extra.Milliseconds()})
	from, at := l.LeaseFrom(7)
	require.Equal(t, sent.Add(extra), from)
	require.Equal(t, sent, at)
	from, _ = l.LeaseFrom(8)
	require.Equal(t, sent, from, "it was not renewed")
}

// TestARestEndsWithAnOffer, on all sessions: each tells its node what it holds,
// and beats as usual from then on.
func TestARestEndsWithAnOffer(t *testing.T) {
	const beat = 20 * time.Millisecond
	one := startAdmin(t, &fakeadmin.Admin{Node: "n1", Heartbeat: beat, Rest: time.Hour})
	two := startAdmin(t, &fakeadmin.Admin{Node: "n2", Heartbeat: beat, Rest: time.Hour})
	f := startFleet(t, to(one.Address(), two.Address()))
	for _, l := range f.events.waitUp(t, 2) {
		require.Eventually(t, func() bool { return time.Until(l.nextBeat()) > time.Minute }, patience, time.Millisecond)
	}
	before := []int{len(one.Seen().Heartbeats), len(two.Seen().Heartbeats)}
	require.True(t, one.Seen().Heartbeats[0].GetPaced())

	f.events.busy.Store(true)
	require.NoError(t, one.Sessions()[0].Offer(&proto.Offer{ExecutionId: 1, Fence: 1, Handler: "h"}))
	for i, a := range []*fakeadmin.Admin{one, two} {
		seen := saw(t, a, func(s fakeadmin.Seen) bool { return len(s.Heartbeats) > before[i]+3 })
		require.EqualValues(t, 1, seen.Heartbeats[before[i]].GetRunning(), "the first one knows of it")
	}
	f.events.busy.Store(false)
	for _, l := range f.events.waitUp(t, 2) {
		require.Eventually(t, func() bool { return time.Until(l.nextBeat()) > time.Minute }, patience, time.Millisecond)
	}
}
