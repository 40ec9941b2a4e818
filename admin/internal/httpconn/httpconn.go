package httpconn

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Defaults of Options.
const (
	DefaultMax        = 2_000
	DefaultPerAddress = 500
	// Reserve is how many connections for probes only there may be beside Max.
	Reserve = 64
)

// Options bound the connections; 0 = default.
type Options struct {
	Max int
	// PerAddress bounds those of one IPv4 address, or IPv6 network of 64 bits.
	// Loopback has no bound of its own, for it is probes, and neither have
	// proxies, which speak for many.
	PerAddress int
	Proxies    []netip.Prefix
	// WriteTime is how long a client may take for a piece of an answer; default 30 s.
	WriteTime time.Duration
}

// Limiter keeps the connections of one server. It is safe for concurrent use.
type Limiter struct {
	// fixed after construction
	max, perAddress int
	writeTime       time.Duration
	proxies         []netip.Prefix

	mu        sync.Mutex
	open      map[net.Conn]*entry   // guarded by mu
	addresses map[netip.Addr]*group // guarded by mu; those with connections
	full      int                   // guarded by mu; connections that are not for probes only
	probeOnly list.List             // guarded by mu; of *entry, the oldest first
	counts    Counts                // guarded by mu
}

// Counts is what has become of connections since the start, and now.
type Counts struct {
	Open      int // now
	Evicted   int // left for another one, while they waited
	Refused   int // closed at once: their address has enough that work
	ProbeOnly int // let in for probes only
}

// group is what comes from one address.
type group struct {
	open    int       // not for probes only
	waiting list.List // of *entry, the one that waits longest first
}

// entry is an open connection. Its fields are guarded by Limiter.mu.
type entry struct {
	conn      net.Conn
	address   netip.Addr
	place     *list.Element // in its group's waiting, or in probeOnly; nil: it works
	probeOnly bool
}

// New makes one; see Listen and Serve for how it comes to a server.
func New(o Options) *Limiter {
	in := &Limiter{max: o.Max, perAddress: o.PerAddress, writeTime: o.WriteTime, proxies: o.Proxies, open: map[net.Conn]*entry{}, addresses: map[netip.Addr]*group{}}
	if in.max <= 0 {
		in.max = DefaultMax
	}
	if in.perAddress <= 0 {
		in.perAddress = DefaultPerAddress
	}
	if in.writeTime <= 0 {
		in.writeTime = writeTime
	}
	return in
}

// Counts reads the counts.
func (in *Limiter) Counts() Counts {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := in.counts
	c.Open = len(in.open)
	return c
}

// Listen lets connections of a listener in by the rules. It stands below TLS.
func (in *Limiter) Listen(l net.Listener) net.Listener { return &listener{l, in} }

type listener struct {
	net.Listener
	in *Limiter
}

// Accept returns the next connection that is let in.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		leaves, ok := l.in.enter(c)
		if leaves != nil {
			leaves.Close()
		}
		if ok {
			return c, nil
		}
		c.Close()
	}
}

// enter gives a connection its place; leaves is the one that it takes it from.
func (in *Limiter) enter(c net.Conn) (leaves net.Conn, ok bool) {
	e := &entry{conn: c, address: addressOf(c.RemoteAddr())}
	in.mu.Lock()
	defer in.mu.Unlock()
	g := in.addresses[e.address]
	switch {
	case g != nil && g.open >= in.perAddress && !in.speaksForMany(c):
		if g.waiting.Len() == 0 {
			in.counts.Refused++
			return nil, false
		}
		leaves = in.evict(g)
	case in.full >= in.max:
		if most := in.mostWaiting(); most != nil {
			leaves = in.evict(most)
		} else {
			e.probeOnly = true
		}
	}
	if e.probeOnly {
		in.counts.ProbeOnly++
		if in.probeOnly.Len() >= Reserve {
			oldest := in.probeOnly.Front().Value.(*entry)
			in.drop(oldest)
			leaves = oldest.conn
		}
		e.place = in.probeOnly.PushBack(e)
	} else {
		if g = in.addresses[e.address]; g == nil { // also if the one evicted was its last
			g = &group{}
			in.addresses[e.address] = g
		}
		g.open++
		in.full++
		e.place = g.waiting.PushBack(e)
	}
	in.open[c] = e
	return leaves, true
}

// speaksForMany says whether a connection is loopback's or a proxy's.
func (in *Limiter) speaksForMany(c net.Conn) bool {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	return ip.IsLoopback() || slices.ContainsFunc(in.proxies, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// evict takes the place of the one that waits longest.
func (in *Limiter) evict(g *group) net.Conn {
	e := g.waiting.Front().Value.(*entry)
	in.counts.Evicted++
	in.drop(e)
	return e.conn
}

// mostWaiting returns the address of which the most wait; nil: nobody waits. It
// is called only when all places are taken.
func (in *Limiter) mostWaiting() (most *group) {
	for _, g := range in.addresses {
		if g.waiting.Len() > 0 && (most == nil || g.waiting.Len() > most.waiting.Len()) {
			most = g
		}
	}
	return most
}

// drop forgets a connection.
func (in *Limiter) drop(e *entry) {
	delete(in.open, e.conn)
	if e.probeOnly {
		in.probeOnly.Remove(e.place)
		return
	}
	g := in.addresses[e.address]
	if e.place != nil {
		g.waiting.Remove(e.place)
	}
	in.full--
	if g.open--; g.open == 0 {
		delete(in.addresses, e.address)
	}
}

// Serve puts the rules into a server whose listener is the limiter's, before it
// serves: refuse answers what connections for probes only ask for besides.
func (in *Limiter) Serve(s *http.Server, probes map[string]bool, refuse http.HandlerFunc) {
	handler := s.Handler
	s.ConnState = in.state
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, raw(c))
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		slow := &writer{ResponseWriter: w, control: http.NewResponseController(w), time: in.writeTime}
		slow.extend()       // also for answers without a body
		defer slow.extend() // for what the server still holds back
		if c, _ := r.Context().Value(connKey{}).(net.Conn); in.isProbeOnly(c) {
			w.Header().Set("Connection", "close")
			if !probes[r.URL.Path] {
				refuse(slow, r)
				return
			}
		}
		handler.ServeHTTP(slow, r)
	})
}

type connKey struct{}

// raw is the connection below TLS.
func raw(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

func (in *Limiter) isProbeOnly(c net.Conn) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	e := in.open[c]
	return e != nil && e.probeOnly
}

// state hears from the server what a connection does.
func (in *Limiter) state(c net.Conn, s http.ConnState) {
	in.mu.Lock()
	defer in.mu.Unlock()
	e := in.open[raw(c)]
	if e == nil {
		return // it was evicted
	}
	switch s {
	case http.StateActive:
		if !e.probeOnly && e.place != nil {
			in.addresses[e.address].waiting.Remove(e.place)
			e.place = nil
		}
	case http.StateIdle:
		if !e.probeOnly && e.place == nil {
			e.place = in.addresses[e.address].waiting.PushBack(e)
		}
	case http.StateClosed, http.StateHijacked:
		in.drop(e)
	}
}

// addressOf is whom a connection counts for: an IPv4 address, or an IPv6
// network of 64 bits. All that has none counts for one.
func addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip
}
