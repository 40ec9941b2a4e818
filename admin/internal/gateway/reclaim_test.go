package gateway

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func (r *recorder) moved() map[int64]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.unheard)
}

// TestWhatNobodyHeardOfGoesElsewhere: of an instance that does not answer, once its
// offers are too old to start, and never what it has answered; of a session that
// has ended, likewise.
func TestWhatNobodyHeardOfGoesElsewhere(t *testing.T) {
	b := start(t)
	conn, answer := b.dial(hello(goodToken, bootA))
	require.Nil(t, answer.Error)
	deaf := &deafConn{Conn: conn}
	p := b.joinOver(deaf, answer, &proto.Register{InstanceName: "i", Slots: 9, RefusesOld: true, Handlers: []*proto.Handler{{Name: "h", Idempotent: true}}})
	s := <-b.rec.joined
	offer := func(id int64, granted bool) {
		require.True(t, s.Reserve(id, 1, 1, 0))
		s.SendOffers([]*proto.Offer{{ExecutionId: id, Fence: 1, Handler: "h", Granted: granted}})
	}
	offer(1, true)
	o := p.nextCommand().GetOffers().GetOffers()[0]
	require.Zero(t, o.LeaseSeq)
	require.GreaterOrEqual(t, o.GoodMs, proto.OfferGood.Milliseconds(), "it counts from the registration")
	p.send(p.command, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{Answers: []*proto.Answer{{ExecutionId: 1, Fence: 1, Accepted: true}}}}})
	<-b.rec.answers
	deaf.deaf.Lock()
	sent := time.Now()
	offer(2, true)
	offer(3, false)
	require.Equal(t, s, <-b.rec.doubted)
	require.Eventually(t, func() bool { return len(b.rec.moved()) > 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, map[int64]int64{2: 1}, b.rec.moved())
	require.Greater(t, time.Since(sent), proto.OfferGood, "not before it is too old")
	offer(4, true)
	s.close(errInstanceGone)
	require.Eventually(t, func() bool { return len(b.rec.moved()) > 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, map[int64]int64{2: 1, 4: 1}, b.rec.moved())
	deaf.deaf.Unlock()
}

// TestBoundsOfOffers: none for SDKs that do not know it, none for a minute after
// an offer came too late, and none is given by what only asks.
func TestBoundsOfOffers(t *testing.T) {
	now := time.Now()
	s := &Session{}
	s.Slots = Slots{mu: &s.mu, began: now.Add(-time.Hour), leasedAt: time.Hour - 2*time.Second, refusesOld: true, inflight: map[attemptKey]reservation{}}
	bound := func(since time.Time, o *proto.Offer) (int64, time.Duration) {
		f := reservation{leaseAt: s.Slots.leasedAt, since: since}
		s.Slots.bound(o, &f, now)
		s.Slots.inflight[attemptKey{1, 1}] = f
		return o.GoodMs, f.startable
	}
	one := func() *proto.Offer { return &proto.Offer{Granted: true} }
	good, startable := bound(now, one())
	require.Equal(t, (2*time.Second + proto.OfferGood).Milliseconds(), good, "from the heartbeat that it names")
	require.Equal(t, time.Hour+proto.OfferGood+startMargin, startable)
	good, startable = bound(now.Add(-proto.OfferTTL+time.Millisecond), one())
	require.EqualValues(t, 2001, good, "its commit took long")
	require.Equal(t, time.Hour+time.Millisecond+startMargin, startable)
	good, startable = bound(now, &proto.Offer{})
	require.Zero(t, good)
	require.Zero(t, startable, "in two steps")
	good, startable = bound(now, &proto.Offer{Granted: true, GoodMs: -1})
	require.EqualValues(t, -1, good)
	require.Zero(t, startable)

	s.Slots.cameLate(attemptKey{1, 1}, now)
	good, _ = bound(now, one())
	require.Positive(t, good, "that was taken away before")
	s.Slots.cameLate(attemptKey{1, 1}, now)
	good, startable = bound(now, one())
	require.Zero(t, good)
	require.Zero(t, startable)
	now = now.Add(slowFor)
	good, _ = bound(now, one())
	require.Positive(t, good)

	s.Slots.refusesOld = false
	good, startable = bound(now, &proto.Offer{Granted: true, GoodMs: -1})
	require.Zero(t, good, "it would start it")
	require.Zero(t, startable)
}

// TestAPauseOfTheNodeIsNoDoubt: what was heard meanwhile is read first.
func TestAPauseOfTheNodeIsNoDoubt(t *testing.T) {
	rec := &recorder{}
	w := &watcher{sink: rec}
	began := time.Now()
	s := &Session{began: began}
	s.Slots = Slots{mu: &s.mu, began: began, inflight: map[attemptKey]reservation{{1, 1}: {granted: true, startable: time.Second}}}
	at := began.Add(time.Minute)
	for range 3 { // each look comes after a pause
		at = at.Add(time.Second)
		require.Equal(t, doubtLook, w.reclaimDoubted(s, at))
		require.Empty(t, rec.moved())
	}
	w.reclaimDoubted(s, at.Add(doubtLook))
	require.Equal(t, map[int64]int64{1: 1}, rec.moved())
}
