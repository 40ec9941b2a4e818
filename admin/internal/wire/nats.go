package wire

import (
	"bytes"
	"encoding/json"
	"net"
	"strconv"
	"sync/atomic"
)

const (
	// maxInfo bounds the line in which a server of NATS describes itself. Some
	// hundred addresses of a cluster are 10 KiB.
	maxInfo = 64 << 10
	// maxNATSLine is nats.MAX_CONTROL_LINE_SIZE.
	maxNATSLine = 4096
	// maxUnasked and maxUnaskedLines bound the bytes and lines of a server since the
	// last write, and so a payload. The library queues some of them. At most some
	// thousand messages wait for their answers, which have 200 bytes each.
	maxUnasked      = 512 << 10
	maxUnaskedLines = 4 << 10
)

// NATS reads the client protocol (docs.nats.io/reference/reference-protocols/nats-protocol).
func NATS(conn net.Conn, onBreak func(error)) net.Conn { return check(conn, &nats{}, onBreak) }

// nats follows lines and the payloads that MSG and HMSG announce.
type nats struct {
	line    []byte // that is being read; at most maxNATSLine bytes of it
	length  int    // of that line so far
	payload int    // bytes left of a payload
	end     int    // bytes left of the line feed behind it

	bytes, lines atomic.Int64 // since the last write
}

func (c *nats) wrote([]byte) {
	c.bytes.Store(0)
	c.lines.Store(0)
}

func (c *nats) read(p []byte) error {
	if c.bytes.Add(int64(len(p))) > maxUnasked {
		return broken("NATS", "the server sent more than %d bytes without a request", maxUnasked)
	}
	for len(p) > 0 {
		n := min(len(p), c.payload)
		switch {
		case c.payload > 0:
			c.payload -= n
		case c.end > 0:
			if p[0] != "\r\n"[2-c.end] {
				return broken("NATS", "a payload is longer than its announced length")
			}
			n = 1
			c.end--
		default:
			if n = bytes.IndexByte(p, '\n') + 1; n == 0 {
				n = len(p)
			}
			if err := c.piece(p[:n]); err != nil {
				return err
			}
		}
		p = p[n:]
	}
	return nil
}

// piece takes a piece of a line, which ends with the line feed if there is one.
func (c *nats) piece(p []byte) error {
	if c.length == 0 && p[0] != '\r' && bytes.IndexByte([]byte("IMHP+-"), p[0]) < 0 {
		return broken("NATS", "a line begins with %q, which is no word of its protocol", p[:1])
	}
	c.line = append(c.line, p[:min(len(p), maxNATSLine-len(c.line))]...)
	c.length += len(p)
	most := maxNATSLine
	if bytes.HasPrefix(c.line, []byte("INFO ")) {
		most = maxInfo
	}
	if c.length > most {
		return broken("NATS", "a line has more than %d bytes", most)
	}
	if p[len(p)-1] != '\n' {
		return nil
	}
	if c.lines.Add(1) > maxUnaskedLines {
		return broken("NATS", "the server sent more than %d lines without a request", maxUnaskedLines)
	}
	line, whole := bytes.CutSuffix(c.line, []byte("\r\n"))
	whole = whole || c.length > len(c.line) // of INFO only the beginning is kept
	words := bytes.Fields(line)
	c.line, c.length = c.line[:0], 0
	if !whole || len(words) == 0 || bytes.IndexByte(line, '\r') >= 0 {
		return broken("NATS", "a line begins with %q and does not end with CR and LF", clip(line))
	}
	switch string(words[0]) {
	case "MSG", "HMSG":
		announced := words[len(words)-1]
		n, err := strconv.Atoi(string(announced))
		if err != nil || n < 0 || n > maxUnasked {
			return broken("NATS", "a payload of %q bytes is announced, and it may have %d", announced, maxUnasked)
		}
		c.payload, c.end = n, len("\r\n")
	case "INFO", "PING", "PONG", "+OK", "-ERR":
	default:
		return broken("NATS", "a line begins with %q, which is no word of its protocol", clip(words[0]))
	}
	return nil
}

func clip(b []byte) []byte { return b[:min(len(b), 20)] }

// Info is the first line of a NATS server.
type Info struct {
	TLSRequired  bool `json:"tls_required"`
	TLSAvailable bool `json:"tls_available"`
}

// ReadInfo reads the first line of a server of NATS, and nothing behind it: TLS may
// begin there. The connection that it returns begins with that line.
func ReadInfo(conn net.Conn) (Info, []byte, error) {
	var info Info
	var line []byte
	for next := make([]byte, 1); next[0] != '\n'; {
		if len(line) == maxInfo {
			return info, nil, broken("NATS", "a line has more than %d bytes", maxInfo)
		}
		if _, err := conn.Read(next); err != nil {
			return info, nil, err
		}
		line = append(line, next[0])
	}
	text, ok := bytes.CutPrefix(line, []byte("INFO "))
	if !ok || json.Unmarshal(text, &info) != nil {
		return info, nil, broken("NATS", "the first line begins with %q, and a server begins with INFO", clip(line))
	}
	return info, line, nil
}

// Replay returns a connection that begins with bytes that were read already.
func Replay(conn net.Conn, first []byte) net.Conn { return &replayed{conn, first} }

type replayed struct {
	net.Conn
	first []byte // owned by the reading goroutine
}

func (c *replayed) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}
