package gateway

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// DefaultSessions is how many sessions a node has at most.
const DefaultSessions = 20_000

// Limits bound what others can take of this node. Zero means the default, in
// brackets.
type Limits struct {
	// Pending are connections that have not authenticated yet [2048], and those
	// of one address [1024]: for what is beyond, those go that say nothing.
	Pending, PendingPerAddress int
	// Sessions of this node [DefaultSessions], and of one tenant [10,000].
	Sessions, SessionsPerTenant int
	// PerAddress are all connections from one address [12,000].
	PerAddress int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.Pending, 2048}, {&l.PendingPerAddress, 1024}, {&l.Sessions, DefaultSessions}, {&l.SessionsPerTenant, 10_000}, {&l.PerAddress, 12_000},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// admission decides who may take what of this node: for each connection, each
// hello and each session whether it is admitted, has to wait, or is refused and
// why (docs/adr/0064). It is safe for concurrent use.
type admission struct {
	// fixed after construction
	limits  Limits
	retries *rate.Limiter // moments at which those come again that found no place

	mu        sync.Mutex
	addresses map[netip.Addr]*address // guarded by mu: those with connections
	// pending are the connections that have not authenticated, by whether their
	// address is known (kind).
	pending [2]pending                   // guarded by mu
	tenants map[domain.TenantID]*account // guarded by mu: those with sessions, or with something outstanding of sessions that have ended
	history history                      // guarded by mu

	// See refusals.go. The first three count connections since the start: those that
	// were closed before their hello, were told no, or broke off in the handshake.
	unheard, refused, dropped int64     // guarded by mu
	refusals                  refusals  // guarded by mu
	lines                     allowance // guarded by mu: of the log about refused connections
	untold                    int       // guarded by mu: refused since the last of them

	// See seat.go.
	sessions    int              // guarded by mu
	registering int              // guarded by mu: sessions
	queue       []*seat          // guarded by mu: those that wait for that, in the order in which they came
	concurrency concurrencyLimit // guarded by mu
}

func newAdmission(l Limits, node string) *admission {
	return &admission{
		limits: l.withDefaults(), retries: rate.NewLimiter(retryRate, 1), addresses: map[netip.Addr]*address{}, tenants: map[domain.TenantID]*account{}, history: newHistory(),
		refusals: refusals{node: node, pending: map[refusalKey]*domain.Refusal{}},
	}
}

// pending are connections that have not authenticated.
type pending struct {
	count   int
	waiting fairSet[*candidate] // those whose hello is not here, by address
}

// candidate is a connection that has not authenticated. Whoever fills the places
// for these keeps nobody else out: when there is none left, a connection is closed
// that has not finished its hello (docs/adr/0050). What it has is guarded by
// admission.mu.
type candidate struct {
	entry[*candidate]
	conn  io.Closer // fixed
	from  *address  // fixed
	stage int
}

// The stages of a candidate; the first two are its ranks among those that wait.
const (
	silent  = iota // it has said nothing
	begun          // its first byte is here
	judging        // its hello is here: it is not closed for others, what was asked about it would be wasted
	judged         // it has authenticated, was refused, or has ended: it has no place any more
)

// address is all that comes from one address. It is guarded by admission.mu.
type address struct {
	ip            netip.Addr
	open, pending int
	waiting       owner[*candidate]
	// known: an executor was in from there lately. It stays as it is while anything
	// is pending, so that nobody's flood is favoured for the executor beside it.
	known bool
}

// kind is an index for what is kept apart by whether the address is known.
func kind(known bool) int {
	if known {
		return 1
	}
	return 0
}

// connect gives a new connection a place, for which another one may have to be
// closed; nil: there is none.
func (a *admission) connect(ip netip.Addr, conn io.Closer) *candidate {
	a.mu.Lock()
	n := a.addresses[ip]
	if n == nil {
		n = &address{ip: ip}
		a.addresses[ip] = n
	}
	if n.pending == 0 {
		n.known = a.history.knows(ip, time.Now())
	}
	gone, ok := a.placeOfLocked(n)
	if gone != nil {
		a.advanceLocked(gone, judged)
		a.closeUnheardLocked()
	}
	var c *candidate
	if ok {
		c = &candidate{conn: conn, from: n}
		c.value, c.owner = c, &n.waiting
		n.open++
		n.pending++
		p := &a.pending[kind(n.known)]
		p.count++
		p.waiting.put(&c.entry, silent)
	} else {
		a.closeUnheardLocked()
		a.tidyLocked(n)
	}
	a.mu.Unlock()
	if gone != nil {
		_ = gone.conn.Close()
	}
	return c
}

