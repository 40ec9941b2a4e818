package gateway

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

func TestIdle(t *testing.T) {
	began := time.Unix(1_800_000_000, 0)
	// run judges whenever the policy asks for it until end; hears are the
	// instants of bytes, offers those of offers.
	type seen struct{ asked, doubted, dead time.Duration }
	rest := time.Duration(0)
	run := func(end time.Duration, hears, offers []time.Duration) (s seen) {
		p := &idle{heard: began, interval: rest}
		next := time.Duration(0)
		for at := time.Duration(0); at < end && s.dead == 0; at += 10 * time.Millisecond {
			now := began.Add(at)
			for _, h := range hears {
				if h == at {
					p.hear(now)
				}
			}
			for _, o := range offers {
				if o == at && p.offered(now, 1) {
					next = min(next, at+answerAfter)
				}
			}
			if at < next {
				continue
			}
			p.beatAt = now // see TestHeartbeatsHaveToCome
			v := p.judge(now)
			if v.ping && s.asked == 0 {
				s.asked = at
			}
			if v.doubted && s.doubted == 0 {
				s.doubted = at
			}
			if v.dead != nil {
				s.dead = at
			}
			next = at + v.again
		}
		return s
	}
	const ms = time.Millisecond
	every := func(pace, end time.Duration) (out []time.Duration) {
		for at := pace; at < end; at += pace {
			out = append(out, at)
		}
		return out
	}
	t.Run("heartbeats on time need no ping", func(t *testing.T) {
		require.Equal(t, seen{}, run(time.Minute, every(3*time.Second, time.Minute), nil))
	})
	t.Run("silence alone", func(t *testing.T) {
		require.Equal(t, seen{asked: quietAfter, doubted: quietAfter + doubtAfter, dead: deadAfter}, run(time.Minute, nil, nil))
	})
	t.Run("an offer without an answer", func(t *testing.T) {
		require.Equal(t, seen{asked: 400 * ms, doubted: 400*ms + doubtAfter, dead: deadAfter}, run(time.Minute, nil, []time.Duration{100 * ms}))
	})
	t.Run("an answer that takes long after a ping was heard", func(t *testing.T) {
		s := run(3*time.Second, []time.Duration{410 * ms, 900 * ms, 1300 * ms, 1800 * ms, 2600 * ms}, []time.Duration{100 * ms})
		require.Equal(t, seen{asked: 400 * ms}, s)
	})
	t.Run("an instance that rests", func(t *testing.T) {
		rest = 10 * time.Second
		defer func() { rest = 0 }()
		require.Equal(t, seen{}, run(time.Minute, every(rest, time.Minute), nil))
		late := rest + intervalSlack
		require.Equal(t, seen{asked: late, doubted: late + doubtAfter, dead: late + pingTimeout}, run(time.Minute, nil, nil), "silence alone")
		offered := 9 * time.Second // what came before has nothing to do with it
		asked := offered + answerAfter
		require.Equal(t, seen{asked: asked, doubted: asked + doubtAfter, dead: asked + pingTimeout}, run(time.Minute, nil, []time.Duration{offered}))
		require.Equal(t, seen{asked: asked}, run(offered+time.Second, []time.Duration{asked + 50*ms}, []time.Duration{offered}), "the ping is answered, the offer not yet")
	})
	t.Run("a byte that was under way when the path broke", func(t *testing.T) {
		s := run(time.Minute, []time.Duration{110 * ms}, []time.Duration{100 * ms})
		require.Equal(t, seen{asked: 410 * ms, doubted: 410*ms + doubtAfter, dead: 110*ms + deadAfter}, s)
	})
}

func TestIdleForgetsWhatWasAnswered(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &idle{heard: now, beatAt: now}
	require.True(t, p.offered(now, 2))
	require.False(t, p.offered(now, 1))
	p.answered(now, 2)
	require.Equal(t, answerAfter, p.judge(now).again, "one is open")
	p.answered(now, 5)
	require.Equal(t, quietAfter, p.judge(now).again)
	require.True(t, p.offered(now, 1))
	p.ponged()
	require.Equal(t, quietAfter, p.judge(now).again, "it is there; the answer comes when it comes")
}

// Bytes alone are not enough: a peer that answers pings and sends no heartbeats is
// of no use.
func TestHeartbeatsHaveToCome(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &idle{beatAt: now}
	for name, c := range map[string]struct{ interval, until time.Duration }{
		"the ordinary interval": {0, proto.HeartbeatTimeout},
		"a longer interval":     {10 * time.Second, proto.HeartbeatTimeout + 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p.interval, p.heard = c.interval, now.Add(c.until)
			require.NoError(t, p.judge(now.Add(c.until)).dead)
			p.heard = now.Add(c.until + 1)
			require.ErrorContains(t, p.judge(now.Add(c.until+1)).dead, "no heartbeat for")
		})
	}
}

func TestIdleInterval(t *testing.T) {
	for name, c := range map[string]struct {
		sessions int
		want     time.Duration
	}{
		"nobody":                      {0, 0},
		"few beat as all do":          {450, 0},
		"more share what is wanted":   {750, 5 * time.Second},
		"in whole slots":              {824, 5 * time.Second},
		"the lease allows no more":    {5000, MaxIdleInterval},
		"whatever the size of a node": {50_000, MaxIdleInterval},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, idleInterval(c.sessions, DefaultIdleBeats)) })
	}
}

// The lease that a heartbeat renewed has to be good until the next one was
// acknowledged, which takes at most the next renewals after it.
func TestAnIdleIntervalIsShorterThanALease(t *testing.T) {
	require.Less(t, MaxIdleInterval+2*renewEvery, proto.SelfFence+leaseExtra(MaxIdleInterval))
	require.Less(t, idlePathTimeout, 8*time.Second, "how soon a half-open path has to be noticed")
}

// TestNextHeartbeat: instances keep their slots, which are used evenly.
func TestNextHeartbeat(t *testing.T) {
	const n, every = 5000, MaxIdleInterval
	const way = time.Millisecond
	slots := map[time.Duration]int{}
	for id := domain.InstanceID(1); id <= n; id++ {
		now := 17*time.Second + time.Duration(id)*time.Millisecond // they did not come at once
		for range 3 {                                              // one that would be too soon is made up for
			wait := nextHeartbeat(id, every, now)
			require.GreaterOrEqual(t, wait, proto.HeartbeatInterval)
			require.LessOrEqual(t, wait, every)
			now += wait + way
		}
		slots[(now-way)%every]++
		answered := now + renewEvery
		require.Equal(t, now-way+every, answered+nextHeartbeat(id, every, answered), "one cycle later, however long the answer took")
	}
	require.Len(t, slots, int(every/idleSlot))
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

// TestWhoMayBeIdle: instances that run nothing and understand it, when nothing is
// asked of them; their leases are longer by what they may be silent for.
func TestWhoMayBeIdle(t *testing.T) {
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
		require.Equal(t, max(0, s.idle.interval-proto.HeartbeatInterval).Milliseconds(), ack.LeaseExtraMs, "the executor knows of it")
		return time.Duration(ack.NextMs) * time.Millisecond, quiet, s.idle.interval
	}
	rests := func(why string) {
		t.Helper()
		next, quiet, every := told(func(*proto.Heartbeat) {})
		require.GreaterOrEqual(t, next, proto.HeartbeatInterval, why)
		require.LessOrEqual(t, next, MaxIdleInterval, why)
		require.Equal(t, MaxIdleInterval-proto.HeartbeatInterval, quiet, why)
		require.Equal(t, MaxIdleInterval, every, why)
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
	s.Slots.Release(7, 1)
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
