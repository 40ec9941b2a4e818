package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// CommitCutter cuts database connections at their COMMIT, or at a statement
// that commits itself, in both truths: the server committed and its OK is
// swallowed, or the COMMIT never arrived. The
// client cannot tell which. It understands of MySQL's protocol what that
// takes: packets have three bytes of length and one of sequence; a command
// begins with sequence 0; COM_QUERY is 3, followed by the statement.
type CommitCutter struct {
	every atomic.Int64 // cut one of so many commits; 0 = none

	committed atomic.Int64
	lost      atomic.Int64
	seen      atomic.Int64
	hold      atomic.Pointer[Held]
}

// Held is a COMMIT that is kept back: until Release its transaction goes on
// holding its locks, as if the client had not come to send it.
type Held struct {
	table  []byte
	caught chan struct{}
	gone   chan struct{}
	taken  atomic.Bool
}

// Caught is closed when a COMMIT is kept back.
func (h *Held) Caught() <-chan struct{} { return h.caught }

// Release lets the COMMIT go on.
func (h *Held) Release() { close(h.gone) }

// Hold keeps back the next COMMIT of a transaction that locked rows of a
// table, or changed some. Call Release exactly once, also when nothing was caught.
func (c *CommitCutter) Hold(table string) *Held {
	h := &Held{table: []byte(table), caught: make(chan struct{}), gone: make(chan struct{})}
	c.hold.Store(h)
	return h
}

// keep keeps a COMMIT back if it is the one to be held; false when the link
// died meanwhile.
func (h *Held) keep(l *link, p *Proxy) bool {
	if !h.taken.CompareAndSwap(false, true) {
		return true
	}
	close(h.caught)
	select {
	case <-h.gone:
		return true
	case <-l.dead:
		return false
	case <-p.done:
		return false
	}
}

// touches tells whether a statement locks or changes rows of the table.
func (h *Held) touches(packet []byte) bool {
	return bytes.Contains(packet, h.table) && (bytes.Contains(packet, []byte("UPDATE")) || bytes.Contains(packet, []byte("INSERT")))
}

// Every makes the cutter take one of n commits at random; 0 = none.
func (c *CommitCutter) Every(n int) { c.every.Store(int64(n)) }

// Trials returns how many commits were cut after they had happened, how many
// before, and how many went by in all.
func (c *CommitCutter) Trials() (committed, lost, seen int64) {
	return c.committed.Load(), c.lost.Load(), c.seen.Load()
}

type fate int

const (
	pass fate = iota
	committedUnheard
	neverCommitted
)

func (c *CommitCutter) draw() fate {
	c.seen.Add(1)
	n := c.every.Load()
	if n <= 0 || rand.Int64N(n) != 0 {
		return pass
	}
	if rand.IntN(2) == 0 {
		return committedUnheard
	}
	return neverCommitted
}

// statementOf returns the statement of a COM_QUERY; nil = the packet is none.
func statementOf(packet []byte) []byte {
	const header, query = 4, 3
	if len(packet) <= header || packet[3] != 0 || packet[header] != query {
		return nil
	}
	return bytes.TrimRight(bytes.TrimSpace(packet[header+1:]), ";")
}

// commits tells whether a statement commits what it or those before it did: a
// COMMIT, or an UPDATE outside of a transaction.
func (s *session) commits(statement []byte) bool {
	is := func(word string) bool {
		return len(statement) >= len(word) && bytes.EqualFold(statement[:len(word)], []byte(word))
	}
	switch {
	case is("START TRANSACTION"):
		s.open = true
	case is("COMMIT"):
		s.open = false
		return true
	case is("ROLLBACK"):
		s.open, s.touched = false, false
	}
	return !s.open && is("UPDATE")
}

// session is what is known of a connection from the statements that went by.
type session struct {
	open    bool // a transaction is
	touched bool // the table of a hold, in this transaction
}

func (c *CommitCutter) serve(p *Proxy, l *link) {
	var swallow atomic.Bool // what the server says is not passed on
	answered := make(chan struct{}, 1)
	var down sync.WaitGroup
	down.Go(func() {
		defer l.reset()
		buffer := make([]byte, 64<<10)
		for {
			n, err := l.server.Read(buffer)
			if n > 0 && swallow.Load() {
				c.committed.Add(1) // it has committed: only then it answers
				answered <- struct{}{}
				return
			}
			if n > 0 {
				if !p.passing(l) {
					return
				}
				if _, werr := l.client.Write(buffer[:n]); werr != nil {
					return
				}
				p.forwarded.Add(int64(n))
			}
			if err != nil {
				return
			}
		}
	})
	c.up(p, l, &swallow, answered)
	l.reset()
	down.Wait()
}

// up forwards the client's packets one by one.
func (c *CommitCutter) up(p *Proxy, l *link, swallow *atomic.Bool, answered <-chan struct{}) {
	var now session
	for {
		packet, err := readPacket(l.client)
		if err != nil || !p.passing(l) {
			return
		}
		what, held := pass, c.hold.Load()
		if held != nil {
			now.touched = now.open && (now.touched || held.touches(packet))
		}
		if inside := now.open; now.commits(statementOf(packet)) {
			if held != nil && inside && now.touched && !held.keep(l, p) {
				return
			}
			what, now.touched = c.draw(), false
		}
		switch what {
		case neverCommitted:
			c.lost.Add(1)
			return
		case committedUnheard:
			swallow.Store(true)
			if _, err := l.server.Write(packet); err != nil {
				return
			}
			select {
			case <-answered:
			case <-l.dead:
			case <-time.After(10 * time.Second):
			}
			return
		default:
			if _, err := l.server.Write(packet); err != nil {
				return
			}
			p.forwarded.Add(int64(len(packet)))
		}
	}
}

func readPacket(from net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32([]byte{head[0], head[1], head[2], 0})
	packet := make([]byte, 4+size)
	copy(packet, head[:])
	_, err := io.ReadFull(from, packet[4:])
	return packet, err
}
