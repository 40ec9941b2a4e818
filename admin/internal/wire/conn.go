package wire

import (
	"fmt"
	"net"
	"syscall"
)

const (
	// maxLength bounds an announced length and the bytes of one answer. The longest
	// legal answer is a message of 960 KiB that RabbitMQ returns.
	maxLength = 1 << 20
	// maxElements bounds the elements of one answer. The longest legal one of Redis is
	// CLUSTER SLOTS, with some 20 elements for each shard.
	maxElements = 1024
	maxDepth    = 8
)

// Error says which bound a broker has broken.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

// broken makes an Error of the protocol's name, the fault and the bound.
func broken(protocol, format string, args ...any) error {
	return &Error{protocol + ": " + fmt.Sprintf(format, args...) + ". The connection was ended: look whether its address leads to a broker of this kind"}
}

// checker follows one connection. read and wrote are called by different
// goroutines, each by one at a time.
type checker interface {
	// read sees the next bytes of the broker before the library does.
	read(p []byte) error
	// wrote sees the next bytes of the library before the broker does.
	wrote(p []byte)
}

// Reader puts a protocol's checker on a connection. Read returns a broken bound as
// its error, and so do all later calls. The library closes the connection then.
// onBreak is called before with the same error. It may be nil.
type Reader func(conn net.Conn, onBreak func(error)) net.Conn

type checked struct {
	net.Conn
	checker checker
	onBreak func(error)
	err     error // owned by the reading goroutine
}

func check(conn net.Conn, c checker, onBreak func(error)) net.Conn {
	out := &checked{Conn: conn, checker: c, onBreak: onBreak}
	if raw, ok := conn.(syscall.Conn); ok {
		return checkedSocket{out, raw}
	}
	return out
}

// checkedSocket lets a library look whether an idle socket is alive.
type checkedSocket struct {
	*checked
	syscall.Conn
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(p)
	if c.err = c.checker.read(p[:n]); c.err == nil {
		return n, err
	}
	if c.onBreak != nil {
		c.onBreak(c.err)
	}
	return 0, c.err
}

func (c *checked) Write(p []byte) (int, error) {
	c.checker.wrote(p)
	return c.Conn.Write(p)
}
