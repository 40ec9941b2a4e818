package gateway

import (
	"net"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// guardedConn lies below the multiplexer. It gives every write a deadline of
// its own: yamux bounds only the wait for a stream's window, and without this a
// peer that stops reading would hold the session's writer for ever. And it
// counts what the peer sends, before the multiplexer acts on it.
// Reads belong to one goroutine, writes to another.
type guardedConn struct {
	net.Conn
	guard guard // owned by the reader
	// heard is called after every read that brought something.
	heard func()
	// broken is called with the reason when the guard refuses what was read;
	// nobody reads on after that.
	broken func(error)
}

func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if refused := c.guard.pass(p[:n], time.Now()); refused != nil {
			c.broken(refused)
			return 0, refused
		}
		c.heard()
	}
	return n, err
}

func (c *guardedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(proto.WriteTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// pathTimeout is how long sent bytes may stay unacknowledged, and how long an
// idle path may be dead, before TCP gives up; idlePathTimeout is the same for the
// path to an instance that runs nothing, over which little is said. Linux goes by
// it, and not by the number of probes, when probes stay unanswered.
const (
	pathTimeout     = 15 * time.Second
	idlePathTimeout = 7 * time.Second
)

// Keep-alive probes, for a path over which nothing comes: the first after
// probeAfter, which heartbeats at their ordinary pace never let pass.
const (
	probeAfter = 4 * time.Second
	probeEvery = time.Second
	probes     = 3
)

// tune asks the kernel to notice dead paths: keep-alive probes when idle, and
// an end to retransmissions. The session's own pings and heartbeats notice them
// first, but for instances that run nothing (idle.go); and log connections have
// none.
func tune(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(true)
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes,
		})
	}
	limitPath(conn, pathTimeout)
}

// limitPath says how soon the kernel gives up a path that is dead.
func limitPath(conn net.Conn, timeout time.Duration) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = setUserTimeout(raw, timeout) // the session's own watch is there, too
		}
	}
}
