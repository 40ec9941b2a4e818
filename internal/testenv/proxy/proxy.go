// Package proxy answers: how does a TCP path break, exactly where I say?
//
// A Proxy stands between a client and a server on loopback. It can go silent
// with its connections open (half-open), answer late, reset, reset after an
// exact number of bytes, and cut a database connection between a COMMIT and
// its OK. All methods are safe for concurrent use.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy forwards connections to one address.
type Proxy struct {
	// Fixed after construction.
	listener net.Listener
	done     chan struct{} // closed by Close
	wait     sync.WaitGroup
	limits   func(connection int64) (up, down int64)
	commits  *CommitCutter
	tap      func(connection int64) io.Writer

	accepted  atomic.Int64
	forwarded atomic.Int64
	delay     atomic.Int64 // ns, one way
	poor      atomic.Pointer[Poor]

	mu       sync.Mutex
	upstream string             // guarded by mu
	open     map[*link]struct{} // guarded by mu
	gate     chan struct{}      // guarded by mu; closed while bytes may pass
	shut     bool               // guarded by mu: the gate is closed
	ended    bool               // guarded by mu
}

// Options of a proxy; the zero value forwards everything.
type Options struct {
	// Listen is host:port; empty = any port of 127.0.0.1.
	Listen string
	// Limits returns after how many bytes from the client (up) and from the
	// server (down) the connection with this number (from 0) is reset;
	// negative = never. May be nil.
	Limits func(connection int64) (up, down int64)
	// Tap returns what gets a copy of all that the client of a connection sends;
	// it, or what it returns, may be nil.
	Tap func(connection int64) io.Writer
	// Commits cuts database connections at their COMMIT; may be nil.
	Commits *CommitCutter
}

// New starts a proxy to upstream; Close ends it.
func New(upstream string, o Options) (*Proxy, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", upstream, err)
	}
	gate := make(chan struct{})
	close(gate)
	p := &Proxy{
		upstream: upstream, listener: listener, done: make(chan struct{}), limits: o.Limits, commits: o.Commits, tap: o.Tap,
		open: map[*link]struct{}{}, gate: gate,
	}
	p.wait.Go(p.accept)
	return p, nil
}

// Addr is where clients connect.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Accepted counts the connections so far.
func (p *Proxy) Accepted() int64 { return p.accepted.Load() }

// Bytes counts what was forwarded so far, both ways.
func (p *Proxy) Bytes() int64 { return p.forwarded.Load() }

// Silence stops all bytes and keeps the connections open: what a dead path
// looks like from both ends. New connections are taken and hear nothing.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shut {
		p.shut, p.gate = true, make(chan struct{})
	}
}

// Heal ends a silence: what waited goes on, as retransmission would do it.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		p.shut = false
		close(p.gate)
	}
}

// Delay makes all bytes late by d, each way; 0 = none.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Follow makes upstream the other end, of all connections: open ones are reset, as a
// load balancer does when it leaves a server. Empty: connections are reset at once.
func (p *Proxy) Follow(upstream string) {
	p.mu.Lock()
	p.upstream = upstream
	p.mu.Unlock()
	p.Reset()
}

// Reset resets all open connections and returns how many there were.
func (p *Proxy) Reset() int {
	p.mu.Lock()
	links := make([]*link, 0, len(p.open))
	for l := range p.open {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
	return len(links)
}

// Close ends the proxy and all of its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return nil
	}
	p.ended = true
	p.mu.Unlock()
	close(p.done)
	err := p.listener.Close()
	p.Reset()
	p.wait.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // a client that went away before we had it
		}
		number := p.accepted.Add(1) - 1
		p.wait.Go(func() { p.serve(conn.(*net.TCPConn), number) })
	}
}

// passing returns when bytes may pass; false when the proxy or link ends.
func (p *Proxy) passing(l *link) bool {
	for {
		p.mu.Lock()
		gate, shut := p.gate, p.shut
		p.mu.Unlock()
		if !shut {
			return true
		}
		select {
		case <-gate:
		case <-l.dead:
			return false
		case <-p.done:
			return false
		}
	}
}

func (p *Proxy) serve(client *net.TCPConn, number int64) {
	l := &link{client: client, dead: make(chan struct{})}
	if !p.enter(l) {
		l.reset()
		return
	}
	defer p.leave(l)
	if !p.passing(l) {
		l.reset()
		return
	}
	p.mu.Lock()
	upstream := p.upstream
	p.mu.Unlock()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", upstream)
	if err != nil {
		l.reset() // what a client sees when nobody listens
		return
	}
	l.attach(conn.(*net.TCPConn))
	up, down := int64(-1), int64(-1)
	if p.limits != nil {
		up, down = p.limits(number)
	}
	if p.commits != nil {
		p.commits.serve(p, l)
		return
	}
	var both sync.WaitGroup
	var copyTo io.Writer
	if p.tap != nil {
		copyTo = p.tap(number)
	}
	both.Go(func() { p.pump(l, l.server, l.client, up, copyTo) })
	both.Go(func() { p.pump(l, l.client, l.server, down, nil) })
	both.Wait()
}

func (p *Proxy) enter(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.open[l] = struct{}{}
	return true
}

func (p *Proxy) leave(l *link) {
	l.reset()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, l)
}

// piece is bytes that have to be at the other end at a certain time.
type piece struct {
	data []byte
	at   time.Time
}

// pump forwards from → to until one end is closed, or budget bytes went by
// (then the connection is reset); budget < 0 = no limit. A reader and a writer
// of their own keep the bandwidth while bytes are late.
func (p *Proxy) pump(l *link, to, from *net.TCPConn, budget int64, tap io.Writer) {
	line := make(chan piece, 256)
	var writer sync.WaitGroup
	writer.Go(func() { p.write(l, to, line, budget) })
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		if n > 0 {
			if tap != nil {
				_, _ = tap.Write(data[:n]) // a recorder that is full says so itself
			}
			select {
			case line <- piece{data[:n], time.Now().Add(time.Duration(p.delay.Load()))}:
			case <-l.dead:
				err = net.ErrClosed
			}
		}
		if err != nil {
			break
		}
	}
	close(line)
	writer.Wait()
	_ = to.CloseWrite() // the end of one direction passes, too
}

func (p *Proxy) write(l *link, to *net.TCPConn, line <-chan piece, budget int64) {
	for next := range line {
		if wait := time.Until(next.at); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.dead:
				return
			}
		}
		if !p.passing(l) {
			return
		}
		data := next.data
		if poor := p.poor.Load(); poor != nil {
			data = gather(data, line)
			if !poor.carry(data, l.dead) {
				return
			}
		}
		last := budget >= 0 && int64(len(data)) >= budget
		if last {
			data = data[:budget]
		}
		n, err := to.Write(data)
		p.forwarded.Add(int64(n))
		if budget -= int64(n); last || err != nil {
			if last {
				l.flush(to) // the byte before the reset has to arrive
			}
			l.reset()
			return
		}
		if budget < 0 {
			budget = -1
		}
	}
}
