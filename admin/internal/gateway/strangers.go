package gateway

import (
	"container/heap"
	"container/list"
	"io"
	"net"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A connection is a stranger until its hello was judged. Whoever fills the places
// for strangers keeps nobody else out: when there is none left, a connection is
// closed that has not finished its hello, of the address that has most of them
// (docs/adr/0050).

// stranger is a connection that has a place before the handshake. What it has is
// guarded by door.mu.
type stranger struct {
	conn io.Closer // fixed
	from *neighbour
	// wait is its place in from.waits; nil: its hello is here and is being judged,
	// or it is no stranger any more.
	wait  *list.Element
	stage int
	since int64 // when it came to the stage, in stages that any came to
	ended bool  // it has no place any more
}

// The stages of a stranger whose hello is not here.
const (
	silent = iota // it has said nothing
	begun         // its first byte is here
)

// neighbour is all that comes from one address. It is guarded by door.mu.
type neighbour struct {
	address       netip.Addr
	open, pending int
	// waits are those of pending whose hello is not here, by stage, in the order in
	// which they came to it.
	waits [begun + 1]list.List
	// known: an executor was in from there lately. It stays as it is while anything
	// is pending, so that nobody's flood is favoured for the executor beside it.
	known bool
	at    int // in door.waiting[known]
}

func (n *neighbour) waiting() int { return n.waits[silent].Len() + n.waits[begun].Len() }

// oldest is whoever has to go first: silent ones before others, and of each the
// one that has waited longest.
func (n *neighbour) oldest() *stranger {
	for i := range n.waits {
		if e := n.waits[i].Front(); e != nil {
			return e.Value.(*stranger)
		}
	}
	return nil
}

// crowds are the addresses from which somebody waits; first is the one with most,
// of equals the one whose oldest has waited longest: else many addresses with one
// each would close the newest again and again. It is a heap.
type crowds []*neighbour

func (c crowds) Len() int { return len(c) }
func (c crowds) Less(i, j int) bool {
	if a, b := c[i].waiting(), c[j].waiting(); a != b {
		return a > b
	}
	return c[i].waiting() > 0 && c[i].oldest().since < c[j].oldest().since
}
func (c crowds) Swap(i, j int) { c[i], c[j] = c[j], c[i]; c[i].at, c[j].at = i, j }
func (c *crowds) Push(n any)   { n.(*neighbour).at = len(*c); *c = append(*c, n.(*neighbour)) }
func (c *crowds) Pop() any {
	last := len(*c) - 1
	n := (*c)[last]
	(*c)[last], *c = nil, (*c)[:last]
	return n
}

// kind is an index for what is kept apart by whether the address is known.
func kind(known bool) int {
	if known {
		return 1
	}
	return 0
}

// enter gives a new connection a place, for which another one may have to be
// closed; nil: there is none.
func (d *door) enter(address netip.Addr, conn io.Closer) *stranger {
	d.mu.Lock()
	n := d.from[address]
	if n == nil {
		n = &neighbour{address: address}
		d.from[address] = n
	}
	if n.pending == 0 {
		n.known = d.guests.has(address, time.Now())
	}
	gone, ok := d.roomLocked(n)
	if gone != nil {
		d.endLocked(gone)
		d.refused++
	}
	var s *stranger
	if ok {
		s = &stranger{conn: conn, from: n}
		n.open++
		n.pending++
		d.pending[kind(n.known)]++
		d.moveLocked(s, silent)
	} else {
		d.refused++
		d.tidy(n)
	}
	d.mu.Unlock()
	if gone != nil {
		_ = gone.conn.Close()
	}
	return s
}

// roomLocked reports whether there is a place for one more of an address, and who
// has to go for it. A quarter of the places is for known addresses alone.
func (d *door) roomLocked(n *neighbour) (gone *stranger, ok bool) {
	l := d.limits
	switch {
	case n.open >= l.PerAddress:
		return nil, false
	case n.pending >= l.PendingPerAddress:
		gone = n.oldest()
	case !n.known && d.pending[kind(false)] >= l.Pending-l.Pending/4:
		gone = d.busiestLocked(false)
	case d.pending[0]+d.pending[1] >= l.Pending:
		gone = d.busiestLocked(false, true)
	default:
		return nil, true
	}
	return gone, gone != nil
}

// busiestLocked is whoever goes first of the address with most, among these
// kinds; of equals the first kind's.
func (d *door) busiestLocked(kinds ...bool) *stranger {
	var most *neighbour
	for _, known := range kinds {
		if c := d.waiting[kind(known)]; len(c) > 0 && (most == nil || c[0].waiting() > most.waiting()) {
			most = c[0]
		}
	}
	if most == nil {
		return nil
	}
	return most.oldest()
}

// spoke is the event that the first byte of a stranger is here.
func (d *door) spoke(s *stranger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.wait != nil && s.stage == silent {
		d.moveLocked(s, begun)
	}
}

// asks is the event that its hello is here. It is not closed any more for others:
// what was asked about it would be wasted.
func (d *door) asks(s *stranger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moveLocked(s, -1)
}

// known is the event that its hello was judged, or that it has ended.
func (d *door) known(s *stranger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(s)
}

// leave forgets a connection.
func (d *door) leave(s *stranger) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(s)
	s.from.open--
	d.tidy(s.from)
}

