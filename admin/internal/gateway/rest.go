package gateway

import (
	"net"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// An instance that runs nothing has nothing to say but that it is there, and a
// node may have thousands of them. The acknowledgement of its heartbeat tells it
// how long it may rest; it is back at the ordinary pace when it is offered
// something (docs/adr/0032). While it rests the kernel watches the path.
const (
	// DefaultIdleBeats is how many heartbeats in a second a node wants of
	// instances that run nothing.
	DefaultIdleBeats = 150
	// LongestRest bounds the time from one heartbeat to the next. The lease is
	// longer by as much as that is longer than usual, and so is the time until
	// what an instance began right after such a heartbeat is given up.
	LongestRest = 30 * time.Second
	// restSlot is the grain of the moments at which instances are asked to
	// beat: those of one slot wake a sleeping node once. They are written down
	// as often (renewEvery).
	restSlot = 500 * time.Millisecond
	// restLate is how much later than told a heartbeat may come: its
	// acknowledgement may have waited for the database.
	restLate = 2 * time.Second
)

// restOf is the time from heartbeat to heartbeat of each of n instances that
// run nothing; 0 when the ordinary one will do.
func restOf(n int, perSecond float64) time.Duration {
	every := time.Duration(float64(n) / perSecond * float64(time.Second)).Truncate(restSlot)
	if every <= proto.HeartbeatInterval {
		return 0
	}
	return min(every, LongestRest)
}

// nextBeat is how long the instance may wait from now, which counts from any
// fixed instant. Each instance has its slot in the cycle, so that the heartbeats
// of a crowd that came at once are spread evenly over it.
func nextBeat(id domain.InstanceID, every, now time.Duration) time.Duration {
	slot := time.Duration(uint64(id)*0x9E3779B97F4A7C15>>32%uint64(every/restSlot)) * restSlot
	wait := (slot - now%every + every) % every
	return max(wait, proto.HeartbeatInterval)
}

// quiet is how much longer than others an instance has its lease that beats so
// far apart: what is left of it when the next heartbeat is due is the same.
func quiet(every time.Duration) time.Duration { return max(0, every-proto.HeartbeatInterval) }

// restful reports whether this was the heartbeat of an instance that nothing is
// asked of, and that understands when it is told to rest. mu is held.
func (s *Session) restful(b *proto.Heartbeat) bool {
	return b.Paced && b.Running == 0 && !b.Draining && !b.Refusing && !b.Parked && len(s.inflight) == 0 && !s.draining && !s.retiring
}

// restFor is the rest that a heartbeat may be answered with; 0 = none.
func (g *Gateway) restFor(h heard, sessions int) time.Duration {
	h.session.mu.Lock()
	restful := h.session.restful(h.beat)
	h.session.mu.Unlock()
	if !restful {
		return 0
	}
	return restOf(sessions, g.opt.IdleBeats)
}

// rest notes how far apart the session's heartbeats are from now on; 0 = as usual.
func (s *Session) rest(every time.Duration) {
	s.mu.Lock()
	was := s.pulse.every
	s.pulse.every = every
	s.mu.Unlock()
	if (was > 0) != (every > 0) {
		watchPath(s.socket, every > 0)
	}
	if every < was { // the next look was to be later
		s.watch.within(quietAfter)
	}
}

// restingTimeout is tcpTimeout for the path to an instance that rests. Linux
// goes by it, and not by the number of probes, when probes stay unanswered.
const restingTimeout = 7 * time.Second

// watchPath lets the kernel notice sooner that a path is dead over which
// nothing is said.
func watchPath(conn net.Conn, closely bool) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		timeout := tcpTimeout
		if closely {
			timeout = restingTimeout
		}
		_ = setUserTimeout(raw, timeout) // the session's own watch is there, too
	}
}
