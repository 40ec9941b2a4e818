package gateway

import (
	"net"
	"net/netip"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Limits bound what others can take of this node. Zero means the default, in
// brackets.
type Limits struct {
	// Pending are connections that have not authenticated yet [2048], and those
	// of one address [1024]: what is beyond is closed at once.
	Pending, PendingPerAddress int
	// Sessions of this node [20,000], and of one tenant [10,000].
	Sessions, SessionsPerTenant int
	// PerAddress are all connections from one address [12,000].
	PerAddress int
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.Pending, 2048}, {&l.PendingPerAddress, 1024}, {&l.Sessions, 20_000}, {&l.SessionsPerTenant, 10_000}, {&l.PerAddress, 12_000},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return l
}

// maxLogs bounds the log connections of one session; an honest one has one,
// and for a moment the one before.
const maxLogs = 4

// door counts connections by where they come from.
type door struct {
	limits Limits // fixed after construction

	mu      sync.Mutex
	pending int                       // guarded by mu
	from    map[netip.Addr]*neighbour // guarded by mu
	tenants map[domain.TenantID]int   // guarded by mu: sessions
	coming  map[domain.TenantID]int   // guarded by mu: sessions that are about to register
	refused int64                     // guarded by mu: connections closed unheard
}

type neighbour struct{ open, pending int }

func newDoor(l Limits) *door {
	return &door{limits: l.withDefaults(), from: map[netip.Addr]*neighbour{}, tenants: map[domain.TenantID]int{}, coming: map[domain.TenantID]int{}}
}

// enter counts a new connection; false when there are too many.
func (d *door) enter(address netip.Addr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.from[address]
	if n == nil {
		n = &neighbour{}
		d.from[address] = n
	}
	if d.pending >= d.limits.Pending || n.pending >= d.limits.PendingPerAddress || n.open >= d.limits.PerAddress {
		d.refused++
		d.tidy(address, n)
		return false
	}
	d.pending++
	n.pending++
	n.open++
	return true
}

// known counts a connection no longer among the strangers.
func (d *door) known(address netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending--
	d.from[address].pending--
}

// leave forgets a connection.
func (d *door) leave(address netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.from[address]
	n.open--
	d.tidy(address, n)
}

func (d *door) tidy(address netip.Addr, n *neighbour) {
	if n.open == 0 {
		delete(d.from, address)
	}
}

// seat counts a tenant's session; free gives its place back. An error says
// which limit is reached.
func (d *door) seat(tenant domain.TenantID) (free func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := 0
	for _, n := range d.tenants {
		all += n
	}
	switch {
	case all >= d.limits.Sessions:
		return nil, domain.Errorf(domain.CodeRateLimited, "this node serves its maximum of %d sessions", d.limits.Sessions)
	case d.tenants[tenant] >= d.limits.SessionsPerTenant:
		return nil, domain.Errorf(domain.CodeRateLimited, "this node serves the maximum of %d sessions of one tenant", d.limits.SessionsPerTenant)
	}
	d.tenants[tenant]++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.tenants[tenant]--; d.tenants[tenant] == 0 {
			delete(d.tenants, tenant)
		}
	}), nil
}

// maxComing bounds the sessions between their hello and the end of their
// registration, and those of one tenant among them. More would wait for the
// database for longer than their executors wait for an answer: of a crowd that
// comes at once, none would get in.
const (
	maxComing         = 64
	maxComingOfTenant = 48
)

// arrive counts a session that is about to register; arrived counts it no
// longer. An error asks to come again a little later.
func (d *door) arrive(tenant domain.TenantID) (arrived func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := 0
	for _, n := range d.coming {
		all += n
	}
	if all >= maxComing || d.coming[tenant] >= maxComingOfTenant {
		return nil, errCrowded()
	}
	d.coming[tenant]++
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.coming[tenant]--; d.coming[tenant] == 0 {
			delete(d.coming, tenant)
		}
	}), nil
}

func errCrowded() error {
	return domain.Errorf(codeCrowded, "many executors come in at once; it is tried again in a moment")
}

// turnedAway counts the connections that were closed unheard.
func (d *door) turnedAway() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
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
