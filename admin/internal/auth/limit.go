package auth

import (
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Limits of guessing. A bucket holds loginBurst tries and gets one more every
// loginRefill, so at most ten tries get through in any minute: five at once
// and five that grow back. Each try takes one from the account's bucket and
// one from the address's; a success gives both back, so that honest users and
// a whole office behind one address are not slowed down.
//
// The buckets are in memory: each node counts for itself, so N nodes let N
// times as many through, and a restart forgets. Both are small next to what a
// guesser needs, and no guess ever costs a write.
const (
	loginBurst  = 5
	loginRefill = 12 * time.Second

	// keyBurst bounds unknown API keys per address; each costs a read.
	keyBurst  = 60
	keyRefill = time.Second
)

// maxBuckets bounds the memory of one kind of bucket (about 100 bytes each).
// The least recently used go first; a guesser who floods them out has to
// spread over that many accounts and addresses.
const maxBuckets = 65_536

// LimitedError is a refusal because of too many tries.
type LimitedError struct {
	// After is when the next try has a chance.
	After time.Duration
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many attempts; try again in %d seconds", int(e.After/time.Second)+1)
}

// Unwrap gives the error its code.
func (e *LimitedError) Unwrap() error { return domain.Errorf(domain.CodeRateLimited, "%s", e.Error()) }

// buckets is a set of token buckets by key. Unlike x/time/rate it can give a
// token back after the fact, which a login that succeeded needs.
type buckets struct {
	burst  float64
	refill time.Duration

	mu   sync.Mutex
	byID *lru.Cache[string, *bucket] // guarded by mu
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newBuckets(burst int, refill time.Duration) *buckets {
	cache, err := lru.New[string, *bucket](maxBuckets)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &buckets{burst: float64(burst), refill: refill, byID: cache}
}

// take removes one token from key's bucket; when there is none it returns how
// long it takes until there is one.
func (b *buckets) take(key string, now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.filledLocked(key, now)
	if k.tokens < 1 {
		return time.Duration((1 - k.tokens) * float64(b.refill)), false
	}
	k.tokens--
	return 0, true
}

// giveBack returns one token.
func (b *buckets) giveBack(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.filledLocked(key, now)
	k.tokens = min(k.tokens+1, b.burst)
}

func (b *buckets) filledLocked(key string, now time.Time) *bucket {
	k, ok := b.byID.Get(key)
	if !ok {
		k = &bucket{tokens: b.burst, at: now}
		b.byID.Add(key, k)
	}
	if passed := now.Sub(k.at); passed > 0 {
		k.tokens = min(k.tokens+float64(passed)/float64(b.refill), b.burst)
		k.at = now
	}
	return k
}

// limits are the buckets of one Service.
type limits struct {
	accounts  *buckets
	addresses *buckets
	keys      *buckets
}

func newLimits() limits {
	return limits{
		accounts: newBuckets(loginBurst, loginRefill), addresses: newBuckets(loginBurst, loginRefill),
		keys: newBuckets(keyBurst, keyRefill),
	}
}

// takeLogin takes a try for the account and the address, or neither.
func (l limits) takeLogin(account, address string, now time.Time) error {
	if wait, ok := l.addresses.take(address, now); !ok {
		return &LimitedError{After: wait}
	}
	if wait, ok := l.accounts.take(account, now); !ok {
		l.addresses.giveBack(address, now)
		return &LimitedError{After: wait}
	}
	return nil
}

func (l limits) giveBackLogin(account, address string, now time.Time) {
	l.accounts.giveBack(account, now)
	l.addresses.giveBack(address, now)
}
