package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// MaxFrame is the size of frames that a client should ask for, in bytes. It is RabbitMQ's
// default.
const MaxFrame = 128 << 10

// Types and sizes of frames (AMQP 0-9-1, section 4.2.3).
const (
	methodFrame, headerFrame, bodyFrame, heartbeatFrame = 1, 2, 3, 8
	frameHead, frameEnd                                 = 7, 0xce
)

// maxUnaskedFrames bounds the frames of a broker since the last write of the client,
// which sends heartbeats. A returned message of 1 MiB has 10.
const maxUnaskedFrames = 1024

// method is class and number of a method.
type method uint32

func (m method) parts() (class, number uint32) { return uint32(m) >> 16, uint32(m) & 0xffff }

// Methods with a rule of their own.
const (
	basicPublish method = 60<<16 | 40
	basicReturn  method = 60<<16 | 50
	basicAck     method = 60<<16 | 80
	basicNack    method = 60<<16 | 120
	channelOpen  method = 20<<16 | 10
)

// expected are the methods that a publisher expects of a broker, with the types of
// their fields. o, s, l and q are integers of 1, 2, 4 and 8 bytes. S and L are texts
// with a length of 1 and 4 bytes. T is a table. An answer needs a request.
var expected = map[method]struct {
	fields string
	answer bool
}{
	10<<16 | 10: {"ooTLL", true}, // connection.start
	10<<16 | 20: {"L", true},     // connection.secure
	10<<16 | 30: {"sls", true},   // connection.tune
	10<<16 | 41: {"S", true},     // connection.open-ok
	10<<16 | 50: {"sSss", false}, // connection.close
	10<<16 | 51: {"", true},      // connection.close-ok
	10<<16 | 60: {"S", false},    // connection.blocked
	10<<16 | 61: {"", false},     // connection.unblocked
	20<<16 | 11: {"L", true},     // channel.open-ok
	20<<16 | 20: {"o", false},    // channel.flow
	20<<16 | 40: {"sSss", false}, // channel.close
	20<<16 | 41: {"", true},      // channel.close-ok
	85<<16 | 11: {"", true},      // confirm.select-ok
	basicReturn: {"sSSS", false},
	basicAck:    {"qo", false},
	basicNack:   {"qo", false},
}

// asking are the methods of a client that have one answer.
var asking = map[method]bool{
	10<<16 | 11: true, 10<<16 | 21: true, 10<<16 | 40: true, 10<<16 | 50: true,
	channelOpen: true, 20<<16 | 40: true, 85<<16 | 10: true,
}

// AMQP reads frames of AMQP 0-9-1 for a publisher (rabbitmq.com/resources/specs/amqp0-9-1.pdf).
// It hands on whole frames only: amqp091 reads methods by their fields, beyond the
// end of the frame, and waits for ever on an answer that was not asked for.
func AMQP(conn net.Conn, onBreak func(error)) net.Conn {
	return &amqpConn{
		Conn: conn, onBreak: onBreak, in: bufio.NewReader(conn), greeting: len("AMQP0091"),
		channels: map[uint16]*amqpChannel{0: {asked: 1}}, // the greeting asks for connection.start
	}
}

type amqpConn struct {
	net.Conn
	onBreak func(error)

	// owned by the reading goroutine
	in    *bufio.Reader
	frame []byte // that was checked, and is not read yet
	err   error

	// owned by the writing goroutine
	greeting int // bytes left of it
	out      prefix

	mu       sync.Mutex
	channels map[uint16]*amqpChannel // guarded by mu; those that the client has opened
	unasked  int                     // guarded by mu; frames since the last write
}

// amqpChannel counts what a broker may still send on a channel.
type amqpChannel struct {
	asked     int    // answers that are due
	published uint64 // messages since it was opened
	returned  uint64
	header    bool   // the header of a returned message comes next
	body      uint64 // bytes left of it
}

