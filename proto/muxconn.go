package proto

import (
	"encoding/binary"
	"net"
)

// WholeFrames wraps the connection under a multiplexer, which writes each
// frame's header and body apart: they go out in one write, so that a small
// frame costs one system call, one TLS record and one wake-up of the peer
// instead of two. Only one goroutine may write at a time, as yamux does.
func WholeFrames(conn net.Conn) net.Conn { return &wholeFrames{Conn: conn} }

type wholeFrames struct {
	net.Conn
	buf []byte // a header whose body comes with the next write
}

// The header of a yamux frame (version 0): version, type, flags (2 bytes),
// stream (4), length (4), big endian. Only data frames, type 0, have a body.
const (
	muxHeaderSize = 12
	muxLengthAt   = 8
	// keptBuffer bounds what an idle connection keeps.
	keptBuffer = 32 << 10
)

func announcesBody(p []byte) bool {
	return len(p) == muxHeaderSize && p[0] == 0 && p[1] == 0 && binary.BigEndian.Uint32(p[muxLengthAt:]) > 0
}

// Write keeps a header back until its body comes.
func (c *wholeFrames) Write(p []byte) (int, error) {
	if len(c.buf) == 0 {
		if announcesBody(p) {
			c.buf = append(c.buf, p...)
			return len(p), nil
		}
		return c.Conn.Write(p)
	}
	whole := append(c.buf, p...)
	if c.buf = whole[:0]; cap(whole) > keptBuffer {
		c.buf = nil
	}
	if _, err := c.Conn.Write(whole); err != nil {
		return 0, err
	}
	return len(p), nil
}
