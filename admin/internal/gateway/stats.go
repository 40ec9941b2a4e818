package gateway

import (
	"net"
	"sync/atomic"

	"github.com/carillon-sched/carillon/proto"
)

// Stats is what the gateway can tell of itself, for metrics.
type Stats struct {
	Sessions int // that stand
	Doubted  int // whose instances do not answer now
	Draining int // whose instances take nothing more
	Slots    int // of their instances, as last reported
	Used     int // of these slots, as far as this node knows
	// Opened and Ended count sessions since the start; Refused connections that
	// were told no, Dropped those that broke off or were closed in the handshake.
	Opened, Ended, Refused, Dropped uint64
	// Control and Logs are the two kinds of connections.
	Control, Logs Traffic
}

// Traffic counts bytes after TLS since the start, handshakes not included.
type Traffic struct{ In, Out uint64 }

// tally counts since the start.
type tally struct {
	opened, ended atomic.Uint64
	control, logs traffic
}

type traffic struct{ in, out atomic.Uint64 }

func (t *traffic) read() Traffic { return Traffic{In: t.in.Load(), Out: t.out.Load()} }

// count makes the bytes of a connection count for its purpose.
func (t *tally) count(conn net.Conn, purpose proto.Purpose) net.Conn {
	if purpose == proto.Purpose_PURPOSE_LOGS {
		return countedConn{conn, &t.logs}
	}
	return countedConn{conn, &t.control}
}

type countedConn struct {
	net.Conn
	traffic *traffic
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.traffic.in.Add(uint64(max(n, 0)))
	return n, err
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.traffic.out.Add(uint64(max(n, 0)))
	return n, err
}

// Stats looks at every session; it is for somebody who asks now and then.
func (g *Gateway) Stats() Stats {
	out := Stats{
		Opened: g.tally.opened.Load(), Ended: g.tally.ended.Load(),
		Control: g.tally.control.read(), Logs: g.tally.logs.read(),
	}
	g.admission.mu.Lock()
	out.Refused, out.Dropped = uint64(g.admission.refused), uint64(g.admission.dropped)
	g.admission.mu.Unlock()
	for _, s := range g.registry.all() {
		out.Sessions++
		if s.doubt.Load() {
			out.Doubted++
		}
		s.mu.Lock()
		if s.draining || !s.drainedAt.IsZero() {
			out.Draining++
		}
		out.Slots += s.Slots.occupancy.slots
		out.Used += s.Slots.occupancy.Occupied()
		s.mu.Unlock()
	}
	return out
}
