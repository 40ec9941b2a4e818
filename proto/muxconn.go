package proto

import (
	"encoding/binary"
	"net"
	"sync"
)

// WholeFrames wraps the connection under a multiplexer, which writes each
// frame's header and body apart: they go out in one write, so that a small
// frame costs one system call, one TLS record and one wake-up of the peer
// instead of two. Only one goroutine may write at a time, as yamux does.
func WholeFrames(conn net.Conn) net.Conn { return &wholeFrames{Conn: conn} }

type wholeFrames struct {
	net.Conn
	header MuxHeader // one whose body comes with the next write
	held   bool
}

// joined is a frame of the usual size; most connections are idle, and keep none.
var joined = sync.Pool{New: func() any { b := make([]byte, 0, 17<<10); return &b }}

// announcesBody: only data frames have one.
func announcesBody(p []byte) bool {
	return len(p) == MuxHeaderSize && p[0] == 0 && p[1] == MuxData && binary.BigEndian.Uint32(p[8:]) > 0
}

// Write keeps a header back until its body comes.
func (c *wholeFrames) Write(p []byte) (int, error) {
	if !c.held {
		if announcesBody(p) {
			c.held = true
			return copy(c.header[:], p), nil
		}
		return c.Conn.Write(p)
	}
	c.held = false
	whole := joined.Get().(*[]byte)
	defer joined.Put(whole)
	*whole = append(append((*whole)[:0], c.header[:]...), p...)
	if _, err := c.Conn.Write(*whole); err != nil {
		return 0, err
	}
	return len(p), nil
}
