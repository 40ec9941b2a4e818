//go:build linux && (amd64 || arm64)

package direct

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Conn returns conn with reads and writes that the scheduler does not hear of.
// It is for TCP and Unix sockets; any other connection is returned as it is, as
// all are on systems other than Linux on amd64 and arm64. Everything else is as
// with conn: deadlines, errors, use by several goroutines at once.
func Conn(conn net.Conn) net.Conn {
	var raw syscall.RawConn
	var err error
	switch c := conn.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return conn
	}
	if err != nil {
		return conn // it is closed, and says so itself
	}
	d := &socket{Conn: conn, raw: raw}
	d.in.until, d.in.step = raw.Read, d.in.read
	d.out.until, d.out.step = raw.Write, d.out.write
	return d
}

type socket struct {
	net.Conn
	raw     syscall.RawConn
	in, out transfer
}

// transfer is one direction. Its functions are made once: each call would have
// to allocate them.
type transfer struct {
	// fixed
	until func(step func(fd uintptr) bool) error // of syscall.RawConn: waits until step says that all is done
	step  func(fd uintptr) bool

	mu    sync.Mutex    // held during a whole call
	p     []byte        // guarded by mu: what is to be filled, or sent
	n     int           // guarded by mu: how much was
	errno syscall.Errno // guarded by mu
}

func (t *transfer) read(fd uintptr) bool {
	t.n, t.errno = read(fd, t.p)
	return t.errno != syscall.EAGAIN
}

func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.p) {
		n, errno := write(fd, t.p[t.n:])
		if t.errno = errno; errno == syscall.EAGAIN {
			return false
		}
		if errno != 0 {
			break
		}
		t.n += n
	}
	return true
}

func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.in.run("read", p)
	if err != nil {
		return 0, s.failed("read", err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.out.run("write", p)
	if err != nil {
		return n, s.failed("write", err)
	}
	return n, nil
}

// run takes p through one direction.
func (t *transfer) run(name string, p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.errno = p, 0, 0
	err := t.until(t.step)
	t.p = nil
	if err == nil && t.errno != 0 {
		err = os.NewSyscallError(name, t.errno)
	}
	return t.n, err
}

// failed is an error as the connection itself would have it.
func (s *socket) failed(op string, err error) error {
	var raw *net.OpError
	if errors.As(err, &raw) { // of syscall.RawConn
		err = raw.Err
	}
	return &net.OpError{Op: op, Net: s.LocalAddr().Network(), Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err}
}

// Pooled is Conn for a connection that waits in a pool, and whose owner looks
// whether it is alive before he takes it, as go-sql-driver/mysql does: he reads,
// and wants to find nothing. SyscallConn().Read calls his function only when
// there is something, the end of the connection for example, and returns nil
// when there is not.
func Pooled(conn net.Conn) net.Conn {
	if s, ok := Conn(conn).(*socket); ok {
		return pooled{s}
	}
	return conn
}

type pooled struct{ *socket }

func (p pooled) SyscallConn() (syscall.RawConn, error) { return looked{p.raw}, nil }

type looked struct{ syscall.RawConn }

func (l looked) Read(f func(fd uintptr) bool) error {
	return l.RawConn.Read(func(fd uintptr) bool { return silent(fd) || f(fd) })
}

// silent reports whether there is nothing to read, and no end and no error either.
func silent(fd uintptr) bool {
	var b [1]byte
	//nolint:gosec // G103: b is alive until the call returns, as package syscall documents
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1, syscall.MSG_PEEK|syscall.MSG_DONTWAIT, 0, 0)
	return errno == syscall.EAGAIN
}
