package gateway

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// A session has a seat from its hello to its end. When a node comes back all of
// its executors do, and more registrations at once than can be done in time would
// each take longer than its executor waits: none would get in. So a session waits
// for a place among those that register, and is asked to come again when it has
// waited for too long.

// seatPatience is how long a session waits to register before it is asked to come
// again: half as long as its executor waits for the answer to its hello.
const seatPatience = proto.HelloTimeout / 2

// seat is a session's place on this node. What follows account is guarded by
// admission.mu.
type seat struct {
	// fixed
	admission *admission
	tenant    domain.TenantID
	account   *account      // what it shares with its tenant's other sessions
	ready     chan struct{} // closed when it may register

	since       time.Time // when it could
	registering bool
	left        bool
}

// seat returns a seat that may register. An error says which limit is reached, or
// asks to come again a little later.
func (a *admission) seat(ctx context.Context, tenant domain.TenantID) (*seat, error) {
	s, err := a.queueSeat(tenant)
	if err != nil {
		return nil, err
	}
	patience := time.NewTimer(seatPatience)
	defer patience.Stop()
	select {
	case <-s.ready:
		return s, nil
	case <-ctx.Done():
	case <-patience.C:
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.Index(a.queue, s)
	if at < 0 {
		return s, nil // just now
	}
	a.queue = slices.Delete(a.queue, at, at+1)
	a.leaveLocked(s)
	return nil, a.errOverloaded()
}

func (a *admission) queueSeat(tenant domain.TenantID) (*seat, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	shared := a.tenants[tenant]
	switch {
	case a.sessions >= a.limits.Sessions:
		return nil, domain.Errorf(domain.CodeRateLimited, "this node serves its maximum of %d sessions", a.limits.Sessions)
	case shared == nil:
		shared = newAccount()
		a.tenants[tenant] = shared
	case shared.sessions >= a.limits.SessionsPerTenant:
		return nil, domain.Errorf(domain.CodeRateLimited, "this node serves the maximum of %d sessions of one tenant", a.limits.SessionsPerTenant)
	}
	a.sessions++
	shared.sessions++
	s := &seat{admission: a, tenant: tenant, account: shared, ready: make(chan struct{})}
	a.queue = append(a.queue, s)
	a.nextLocked()
	return s, nil
}

// nextLocked lets those register who have waited longest, as far as there are
// places for their tenants.
func (a *admission) nextLocked() {
	all, ofTenant := a.concurrency.places()
	rest := a.queue[:0]
	for i, s := range a.queue {
		if a.registering >= all {
			rest = append(rest, a.queue[i:]...)
			break
		}
		if s.account.registering >= ofTenant {
			rest = append(rest, s)
			continue
		}
		a.registering++
		s.account.registering++
		s.registering, s.since = true, time.Now()
		close(s.ready)
	}
	clear(a.queue[len(rest):])
	if a.queue = rest; len(rest) == 0 {
		a.queue = nil // and with it the memory of what waited
	}
}

// registered is the event that the session has registered, or has given it up. A
// second call does nothing.
func (s *seat) registered() {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	s.admission.registeredLocked(s)
}

func (a *admission) registeredLocked(s *seat) {
	if !s.registering {
		return
	}
	s.registering = false
	a.registering--
	s.account.registering--
	a.concurrency.took(time.Since(s.since))
	a.nextLocked()
}

// leave gives the seat back. A second call does nothing.
func (s *seat) leave() {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	s.admission.leaveLocked(s)
}

func (a *admission) leaveLocked(s *seat) {
	a.registeredLocked(s)
	if s.left {
		return
	}
	s.left = true
	a.sessions--
	if s.account.sessions--; s.account.sessions == 0 && s.account.outstanding.TryAcquire(maxTenantOutstanding) {
		delete(a.tenants, s.tenant) // nothing of it is in memory any more
	}
}

const (
	// minRegistering and maxRegistering bound the sessions between their hello and
	// the end of their registration.
	minRegistering = 64
	maxRegistering = 1024
	// quickRegistration is how long one takes when there are not too many: a fifth
	// of what its executor waits.
	quickRegistration = time.Second
)

// concurrencyLimit finds out how many may register at once: one more with each that
// was quick, two less with each that was not. The zero value is minRegistering.
type concurrencyLimit struct{ more int }

// places is how many may register, and how many of one tenant, so that others find
// a place.
func (l *concurrencyLimit) places() (all, ofTenant int) {
	all = minRegistering + l.more
	return all, all - all/4
}

// took is the event that a registration has ended after so long.
func (l *concurrencyLimit) took(d time.Duration) {
	if d <= quickRegistration {
		l.more = min(l.more+1, maxRegistering-minRegistering)
	} else {
		l.more = max(l.more-2, 0)
	}
}

// Those who find no place are asked to come again each at a moment of its own, so
// many in a second: then they cost little, and no place stays empty.
const (
	retryRate = 400
	retryMin  = time.Second
	retryMax  = 15 * time.Second
)

// codeOverloaded exists only here; on the wire it is a limit.
const codeOverloaded domain.Code = "overloaded"

func (a *admission) errOverloaded() error {
	return &retryError{a.retryAfter(time.Now(), rand.Float64()), domain.Errorf(codeOverloaded, "many executors come in at once; it is tried again in a moment")}
}

// retryAfter is the pause for one more. Those for whom the next retryMax are full
// come at any moment of these.
func (a *admission) retryAfter(now time.Time, random float64) time.Duration {
	turn := a.retries.ReserveN(now, 1)
	wait := turn.DelayFrom(now)
	if wait > retryMax {
		turn.CancelAt(now)
		wait = time.Duration(random * float64(retryMax))
	}
	return wait + retryMin/10 + time.Duration(random*float64(retryMin))
}
