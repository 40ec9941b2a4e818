package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Lifetimes.
const (
	// AccessTTL is how long an access token is good for.
	AccessTTL = 10 * time.Minute
	// RefreshTTL is how long a session may rest; each refresh begins it anew.
	RefreshTTL = 7 * 24 * time.Hour
	// stateTTL is how long what is known of an account or key may be used
	// before the store is asked again: the delay of a revocation on other nodes.
	stateTTL = 4 * time.Second
	// touchInterval is how often the last use of API keys is written.
	touchInterval = 15 * time.Second
)

// cacheSize bounds the accounts, sessions and keys kept in memory, each.
const cacheSize = 4096

// How many API keys that the node does not know are looked up at once, and how
// many refresh tokens: half of the connections for reads that SQLite has, each.
// Looking for one that does not exist takes less than 0.1 ms.
const (
	lookupSlots  = 2
	lookupPlaces = 256
)

// Store is what this room asks of the database.
type Store interface {
	store.Accounts
	keyStore
	ClusterValue(ctx context.Context, key, initial string) (string, error)
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	// FindExecutorIDs returns the executors of these names that exist.
	FindExecutorIDs(ctx context.Context, tenant domain.TenantID, names []string) ([]domain.ExecutorID, error)
}

// Options configures a Service.
type Options struct {
	Store Store
	// DataDir holds the node's signing key.
	DataDir string
	// NewID makes ids for tokens and keys.
	NewID func() int64
	// Disabled reports whether a tenant is disabled: of it only platform administrators
	// are let in. nil: none is.
	Disabled func(domain.TenantID) bool
	// NotHere is why nobody of a tenant is let in, also no platform administrator: it
	// is moving, or lives in another cell; nil: it is here, or always.
	NotHere func(domain.TenantID) error
	Logger  *slog.Logger
}

// Service knows who asks. Create it with New, keep it going with Run. All
// methods are safe for concurrent use.
type Service struct {
	// fixed after construction
	store    Store
	dataDir  string
	newID    func() int64
	disabled func(domain.TenantID) bool
	notHere  func(domain.TenantID) error
	log      *slog.Logger
	cluster  string // a name that each cluster has of its own
	issuer   string
	hasher   *hasher
	// failures and familiar are the limits of guessing passwords; keyGate and
	// refreshGate bound what keys and tokens that nobody made ask of the database.
	failures             *failures
	names                *failures                  // of user names that were taken, by tenant
	familiar             *lru.Cache[pair, struct{}] // accounts at addresses that have logged in
	keyGate, refreshGate *gate
	keys                 *keyring
	users                *lru.Cache[accountKey, account]
	sessions             *lru.Cache[int64, session] // by family
	apiKeys              *lru.Cache[[32]byte, knownKey]
	// decoy is verified when there is no such user, so that the answer takes
	// as long as for one that exists.
	decoy string

	mu      sync.Mutex
	signing signingKey          // guarded by mu; replaced when it grows old
	touched map[int64]time.Time // guarded by mu: API keys used since the last flush
}

// New reads or makes the node's signing key, publishes its public half and
// learns those of the other nodes. It starts nothing.
func New(ctx context.Context, opt Options) (*Service, error) {
	if opt.Disabled == nil {
		opt.Disabled = func(domain.TenantID) bool { return false }
	}
	if opt.NotHere == nil {
		opt.NotHere = func(domain.TenantID) error { return nil }
	}
	s := &Service{
		disabled: opt.Disabled, notHere: opt.NotHere,
		store: opt.Store, dataDir: opt.DataDir, newID: opt.NewID, log: opt.Logger.With("component", "auth"),
		hasher: newHasher(), failures: newFailures(loginBurst, loginRefill), names: newFailures(namesBurst, namesRefill),
		keyGate: newGate(lookupSlots, lookupPlaces), refreshGate: newGate(lookupSlots, lookupPlaces),
		keys: newKeyring(opt.Store), touched: map[int64]time.Time{},
	}
	var err error
	if s.users, err = lru.New[accountKey, account](cacheSize); err != nil {
		return nil, fmt.Errorf("auth caches: %w", err)
	}
	if s.sessions, err = lru.New[int64, session](cacheSize); err != nil {
		return nil, fmt.Errorf("auth caches: %w", err)
	}
	if s.apiKeys, err = lru.New[[32]byte, knownKey](cacheSize); err != nil {
		return nil, fmt.Errorf("auth caches: %w", err)
	}
	if s.familiar, err = lru.New[pair, struct{}](maxFamiliar); err != nil {
		return nil, fmt.Errorf("auth caches: %w", err)
	}
	// Tokens name the cluster they were made for, so that those of a test
	// system open nothing in production even if a key was copied.
	cluster, err := newSecret("")
	if err != nil {
		return nil, err
	}
	if s.cluster, err = s.store.ClusterValue(ctx, "token_issuer", cluster[:16]); err != nil {
		return nil, fmt.Errorf("read token issuer: %w", err)
	}
	s.issuer = "carillon/" + s.cluster
	pad, err := GeneratePassword()
	if err != nil {
		return nil, err
	}
	if s.decoy, err = s.hasher.hash(ctx, "", pad); err != nil {
		return nil, err
	}
	if err := s.renewSigningKey(ctx); err != nil {
		return nil, err
	}
	return s, s.keys.load(ctx)
}

// Cluster is a name that each cluster has of its own: letters, digits, - and _. It is no
// secret.
func (s *Service) Cluster() string { return s.cluster }

// Run writes the last use of API keys and keeps the signing key published and
// young, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	touch := time.NewTicker(touchInterval)
	defer touch.Stop()
	publish := time.NewTicker(publishInterval)
	defer publish.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
			defer cancel()
			return s.flushTouched(ctx)
		case <-touch.C:
			if err := s.flushTouched(ctx); err != nil {
				s.log.Warn("last use of API keys not written, will try again", "err", err)
			}
		case <-publish.C:
			if err := s.renewSigningKey(ctx); err != nil {
				s.log.Warn("signing key not published, will try again", "err", err)
			}
		}
	}
}

// renewSigningKey publishes the node's key, after replacing it when it is old.
func (s *Service) renewSigningKey(ctx context.Context) error {
	now := time.Now()
	key, err := loadSigningKey(s.dataDir, now)
	if err != nil {
		return err
	}
	// First publish, then sign: no token is out before its key is known.
	if err := s.keys.publish(ctx, key, now); err != nil {
		return err
	}
	s.mu.Lock()
	s.signing = key
	s.mu.Unlock()
	return nil
}

func (s *Service) signingKey() signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signing
}