func (c *amqpConn) Read(p []byte) (int, error) {
	if len(c.frame) == 0 {
		if c.err == nil {
			c.err = c.next()
		}
		if c.err != nil {
			return 0, c.err
		}
	}
	n := copy(p, c.frame)
	c.frame = c.frame[n:]
	return n, nil
}

// next reads a frame and checks it.
func (c *amqpConn) next() error {
	head := make([]byte, frameHead)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	kind, number, size := head[0], binary.BigEndian.Uint16(head[1:]), binary.BigEndian.Uint32(head[3:])
	if size > MaxFrame-frameHead-1 {
		return c.end(broken("AMQP", "a frame of %d bytes is announced, and it may have %d", size, MaxFrame))
	}
	frame := make([]byte, frameHead+int(size)+1)
	copy(frame, head)
	if _, err := io.ReadFull(c.in, frame[frameHead:]); err != nil {
		return err
	}
	payload := frame[frameHead : len(frame)-1]
	if frame[len(frame)-1] != frameEnd {
		return c.end(broken("AMQP", "a frame is longer than its announced %d bytes", size))
	}
	if err := c.check(kind, number, payload); err != nil {
		return c.end(err)
	}
	c.frame = frame
	return nil
}

func (c *amqpConn) end(err error) error {
	if c.onBreak != nil {
		c.onBreak(err)
	}
	return err
}

func (c *amqpConn) check(kind byte, number uint16, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unasked++; c.unasked > maxUnaskedFrames {
		return broken("AMQP", "the broker sent more than %d frames without a request", maxUnaskedFrames)
	}
	channel := c.channels[number]
	if channel == nil {
		return broken("AMQP", "the broker uses channel %d, which is not open", number)
	}
	switch kind {
	case methodFrame:
		return channel.method(payload)
	case headerFrame:
		return channel.content(payload)
	case bodyFrame:
		if uint64(len(payload)) > channel.body {
			return broken("AMQP", "a body is longer than its announced length")
		}
		channel.body -= uint64(len(payload))
		return nil
	case heartbeatFrame:
		return nil
	}
	return broken("AMQP", "a frame has type %d, which is none of its protocol", kind)
}

func (c *amqpChannel) method(payload []byte) error {
	f := &fields{rest: payload}
	m := method(f.integer(4))
	class, number := m.parts()
	rule, known := expected[m]
	if !known {
		return broken("AMQP", "the broker sent method %d.%d, which a publisher does not ask for", class, number)
	}
	if rule.answer {
		if c.asked--; c.asked < 0 {
			return broken("AMQP", "the broker sent the answer %d.%d without a request", class, number)
		}
	}
	first := f.of(rule.fields)
	c.header, c.body = false, 0
	switch m {
	case basicReturn:
		c.header = true
		if c.returned++; c.returned > c.published {
			return broken("AMQP", "the broker returned %d messages, and %d were published", c.returned, c.published)
		}
	case basicAck, basicNack: // the library counts up to the number
		if first > c.published {
			return broken("AMQP", "the broker confirmed message %d, and %d were published", first, c.published)
		}
	}
	return f.err(true)
}

// content checks the header of a returned message.
func (c *amqpChannel) content(payload []byte) error {
	if !c.header {
		return broken("AMQP", "the broker sent a message that was not published")
	}
	c.header = false
	f := &fields{rest: payload}
	f.integer(2 + 2) // class and weight
	if c.body = f.integer(8); c.body > maxLength {
		return broken("AMQP", "a body of %d bytes is announced, and it may have %d", c.body, maxLength)
	}
	flags := f.integer(2)
	for i, kind := range "SSTooSSSSqSSSS" {
		if flags&(0x8000>>i) != 0 {
			f.of(string(kind))
		}
	}
	return f.err(false) // the library skips what follows
}

func (c *amqpConn) Write(p []byte) (int, error) {
	c.wrote(p)
	return c.Conn.Write(p)
}

