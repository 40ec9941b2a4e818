package gateway

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

const (
	// maxHistory bounds what is remembered, about 300 bytes each.
	maxHistory = 1 << 16
	// maxUnauthenticated bounds what is remembered of those of whom no tenant is known.
	maxUnauthenticated = 1024
	// knownFor is how long it is remembered that an executor was in from an address.
	knownFor = time.Hour
	// maxNames is how many executors and instances one address may name within
	// namesFor in refused hellos; those beyond are counted without their names.
	maxNames = 20
	namesFor = time.Hour
)

// An instance that comes and goes all the time costs database writes each time.
// Beyond flapStrikes short lives within flapWindow, further processes of its
// name are told to wait, before the database is asked anything.
const (
	flapLife    = 10 * time.Second // a process whose first session is shorter has a short life
	flapStrikes = 20
	flapWindow  = time.Minute
	// flapSilence is how long a name that was told of is not told of again.
	flapSilence = time.Hour
)

// subject is what is remembered: an address, or a digest of a name or a boot.
type subject struct {
	kind byte
	id   [16]byte
}

func addressSubject(ip netip.Addr) subject { return subject{'a', ip.As16()} }
func bootSubject(boot string) subject      { return digest('b', boot) }

// nameSubject names an instance before it is known who asks. The token is part of
// it, so that only those who were let in before can have it held.
func nameSubject(hello *proto.ClientHello, instance string) subject {
	return digest('n', hello.JoinToken, hello.Executor, instance)
}

func digest(kind byte, parts ...string) subject {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return subject{kind, [16]byte(sum[:16])}
}

// record is what is remembered of one subject. Of a boot it is that it has been
// in.
type record struct {
	entry[*record]
	subject subject
	tenant  domain.TenantID // whose it is; 0 = nobody has authenticated

	// Of an address: when an executor began or ended a session from there last, and
	// which names it has used in refused hellos since when.
	seenAt  time.Time
	names   []uint64 // hashes
	namedAt time.Time
	// Of a name: the ends of its last short lives, at most flapStrikes, and when it
	// was told of.
	lives  []time.Time
	toldAt time.Time
}

// heldFor is how long the processes of a name have to wait; 0 = they may come in.
func (r *record) heldFor(now time.Time) time.Duration {
	if len(r.lives) < flapStrikes {
		return 0
	}
	return max(0, r.lives[0].Add(flapWindow).Sub(now))
}

// history is what is remembered of those that came before, in memory only. When
// it is full the tenant that has most loses its oldest record, so that none fills
// it for the others. It is guarded by admission.mu.
type history struct {
	records map[subject]*record
	tenants map[domain.TenantID]*owner[*record]
	set     fairSet[*record]
	seed    maphash.Seed // fixed
}

func newHistory() history {
	return history{records: map[subject]*record{}, tenants: map[domain.TenantID]*owner[*record]{}, seed: maphash.MakeSeed()}
}

// note returns the record of a subject, which is the newest now. It stays the
// tenant's whose it was first.
func (h *history) note(tenant domain.TenantID, k subject) *record {
	r := h.records[k]
	if r == nil {
		r = &record{subject: k}
		r.value = r
	} else {
		if r.tenant != 0 {
			tenant = r.tenant
		}
		h.forget(r)
	}
	if of := h.tenants[tenant]; tenant == 0 && of != nil && of.len() >= maxUnauthenticated {
		h.forget(of.oldest().value)
	} else if len(h.records) >= maxHistory {
		h.forget(h.set.most().oldest().value)
	}
	if h.tenants[tenant] == nil {
		h.tenants[tenant] = &owner[*record]{}
	}
	r.tenant, r.owner = tenant, h.tenants[tenant]
	h.records[k] = r
	h.set.put(&r.entry, 0)
	return r
}

func (h *history) forget(r *record) {
	h.set.remove(&r.entry)
	delete(h.records, r.subject)
	if r.owner.len() == 0 {
		delete(h.tenants, r.tenant)
	}
}

// knows reports whether an executor was in from an address lately.
func (h *history) knows(ip netip.Addr, now time.Time) bool {
	r := h.records[addressSubject(ip)]
	return r != nil && !r.seenAt.IsZero() && now.Sub(r.seenAt) < knownFor
}

// mayName reports whether an address may use this name, too, in a refused hello.
func (h *history) mayName(ip netip.Addr, executor, instance string, now time.Time) bool {
	r := h.note(0, addressSubject(ip))
	if now.Sub(r.namedAt) >= namesFor {
		r.names, r.namedAt = nil, now
	}
	name := maphash.Comparable(h.seed, [2]string{executor, instance})
	if slices.Contains(r.names, name) {
		return true
	}
	if len(r.names) >= maxNames {
		return false
	}
	r.names = append(r.names, name)
	return true
}

// seen notes that an executor of a tenant is in from an address, or was.
func (a *admission) seen(ip netip.Addr, tenant domain.TenantID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history.note(tenant, addressSubject(ip)).seenAt = time.Now()
}

// codeFlapping exists only on the wire.
const codeFlapping domain.Code = "flapping"

// hold refuses a process of an instance name that flaps, before it is known who it
// is. A process that has been in is never held: it only connects anew, and its
// lease depends on it.
func (a *admission) hold(hello *proto.ClientHello, instance string, now time.Time) error {
	if hello.Purpose == proto.Purpose_PURPOSE_LOGS || instance == "" {
		return nil
	}
	name, boot := nameSubject(hello, instance), bootSubject(hello.BootId)
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.history.records[name]
	if r == nil || a.history.records[boot] != nil {
		return nil
	}
	wait := r.heldFor(now)
	if wait <= 0 {
		return nil
	}
	return &retryError{wait, domain.Errorf(codeFlapping,
		"processes named %q have come and gone %d times within %s; the next one may come in %s", instance, flapStrikes, flapWindow, wait.Round(time.Second))}
}

// lived notes how long a session has lasted; tell is true when that makes the name
// one to be told of. Each process counts once, so that a bad network is no flapping.
func (a *admission) lived(tenant domain.TenantID, hello *proto.ClientHello, instance string, life time.Duration, now time.Time) (tell bool) {
	name, boot := nameSubject(hello, instance), bootSubject(hello.BootId)
	a.mu.Lock()
	defer a.mu.Unlock()
	again := a.history.records[boot] != nil
	a.history.note(tenant, boot)
	if again || life >= flapLife {
		return false
	}
	r := a.history.note(tenant, name)
	if r.lives = append(r.lives, now); len(r.lives) > flapStrikes {
		r.lives = r.lives[1:]
	}
	if r.heldFor(now) <= 0 || !r.toldAt.IsZero() && now.Sub(r.toldAt) < flapSilence {
		return false
	}
	r.toldAt = now
	return true
}

// lived notes the end of a session, registered or not: the database was asked
// about it either way.
func (g *Gateway) lived(s *Session, p *peer) {
	now := time.Now()
	if s.Name == "" || !g.admission.lived(s.Tenant, p.hello, s.Name, now.Sub(s.began), now) {
		return
	}
	g.log.Warn("executor comes and goes; it is let in less often", "executor_id", s.Executor, "executor", p.name, "instance", s.Name,
		"short_lives", flapStrikes, "within", flapWindow)
	if g.opt.Flapping != nil {
		g.opt.Flapping(domain.Flapping{
			Tenant: s.Tenant, Executor: s.Executor, Name: p.name, Instance: s.Name, Strikes: flapStrikes, Within: flapWindow,
		})
	}
}
