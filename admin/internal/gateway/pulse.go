package gateway

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// A path can break without a word: nothing comes any more, and what is sent is
// taken by nobody. How soon that matters depends on what is waited for.
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
	// pingFor is how long a ping has for its answer at least before that.
	pingFor = deadAfter - quietAfter
)

// pulse judges the path to an instance by what is heard on it. It reads no
// clock: now is given. It is not safe for concurrent use.
type pulse struct {
	heard time.Time // the last byte
	asked time.Time // the ping that nothing has been heard since; zero = none is out
	// owed is how many offers wait for their answer, since is when the oldest
	// of them can have been sent.
	owed  int
	since time.Time
	// every is how far apart the heartbeats of an instance are that rests; 0: as usual.
	every time.Duration
}

// hear is the event that something came at that instant.
func (p *pulse) hear(at time.Time) {
	if at.After(p.heard) {
		p.heard, p.asked = at, time.Time{}
	}
}

// offered and answered count offers and their answers; what is answered twice
// counts once too often, and a ping less.
func (p *pulse) offered(now time.Time, n int) (first bool) {
	first = p.owed == 0
	if first {
		p.since = now
	}
	p.owed += n
	return first
}

func (p *pulse) answered(now time.Time, n int) {
	p.owed, p.since = max(0, p.owed-n), now
}

// pinged is the event that a ping was answered: who takes long over an offer
// is there all the same.
func (p *pulse) pinged() { p.owed = 0 }

// doubted reports whether a ping has been out for too long.
func (p *pulse) doubted(now time.Time) bool {
	return !p.asked.IsZero() && now.Sub(p.asked) >= doubtAfter
}

// judge says whether to ping now, and when to judge again. An error says that
// the path is dead.
func (p *pulse) judge(now time.Time) (ask bool, again time.Duration, err error) {
	if deadAt := p.deadAt(); !deadAt.IsZero() && !now.Before(deadAt) {
		return false, 0, fmt.Errorf("nothing was heard for %s", now.Sub(p.heard).Round(100*time.Millisecond))
	}
	askAt := p.heard.Add(quietAfter)
	if p.every > 0 {
		askAt = p.heard.Add(p.every + restLate)
	}
	if p.owed > 0 {
		since := p.since
		if p.heard.After(since) {
			since = p.heard
		}
		if at := since.Add(answerAfter); at.Before(askAt) {
			askAt = at
		}
	}
	if p.asked.IsZero() && !now.Before(askAt) {
		p.asked, ask = now, true
	}
	next := p.deadAt()
	switch {
	case p.asked.IsZero():
		next = askAt
	case !p.doubted(now):
		next = p.asked.Add(doubtAfter)
	}
	return ask, next.Sub(now), nil
}

// deadAt is when the path is dead unless something is heard; zero = nobody has
// asked yet whether it is.
func (p *pulse) deadAt() time.Time {
	if p.asked.IsZero() {
		return time.Time{}
	}
	at := p.heard.Add(deadAfter)
	if answered := p.asked.Add(pingFor); answered.After(at) {
		at = answered
	}
	return at
}
