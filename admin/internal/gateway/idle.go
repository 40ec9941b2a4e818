package gateway

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// A path can break without a word: nothing comes any more, and what is sent is
// taken by nobody. How soon that matters depends on what is waited for
// (docs/adr/0018).
const (
	// answerAfter is how long the answer to an offer may take while nothing at
	// all is heard, before the peer is pinged: a journal may be slow, a ping
	// needs no disk.
	answerAfter = 300 * time.Millisecond
	// quietAfter is the same without an open offer: a heartbeat is overdue.
	quietAfter = proto.HeartbeatInterval + 250*time.Millisecond
	// doubtAfter is how long a ping may take before the session gets no more
	// offers while others can have them. It is no verdict: the first byte that
	// is heard ends it.
	doubtAfter = time.Second
	// deadAfter is the silence after which a session is closed: two heartbeats
	// and the ping after them are missing. Leases are not concerned.
	deadAfter = 7500 * time.Millisecond
	// pingTimeout is how long a ping has for its answer at least before that.
	pingTimeout = deadAfter - quietAfter
)

// idle judges a session by its silence. It reads no clock: now is given. It is
// guarded by Session.mu.
type idle struct {
	heard  time.Time // the last byte
	beatAt time.Time // the last heartbeat
	// interval is between the heartbeats of an instance that runs nothing; 0 = the
	// ordinary one.
	interval time.Duration
	pinged   time.Time // the ping that nothing has been heard since; zero = none is out
	// unanswered is how many offers wait for their answer, offeredAt is when the
	// oldest of them can have been sent.
	unanswered int
	offeredAt  time.Time
}

// idleVerdict is what follows from a session's silence.
type idleVerdict struct {
	dead error // why the session has to end; nil: it may go on
	ping bool  // it has to be pinged now
	// doubted: it does not answer, and gets no offers meanwhile.
	doubted bool
	again   time.Duration // until it has to be judged again
}

// hear is the event that something came at that instant.
func (i *idle) hear(at time.Time) {
	if at.After(i.heard) {
		i.heard, i.pinged = at, time.Time{}
	}
}

// offered and answered count offers and their answers; what is answered twice
// counts once too often, and a ping less.
func (i *idle) offered(now time.Time, n int) (first bool) {
	first = i.unanswered == 0
	if first {
		i.offeredAt = now
	}
	i.unanswered += n
	return first
}

func (i *idle) answered(now time.Time, n int) {
	i.unanswered, i.offeredAt = max(0, i.unanswered-n), now
}

// ponged is the event that a ping was answered: who takes long over an offer
// is there all the same.
func (i *idle) ponged() { i.unanswered = 0 }

func (i *idle) judge(now time.Time) (v idleVerdict) {
	if silence := now.Sub(i.beatAt); silence > proto.HeartbeatTimeout+i.interval {
		v.dead = fmt.Errorf("no heartbeat for %s", silence.Round(time.Second))
		return v
	}
	if !i.pinged.IsZero() && !now.Before(i.deadAt()) {
		v.dead = fmt.Errorf("nothing was heard for %s", now.Sub(i.heard).Round(100*time.Millisecond))
		return v
	}
	next := i.pingAt()
	if i.pinged.IsZero() && !now.Before(next) {
		i.pinged, v.ping = now, true
	}
	if !i.pinged.IsZero() {
		if next = i.pinged.Add(doubtAfter); !now.Before(next) {
			v.doubted, next = true, i.deadAt()
		}
	}
	v.again = next.Sub(now)
	return v
}

// pingAt is when the peer has to be pinged unless something is heard.
func (i *idle) pingAt() time.Time {
	at := i.heard.Add(quietAfter)
	if i.interval > 0 {
		at = i.heard.Add(i.interval + intervalSlack)
	}
	if i.unanswered > 0 {
		if due := later(i.offeredAt, i.heard).Add(answerAfter); due.Before(at) {
			return due
		}
	}
	return at
}

// deadAt is when a path is dead that was pinged, unless something is heard.
func (i *idle) deadAt() time.Time { return later(i.heard.Add(deadAfter), i.pinged.Add(pingTimeout)) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// An instance that runs nothing has nothing to say but that it is there, and a
// node may have thousands of them. The acknowledgement of its heartbeat tells it
// when the next one is wanted; it is back at the ordinary pace when it is offered
// something (docs/adr/0032). Until then the kernel watches the path.
const (
	// DefaultIdleBeats is how many heartbeats in a second a node wants of
	// instances that run nothing.
	DefaultIdleBeats = 150
	// MaxIdleInterval bounds the time from one heartbeat to the next. The lease is
	// longer by as much as that is longer than usual, and so is the time until
	// what an instance began right after such a heartbeat is given up.
	MaxIdleInterval = 30 * time.Second
	// idleSlot is the grain of the moments at which instances are asked to
	// beat: those of one slot wake a sleeping node once. They are written down
	// as often (renewEvery).
	idleSlot = 500 * time.Millisecond
	// intervalSlack is how much later than told a heartbeat may come: its
	// acknowledgement may have waited for the database.
	intervalSlack = 2 * time.Second
)

// idleInterval is the time from heartbeat to heartbeat of each of n instances that
// run nothing; 0 when the ordinary one will do.
func idleInterval(n int, perSecond float64) time.Duration {
	every := time.Duration(float64(n) / perSecond * float64(time.Second)).Truncate(idleSlot)
	if every <= proto.HeartbeatInterval {
		return 0
	}
	return min(every, MaxIdleInterval)
}

// nextHeartbeat is how long the instance may wait from now, which counts from any
// fixed instant. Each instance has its slot in the cycle, so that the heartbeats
// of many that came at once are spread evenly over it.
func nextHeartbeat(id domain.InstanceID, every, now time.Duration) time.Duration {
	slot := time.Duration(uint64(id)*0x9E3779B97F4A7C15>>32%uint64(every/idleSlot)) * idleSlot
	wait := (slot - now%every + every) % every
	return max(wait, proto.HeartbeatInterval)
}

// leaseExtra is how much longer than others an instance has its lease that beats so
// far apart: what is left of it when the next heartbeat is due is the same.
func leaseExtra(every time.Duration) time.Duration { return max(0, every-proto.HeartbeatInterval) }

// idleFor is the interval that a heartbeat may be answered with; 0 = the ordinary
// one. Longer ones are for instances of which nothing is asked, and that understand
// it.
func (rn *renewer) idleFor(h heard, sessions int) time.Duration {
	s, b := h.session, h.beat
	s.mu.Lock()
	defer s.mu.Unlock()
	if !b.Paced || b.Running > 0 || b.Draining || b.Refusing || b.Parked || len(s.Slots.inflight) > 0 || s.draining || !s.drainedAt.IsZero() || s.retiring {
		return 0
	}
	return idleInterval(sessions, rn.idleBeats)
}

// setInterval notes how far apart the session's heartbeats are from now on; 0 = as
// usual.
func (s *Session) setInterval(every time.Duration) {
	s.mu.Lock()
	was := s.idle.interval
	s.idle.interval = every
	s.mu.Unlock()
	switch {
	case was == 0 && every > 0:
		limitPath(s.socket, idlePathTimeout)
	case was > 0 && every == 0:
		limitPath(s.socket, pathTimeout)
	}
	if every < was { // the next look was to be later
		s.watch.within(quietAfter)
	}
}
