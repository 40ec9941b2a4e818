package gateway

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

func TestRestOf(t *testing.T) {
	for name, c := range map[string]struct {
		sessions int
		want     time.Duration
	}{
		"nobody":                      {0, 0},
		"few beat as all do":          {450, 0},
		"more share what is wanted":   {750, 5 * time.Second},
		"in whole slots":              {824, 5 * time.Second},
		"the lease allows no more":    {5000, LongestRest},
		"whatever the size of a node": {50_000, LongestRest},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, restOf(c.sessions, DefaultIdleBeats)) })
	}
}

// The lease that a heartbeat renewed has to be good until the next one was
// acknowledged, which takes at most the next renewals after it.
func TestARestIsShorterThanALease(t *testing.T) {
	require.Less(t, LongestRest+2*renewEvery, proto.SelfFence+quiet(LongestRest))
	require.Less(t, restingTimeout, 8*time.Second, "how soon a half-open path has to be noticed")
}

// TestNextBeat: instances keep their slots, which are used evenly.
func TestNextBeat(t *testing.T) {
	const n, every = 5000, LongestRest
	const way = time.Millisecond
	slots := map[time.Duration]int{}
	for id := domain.InstanceID(1); id <= n; id++ {
		now := 17*time.Second + time.Duration(id)*time.Millisecond // they did not come at once
		for range 3 {                                              // one that would be too soon is made up for
			wait := nextBeat(id, every, now)
			require.GreaterOrEqual(t, wait, proto.HeartbeatInterval)
			require.LessOrEqual(t, wait, every)
			now += wait + way
		}
		slots[(now-way)%every]++
		answered := now + renewEvery
		require.Equal(t, now-way+every, answered+nextBeat(id, every, answered), "one cycle later, however long the answer took")
	}
	require.Len(t, slots, int(every/restSlot))
	for slot, count := range slots {
		require.InDelta(t, n/len(slots), count, 20, "at %s", slot)
	}
}

// beats sends a heartbeat and returns its acknowledgement.
func (p *peerEnd) beats(b *proto.Heartbeat) *proto.HeartbeatAck {
	p.t.Helper()
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: b}})
	ack := p.nextControl().GetHeartbeatAck()
	require.EqualValues(p.t, b.Seq, ack.GetSeq())
	return ack
}

// TestWhoRests: instances that run nothing and understand it, when nothing is
// asked of them; their leases are longer by what they may be silent for.
func TestWhoRests(t *testing.T) {
	b := startWith(t, func(o *Options) { o.IdleBeats = 0.01 })
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	seq := int64(0)
	told := func(change func(*proto.Heartbeat)) (next, quiet, every time.Duration) {
		t.Helper()
		seq++
		beat := &proto.Heartbeat{Seq: seq, Slots: 5, Paced: true}
		change(beat)
		ack := p.beats(beat)
		require.Equal(t, ack.NextMs > 0, ack.LeaseExtraMs > 0)
		b.fleet.mu.Lock()
		quiet = b.fleet.quiet[len(b.fleet.quiet)-1]
		b.fleet.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Equal(t, max(0, s.pulse.every-proto.HeartbeatInterval).Milliseconds(), ack.LeaseExtraMs, "the executor knows of it")
		return time.Duration(ack.NextMs) * time.Millisecond, quiet, s.pulse.every
	}
	rests := func(why string) {
		t.Helper()
		next, quiet, every := told(func(*proto.Heartbeat) {})
		require.GreaterOrEqual(t, next, proto.HeartbeatInterval, why)
		require.LessOrEqual(t, next, LongestRest, why)
		require.Equal(t, LongestRest-proto.HeartbeatInterval, quiet, why)
		require.Equal(t, LongestRest, every, why)
	}
	for name, change := range map[string]func(*proto.Heartbeat){
		"an older SDK": func(h *proto.Heartbeat) { h.Paced = false },
		"it runs":      func(h *proto.Heartbeat) { h.Running = 1 },
		"it refuses":   func(h *proto.Heartbeat) { h.Refusing = true },
		"it is parked": func(h *proto.Heartbeat) { h.Parked = true },
	} {
		rests("before: " + name)
		next, quiet, every := told(change)
		require.Zero(t, next, name)
		require.Zero(t, quiet, name)
		require.Zero(t, every, name)
	}
	rests("idle again")
	require.True(t, s.Reserve(7, 1, 1, 0))
	next, quiet, _ := told(func(*proto.Heartbeat) {})
	require.Zero(t, next, "something is being offered")
	require.Zero(t, quiet)
	s.Release(7, 1)
	rests("it was taken back")
	b.fleet.broken.Store(true)
	next, _, every := told(func(*proto.Heartbeat) {})
	require.Zero(t, next, "nothing was renewed")
	require.Zero(t, every)
	b.fleet.broken.Store(false)
	rests("renewed again")
	next, _, _ = told(func(h *proto.Heartbeat) { h.Draining = true })
	require.Zero(t, next, "it drains")
}

// TestASmallFleetBeatsAsBefore with the limit that counts unless told otherwise.
func TestASmallFleetBeatsAsBefore(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 5)
	require.Zero(t, p.beats(&proto.Heartbeat{Seq: 1, Slots: 5, Paced: true}).NextMs)
}

// TestASocketIsTheConnectionItself, also with TLS: its end waits for no write,
// and the kernel can be told of it.
func TestASocketIsTheConnectionItself(t *testing.T) {
	b := startSecure(t, false)
	conn, answer := b.dialTLS(hello(goodToken, bootA), 0)
	require.Nil(t, answer.Error)
	b.joinOver(conn, answer, &proto.Register{InstanceName: "i", Slots: 1})
	require.IsType(t, &net.TCPConn{}, get(t, b.rec.joined).socket)
}
