package auth

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Limits of guessing passwords. Only failures count, each for the account and
// the address that it came from together: a bucket holds loginBurst failures
// and forgets one every loginRefill, so that at most ten wrong passwords are
// checked in any minute, five at once and five that were forgotten. Nobody can
// use up the tries of an account that somebody else logs in to from elsewhere,
// nor those of another account behind the same address. What many accounts or
// many addresses cost together is bounded by the gates of password hashes.
//
// The buckets are in memory: each node counts for itself, so N nodes let N
// times as many through, and a restart forgets. Both are small next to what a
// guesser needs, and no guess ever costs a write.
const (
	loginBurst  = 5
	loginRefill = 12 * time.Second
)

// Limits of asking whether a user name is taken, of each tenant on each node. Names of
// other tenants' accounts are told by the refusal to make one of the same name.
const (
	namesBurst  = 10
	namesRefill = 5 * time.Minute
)

const (
	// maxFailures bounds the buckets in memory (about 150 bytes each). The least
	// recently used goes first; to push one out takes that many failures of
	// other pairs, and each costs the guesser a password hash.
	maxFailures = 65_536
	// maxFamiliar bounds the pairs that are known to have logged in (about 100
	// bytes each); the least recently used goes first.
	maxFamiliar = 16_384
)

// LimitedError is a refusal because of too many tries.
type LimitedError struct {
	// After is when the next try has a chance.
	After time.Duration
}

func (e *LimitedError) Error() string {
	return "too many attempts; try again in " + spelling.Count(int(e.After/time.Second)+1, "second", "")
}

// Unwrap gives the error its code.
func (e *LimitedError) Unwrap() error { return domain.Errorf(domain.CodeRateLimited, "%s", e.Error()) }

// pair is an account at an address, hashed: what a client sends is of any length.
type pair [16]byte

func pairOf(account, address string) pair {
	sum := sha256.Sum256([]byte(addressGroup(address) + "\x00" + account))
	return pair(sum[:16])
}

// addressGroup is the part of an address that one client can be held to: all of
// an IPv4 address, the network of 64 bits of an IPv6 one.
func addressGroup(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}

// failures are the token buckets of wrong passwords, or of names that were taken. It is
// safe for concurrent use.
type failures struct {
	// fixed after construction
	burst  float64
	refill time.Duration

	mu     sync.Mutex
	byPair *lru.Cache[pair, bucket] // guarded by mu
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newFailures(burst float64, refill time.Duration) *failures {
	cache, err := lru.New[pair, bucket](maxFailures)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &failures{burst: burst, refill: refill, byPair: cache}
}

// check returns a *LimitedError while the pair has failed too often.
func (f *failures) check(p pair, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.filledLocked(p, now); b.tokens < 1 {
		return &LimitedError{After: time.Duration((1 - b.tokens) * float64(f.refill))}
	}
	return nil
}

// note counts a failure.
func (f *failures) note(p pair, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.filledLocked(p, now)
	b.tokens = max(0, b.tokens-1)
	f.byPair.Add(p, b)
}

// filledLocked is the pair's bucket now. It makes no entry: only failures do.
func (f *failures) filledLocked(p pair, now time.Time) bucket {
	b, ok := f.byPair.Get(p)
	if !ok {
		return bucket{tokens: f.burst, at: now}
	}
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.tokens+float64(passed)/float64(f.refill), f.burst)
		b.at = now
	}
	return b
}

// MayAskNames returns a *LimitedError while the identity's tenant has asked for too many
// names of other tenants' accounts. Platform administrators may know them.
func (s *Service) MayAskNames(by Identity) error {
	if by.PlatformAdmin {
		return nil
	}
	return s.names.check(pairOf(by.Tenant.String(), ""), time.Now())
}

// NameWasTaken counts a name that is another tenant's.
func (s *Service) NameWasTaken(by Identity) {
	s.names.note(pairOf(by.Tenant.String(), ""), time.Now())
}