// endLocked takes a stranger's place away; a second call does nothing.
func (d *door) endLocked(s *stranger) {
	if s.ended {
		return
	}
	s.ended = true
	d.moveLocked(s, -1)
	s.from.pending--
	d.pending[kind(s.from.known)]--
}

// moveLocked makes a stranger wait in a stage; -1 = in none.
func (d *door) moveLocked(s *stranger, stage int) {
	n := s.from
	before := n.waiting()
	if s.wait != nil {
		n.waits[s.stage].Remove(s.wait)
		s.wait = nil
	}
	if stage >= 0 {
		d.moves++
		s.stage, s.since, s.wait = stage, d.moves, n.waits[stage].PushBack(s)
	}
	c := &d.waiting[kind(n.known)]
	switch after := n.waiting(); {
	case before == 0 && after == 0:
	case before == 0:
		heap.Push(c, n)
	case after == 0:
		heap.Remove(c, n.at)
	default:
		heap.Fix(c, n.at)
	}
}

func (d *door) tidy(n *neighbour) {
	if n.open == 0 {
		delete(d.from, n.address)
	}
}

const (
	// guestFor is how long it is remembered that an executor was in.
	guestFor = time.Hour
	// maxGuests bounds the addresses that are remembered, about 150 bytes each, and
	// maxGuestsOfTenant those that the executors of one tenant were in from.
	maxGuests         = 8192
	maxGuestsOfTenant = 1024
)

// guests are the addresses from which executors were in lately. It is guarded by
// door.mu.
type guests struct {
	last *lru.Cache[netip.Addr, guest]
	of   map[domain.TenantID]int
}

type guest struct {
	tenant domain.TenantID // whose executor was first
	at     time.Time       // when one began or ended a session last
}

func newGuests() *guests {
	g := &guests{of: map[domain.TenantID]int{}}
	var err error
	g.last, err = lru.NewWithEvict(maxGuests, func(_ netip.Addr, one guest) {
		if g.of[one.tenant]--; g.of[one.tenant] == 0 {
			delete(g.of, one.tenant)
		}
	})
	if err != nil {
		panic(err) // a size that is not positive
	}
	return g
}

func (g *guests) has(address netip.Addr, now time.Time) bool {
	one, ok := g.last.Peek(address)
	return ok && now.Sub(one.at) < guestFor
}

// add remembers an address, unless its tenant has too many already.
func (g *guests) add(address netip.Addr, tenant domain.TenantID, now time.Time) {
	for {
		if _, one, ok := g.last.GetOldest(); !ok || now.Sub(one.at) < guestFor {
			break
		}
		g.last.RemoveOldest()
	}
	one, ok := g.last.Get(address)
	switch {
	case ok:
		tenant = one.tenant
	case g.of[tenant] >= maxGuestsOfTenant:
		return
	default:
		g.of[tenant]++
	}
	g.last.Add(address, guest{tenant, now})
}

// visited notes that an executor of a tenant is in from an address, or was.
func (d *door) visited(address netip.Addr, tenant domain.TenantID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests.add(address, tenant, time.Now())
}

// firstByte tells when the first byte comes.
type firstByte struct {
	net.Conn
	came func() // nil: it was told
}

func (c *firstByte) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.came != nil {
		c.came()
		c.came = nil
	}
	return n, err
}
