package gateway

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// Limits bound what others can take of this node. Zero means the default, in
// brackets.
type Limits struct {
	// Pending are connections that have not authenticated yet [2048], and those
	// of one address [1024]: for what is beyond, those go that say nothing.
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

// door counts connections by where they come from, and sessions by whose they are.
type door struct {
	limits Limits // fixed after construction
	pace   pace

	mu       sync.Mutex
	pending  [2]int                       // guarded by mu: strangers, by kind of address
	waiting  [2]crowds                    // guarded by mu: addresses of those whose hello is not here
	moves    int64                        // guarded by mu: stages that strangers came to
	from     map[netip.Addr]*neighbour    // guarded by mu
	guests   *guests                      // guarded by mu
	tenants  map[domain.TenantID]int      // guarded by mu: sessions
	accounts map[domain.TenantID]*account // guarded by mu: of tenants with sessions, or with debts that they left
	coming   map[domain.TenantID]int      // guarded by mu: sessions that are about to register
	all      int                          // guarded by mu: of all tenants
	queue    []*arrival                   // guarded by mu: in the order in which they came
	refused  int64                        // guarded by mu: connections closed unheard
}

func newDoor(l Limits) *door {
	return &door{
		limits: l.withDefaults(), from: map[netip.Addr]*neighbour{}, guests: newGuests(),
		tenants: map[domain.TenantID]int{}, accounts: map[domain.TenantID]*account{}, coming: map[domain.TenantID]int{},
	}
}

// What the sessions of one tenant may have of this node's memory together.
const (
	// maxTenantOwed are the bytes of results and steps that the database has not
	// taken yet.
	maxTenantOwed = 8 << 20
	// maxTenantFrames are the bytes of large frames that are being read, decoded
	// and handed on: a header of 8 bytes takes as much memory as it announces.
	maxTenantFrames = 8 << 20
	// tenantPace is how much of frames is read in a second, in bytes; each frame of
	// commands costs commandCost beside its size, so that there are 20,000 small
	// ones or 40 of the largest. Our SDK packs what has piled up into one.
	tenantPace  = 40 << 20
	commandCost = 2 << 10
	// maxTenantLogs are the bytes of log batches that are being read or stored:
	// 4 of the largest, or 16, of which each counts at least smallLogs.
	maxTenantLogs = 4 << 20
	smallLogs     = 256 << 10
)

// account is what the sessions of one tenant share.
type account struct {
	owed   *semaphore.Weighted // in bytes
	frames *semaphore.Weighted // in bytes
	pace   *rate.Limiter       // in bytes
	logs   *semaphore.Weighted // in bytes
	// asks holds a token while a large inventory is judged: one of a tenant's at a
	// time, because there are maxEntering places for all.
	asks chan struct{}
}

func newAccount() *account {
	return &account{
		owed: semaphore.NewWeighted(maxTenantOwed), frames: semaphore.NewWeighted(maxTenantFrames),
		pace: rate.NewLimiter(tenantPace, tenantPace),
		logs: semaphore.NewWeighted(maxTenantLogs), asks: make(chan struct{}, 1),
	}
}

// seat counts a tenant's session, and returns what it shares with the tenant's
// others; free gives its place back. An error says which limit is reached.
func (d *door) seat(tenant domain.TenantID) (shared *account, free func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := 0
	for _, n := range d.tenants {
		all += n
	}
	switch {
	case all >= d.limits.Sessions:
		return nil, nil, domain.Errorf(domain.CodeRateLimited, "this node serves its maximum of %d sessions", d.limits.Sessions)
	case d.tenants[tenant] >= d.limits.SessionsPerTenant:
		return nil, nil, domain.Errorf(domain.CodeRateLimited, "this node serves the maximum of %d sessions of one tenant", d.limits.SessionsPerTenant)
	}
	if d.accounts[tenant] == nil {
		d.accounts[tenant] = newAccount()
	}
	d.tenants[tenant]++
	return d.accounts[tenant], sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.tenants[tenant]--; d.tenants[tenant] == 0 {
			delete(d.tenants, tenant)
			if a := d.accounts[tenant]; a.owed.TryAcquire(maxTenantOwed) {
				delete(d.accounts, tenant) // nothing of it is in memory any more
			}
		}
	}), nil
}

// arrivePatience is how long a session waits for a place before it is asked to
// come again: half as long as its executor waits for the answer to its hello.
const arrivePatience = proto.HelloTimeout / 2

// arrival is a session that waits for its place.
type arrival struct {
	tenant domain.TenantID
	ready  chan struct{} // closed when it has it
}

// arrive counts a session that is about to register, when there is a place for
// it; arrived counts it no longer. An error asks to come again a little later.
func (d *door) arrive(ctx context.Context, tenant domain.TenantID) (arrived func(), err error) {
	own := &arrival{tenant, make(chan struct{})}
	d.mu.Lock()
	if len(d.queue) >= d.limits.Sessions {
		d.mu.Unlock()
		return nil, errCrowded()
	}
	d.queue = append(d.queue, own)
	d.placeLocked()
	d.mu.Unlock()
	patience := time.NewTimer(arrivePatience)
	defer patience.Stop()
	select {
	case <-own.ready:
	case <-ctx.Done():
		err = d.giveUp(own)
	case <-patience.C:
		err = d.giveUp(own)
	}
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return sync.OnceFunc(func() {
		d.pace.came(time.Since(began))
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all--
		if d.coming[tenant]--; d.coming[tenant] == 0 {
			delete(d.coming, tenant)
		}
		d.placeLocked()
	}), nil
}

// placeLocked gives places to those who have waited longest, as far as there
// are any for their tenants.
func (d *door) placeLocked() {
	all, ofTenant := d.pace.places()
	rest := d.queue[:0]
	for i, a := range d.queue {
		if d.all >= all {
			rest = append(rest, d.queue[i:]...)
			break
		}
		if d.coming[a.tenant] >= ofTenant {
			rest = append(rest, a)
			continue
		}
		d.all++
		d.coming[a.tenant]++
		close(a.ready)
	}
	clear(d.queue[len(rest):])
	if d.queue = rest; len(rest) == 0 {
		d.queue = nil // and with it the memory of a crowd
	}
}

// giveUp takes somebody out of the queue; it is too late when it has a place.
func (d *door) giveUp(own *arrival) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.Index(d.queue, own)
	if at < 0 {
		return nil
	}
	d.queue = slices.Delete(d.queue, at, at+1)
	return errCrowded()
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