// wrote keeps what the client asks for: type, channel, size, and class and number
// of a method.
func (c *amqpConn) wrote(p []byte) {
	c.mu.Lock()
	c.unasked = 0
	c.mu.Unlock()
	for len(p) > 0 {
		if n := min(len(p), c.greeting+c.out.left); n > 0 {
			c.out.left -= n - min(n, c.greeting)
			c.greeting -= min(n, c.greeting)
			p = p[n:]
			continue
		}
		p = p[c.out.fill(p, frameHead):]
		if len(c.out.bytes) >= frameHead && c.out.bytes[0] == methodFrame {
			p = p[c.out.fill(p, frameHead+4):]
		}
		head := c.out.bytes
		if len(head) < frameHead || head[0] == methodFrame && len(head) < frameHead+4 {
			continue
		}
		if head[0] == methodFrame {
			c.asks(binary.BigEndian.Uint16(head[1:]), method(binary.BigEndian.Uint32(head[frameHead:])))
		}
		c.out.left = int(binary.BigEndian.Uint32(head[3:])) + 1 - (len(head) - frameHead)
		c.out.bytes = head[:0]
	}
}

func (c *amqpConn) asks(number uint16, m method) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m == channelOpen {
		c.channels[number] = &amqpChannel{}
	}
	channel := c.channels[number]
	switch {
	case channel == nil:
	case m == basicPublish:
		channel.published++
	case asking[m]:
		channel.asked++
	}
}

// fields reads values of AMQP. After the end of the bytes each is zero.
type fields struct {
	rest     []byte
	elements int // of tables and lists so far
	depth    int
	deep     bool // there were more than maxDepth levels
	bad      bool // there were fewer bytes than announced, or an unknown type
}

func (f *fields) take(n uint64) []byte {
	if n > uint64(len(f.rest)) {
		f.bad, f.rest = true, nil
		return nil
	}
	out := f.rest[:n]
	f.rest = f.rest[n:]
	return out
}

func (f *fields) integer(bytes int) (v uint64) {
	for _, b := range f.take(uint64(bytes)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// of reads fields of these types, and returns the first if it is an integer.
func (f *fields) of(kinds string) (first uint64) {
	for i, kind := range kinds {
		var v uint64
		switch kind {
		case 'o':
			v = f.integer(1)
		case 's':
			v = f.integer(2)
		case 'l':
			v = f.integer(4)
		case 'q':
			v = f.integer(8)
		case 'S':
			f.take(f.integer(1))
		case 'L':
			f.take(f.integer(4))
		case 'T':
			f.list(true)
		}
		if i == 0 {
			first = v
		}
	}
	return first
}

// list reads a table, or a list without names.
func (f *fields) list(named bool) {
	if f.depth++; f.depth > maxDepth {
		f.deep, f.rest = true, nil
		return
	}
	whole := f.take(f.integer(4))
	behind := f.rest
	f.rest = whole
	for len(f.rest) > 0 && f.elements <= maxElements {
		f.elements++
		if named {
			f.of("S")
		}
		f.value()
	}
	f.rest = behind
	f.depth--
}

// value reads a value with its type, by the library's readField.
func (f *fields) value() {
	switch f.integer(1) {
	case 't', 'b', 'B':
		f.take(1)
	case 's', 'u':
		f.take(2)
	case 'I', 'i', 'f':
		f.take(4)
	case 'D':
		f.take(5)
	case 'l', 'd', 'T':
		f.take(8)
	case 'S', 'x':
		f.of("L")
	case 'A':
		f.list(false)
	case 'F':
		f.list(true)
	case 'V':
	default:
		f.bad, f.rest = true, nil
	}
}

func (f *fields) err(whole bool) error {
	switch {
	case f.deep:
		return broken("AMQP", "a table has more than %d levels", maxDepth)
	case f.elements > maxElements:
		return broken("AMQP", "a table has more than %d fields", maxElements)
	case f.bad:
		return broken("AMQP", "a frame announces more than it holds")
	case whole && len(f.rest) > 0:
		return broken("AMQP", "a frame holds more than its method")
	}
	return nil
}