// placeOfLocked reports whether there is a place for one more of an address, and
// who has to go for it. A quarter of the places is for known addresses alone.
func (a *admission) placeOfLocked(n *address) (gone *candidate, ok bool) {
	l := a.limits
	var from *owner[*candidate]
	switch unknown, known := &a.pending[kind(false)], &a.pending[kind(true)]; {
	case n.open >= l.PerAddress:
		return nil, false
	case n.pending >= l.PendingPerAddress:
		from = &n.waiting
	case !n.known && unknown.count >= l.Pending-l.Pending/4:
		from = unknown.waiting.most()
	case unknown.count+known.count >= l.Pending:
		from = unknown.waiting.most()
		if other := known.waiting.most(); from == nil || other != nil && other.len() > from.len() {
			from = other
		}
	default:
		return nil, true
	}
	if from == nil || from.len() == 0 {
		return nil, false
	}
	return from.oldest().value, true
}

// advance moves a candidate to a later stage; to one that it has left it does
// nothing.
func (a *admission) advance(c *candidate, stage int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advanceLocked(c, stage)
}

func (a *admission) advanceLocked(c *candidate, stage int) {
	if stage <= c.stage {
		return
	}
	c.stage = stage
	p := &a.pending[kind(c.from.known)]
	if stage == begun {
		p.waiting.put(&c.entry, begun)
		return
	}
	p.waiting.remove(&c.entry)
	if stage == judged {
		p.count--
		c.from.pending--
	}
}

// disconnect forgets a connection.
func (a *admission) disconnect(c *candidate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.advanceLocked(c, judged)
	c.from.open--
	a.tidyLocked(c.from)
}

func (a *admission) tidyLocked(n *address) {
	if n.open == 0 {
		delete(a.addresses, n.ip)
	}
}

// What the sessions of one tenant may have of this node's memory together.
const (
	// maxTenantOutstanding are the bytes of results and steps that the database has not
	// taken yet.
	maxTenantOutstanding = 5 << 20
	// maxTenantFrames are the bytes of large frames that are being read, decoded
	// and handed on: a header of 8 bytes takes as much memory as it announces.
	maxTenantFrames = 5 << 20
	// tenantPace is how much of frames is read in a second, in bytes; each frame of
	// commands costs commandCost beside its size, so that there are 20,000 small
	// ones or 40 of the largest. Our SDK packs what has piled up into one.
	tenantPace  = 40 << 20
	commandCost = 2 << 10
	// maxTenantLogs are the bytes of log batches that are being read or stored.
	// 3 of the largest batches fit, or 12 small ones. Each counts at least smallLogs.
	maxTenantLogs = 3 << 20
	smallLogs     = 256 << 10
)

// account is what the sessions of one tenant share.
type account struct {
	outstanding *semaphore.Weighted // in bytes
	frames      *semaphore.Weighted // in bytes
	pace        *rate.Limiter       // in bytes
	logs        *semaphore.Weighted // in bytes
	// lookup is held while a large inventory is judged: one of a tenant's at a time,
	// because there are maxLookups places for all.
	lookup *semaphore.Weighted

	sessions, registering int // guarded by admission.mu
}

func newAccount() *account {
	return &account{
		outstanding: semaphore.NewWeighted(maxTenantOutstanding), frames: semaphore.NewWeighted(maxTenantFrames),
		pace: rate.NewLimiter(tenantPace, tenantPace),
		logs: semaphore.NewWeighted(maxTenantLogs), lookup: semaphore.NewWeighted(1),
	}
}

// plainAddress is the address of a connection without its port. It may be empty.
func plainAddress(a net.Addr) string {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	return from.Addr().Unmap().String()
}

// addressOf is where a connection comes from; of IPv6 the network of 64 bits,
// which is what one host has.
func addressOf(a net.Addr) netip.Addr {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
