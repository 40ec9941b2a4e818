package proxy

import (
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// link is one client with its connection to the server.
type link struct {
	client *net.TCPConn
	dead   chan struct{} // closed by reset

	mu     sync.Mutex
	server *net.TCPConn // guarded by mu while the link is made; nil before
	over   bool         // guarded by mu
}

func (l *link) attach(server *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = server
	if l.over {
		abort(server)
	}
}

// reset ends both connections with RST; a second call does nothing.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.dead)
	abort(l.client)
	if l.server != nil {
		abort(l.server)
	}
}

// flush waits until the peer has acknowledged what was written, for a moment
// at most: a reset throws away what is still in the send buffer.
func (l *link) flush(conn *net.TCPConn) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	for range 50 {
		left := 0
		_ = raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		if left == 0 {
			return
		}
		select {
		case <-l.dead:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// abort closes with RST instead of FIN.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}
