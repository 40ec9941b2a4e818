package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Prefixes let people and secret scanners see what they have found.
const (
	APIKeyPrefix    = "ck_"
	JoinTokenPrefix = "cjt_"
	// shownChars is how much of a secret lists show beside the prefix.
	shownChars = 6
)

// knownKey is an API key that was found, and when.
type knownKey struct {
	key domain.APIKey
	at  time.Time
}

// Authenticate turns what stands after "Bearer " into an identity. Codes:
// CodeUnauthenticated, CodeTokenExpired, CodeRateLimited.
func (s *Service) Authenticate(ctx context.Context, bearer, address string) (Identity, error) {
	if len(bearer) >= len(APIKeyPrefix) && bearer[:len(APIKeyPrefix)] == APIKeyPrefix {
		return s.authenticateKey(ctx, bearer, address)
	}
	c, err := s.verify(ctx, bearer)
	if err != nil {
		return Identity{}, err
	}
	user, err1 := domain.ParseID[domain.UserID](c.Subject)
	tenant, err2 := domain.ParseID[domain.TenantID](c.Tenant)
	if err1 != nil || err2 != nil {
		return Identity{}, errBadToken()
	}
	a, err := s.account(ctx, accountKey{user: user, tenant: tenant})
	if err != nil {
		return Identity{}, err
	}
	if a.user.SessionVersion != c.SessionVersion {
		return Identity{}, errSessionOver()
	}
	if err := s.notHere(tenant); err != nil {
		return Identity{}, err
	}
	if s.disabled(tenant) && !a.user.PlatformAdmin {
		return Identity{}, errTenantDisabled()
	}
	if ended, err := s.sessionEnded(ctx, c.Family); err != nil {
		return Identity{}, err
	} else if ended {
		return Identity{}, errSessionOver()
	}
	return s.reaching(ctx, a.identity(tenant))
}

func (s *Service) authenticateKey(ctx context.Context, secret, address string) (Identity, error) {
	if !looksLike(secret, APIKeyPrefix) {
		return Identity{}, errBadKey()
	}
	key, err := s.findKey(ctx, hashSecret(secret), address)
	if err != nil {
		return Identity{}, err
	}
	now := time.Now()
	switch {
	case !key.RevokedAt.IsZero():
		return Identity{}, errBadKey()
	case !key.ExpiresAt.IsZero() && now.After(key.ExpiresAt):
		return Identity{}, domain.Errorf(domain.CodeTokenExpired, "the API key has expired")
	}
	if err := s.notHere(key.TenantID); err != nil {
		return Identity{}, err
	}
	if s.disabled(key.TenantID) {
		return Identity{}, errTenantDisabled()
	}
	rights, scope := permissionsOf(key.Role, key.Scope), key.Scope
	if key.Owner != 0 {
		owner, err := s.account(ctx, accountKey{user: key.Owner, tenant: key.TenantID})
		if domain.Is(err, domain.CodeUnauthenticated) {
			return Identity{}, domain.Errorf(domain.CodeUnauthenticated, "the API key is not valid: the account that it belongs to is locked, or has left the tenant")
		}
		if err != nil {
			return Identity{}, err
		}
		rights &= permissionsOf(owner.role, owner.scope)
		both, ok := scope.Intersect(owner.scope)
		if scope = both; !ok {
			rights = 0
		}
	}
	s.mu.Lock()
	s.touched[key.ID] = now
	s.mu.Unlock()
	return s.reaching(ctx, Identity{
		Kind: KindAPIKey, Tenant: key.TenantID, APIKey: key.ID, Owner: key.Owner, Name: key.Name,
		Role: key.Role, Permissions: rights, Scope: scope,
	})
}

func (s *Service) findKey(ctx context.Context, hash [32]byte, address string) (domain.APIKey, error) {
	now := time.Now()
	k, known := s.apiKeys.Get(hash)
	if known && now.Sub(k.at) < stateTTL {
		return k.key, nil
	}
	// A key that was valid a moment ago need not wait behind those who guess.
	if !known {
		leave, err := s.keyGate.enter(ctx, addressGroup(address))
		if err != nil {
			return domain.APIKey{}, fmt.Errorf("wait for key: %w", err)
		}
		defer leave()
	}
	key, err := s.store.FindAPIKeyByHash(ctx, hash)
	if domain.Is(err, domain.CodeNotFound) || domain.Is(err, domain.CodeUnauthenticated) {
		s.apiKeys.Remove(hash)
		return key, errBadKey()
	}
	if err != nil {
		return key, fmt.Errorf("find API key: %w", err)
	}
	s.apiKeys.Add(hash, knownKey{key: key, at: now})
	return key, nil
}

func errTenantDisabled() error {
	return domain.Errorf(domain.CodeTenantDisabled, "the tenant is disabled; a platform administrator can enable it")
}

func errBadKey() error { return domain.Errorf(domain.CodeUnauthenticated, "the API key is not valid") }

// flushTouched writes when keys were used. What cannot be written is kept for
// the next time, unless a key was used again since.
func (s *Service) flushTouched(ctx context.Context) error {
	s.mu.Lock()
	used := s.touched
	s.touched = map[int64]time.Time{}
	s.mu.Unlock()
	if len(used) == 0 {
		return nil
	}
	if err := s.store.TouchAPIKeys(ctx, used); err != nil {
		s.mu.Lock()
		for id, at := range used {
			if _, newer := s.touched[id]; !newer {
				s.touched[id] = at
			}
		}
		s.mu.Unlock()
		return fmt.Errorf("touch API keys: %w", err)
	}
	return nil
}

// CreateAPIKey makes a key in the identity's tenant and returns its secret,
// which cannot be read again. The new key cannot do more than its maker, whose
// account it belongs to: it ends with the account's place in the tenant.
func (s *Service) CreateAPIKey(ctx context.Context, by Identity, name string, role domain.Role, expiresAt time.Time, scope domain.Scope) (domain.APIKey, string, error) {
	if !by.Scope.Contains(scope) {
		return domain.APIKey{}, "", domain.Errorf(domain.CodeDenied, "an API key cannot reach more executors than its maker")
	}
	if !by.May(role.Permissions()) || role.Permissions() == 0 {
		return domain.APIKey{}, "", domain.Errorf(domain.CodeDenied, "an API key cannot have more rights than its maker")
	}
	secret, err := newSecret(APIKeyPrefix)
	if err != nil {
		return domain.APIKey{}, "", err
	}
	key := domain.APIKey{
		ID: s.newID(), TenantID: by.Tenant, Name: name, Prefix: secret[:len(APIKeyPrefix)+shownChars],
		Hash: hashSecret(secret), Role: role, CreatedBy: by.Actor(), Owner: by.Account(), CreatedAt: now(), ExpiresAt: expiresAt,
		Scope: scope,
	}
	if err := s.store.CreateAPIKey(ctx, key); err != nil {
		return key, "", fmt.Errorf("create API key: %w", err)
	}
	return key, secret, nil
}

// RevokeAPIKey ends a key of the tenant; on this node at once.
func (s *Service) RevokeAPIKey(ctx context.Context, tenant domain.TenantID, id int64) error {
	if err := s.store.RevokeAPIKey(ctx, tenant, id); err != nil {
		return err
	}
	for _, hash := range s.apiKeys.Keys() {
		if k, ok := s.apiKeys.Peek(hash); ok && k.key.ID == id {
			s.apiKeys.Remove(hash)
		}
	}
	return nil
}

// JoinTokenParams describes a join token to make.
type JoinTokenParams struct {
	Executor  domain.ExecutorID
	Name      string
	ExpiresAt time.Time // zero = never
	MaxUses   int       // 0 = no limit
	NoJobs    bool      // what registers with it may declare no jobs
}

// CreateJoinToken makes a token with which instances of one executor register,
// and returns its secret, which cannot be read again.
func (s *Service) CreateJoinToken(ctx context.Context, by Identity, p JoinTokenParams) (domain.JoinToken, string, error) {
	secret, err := newSecret(JoinTokenPrefix)
	if err != nil {
		return domain.JoinToken{}, "", err
	}
	token := domain.JoinToken{
		ID: s.newID(), TenantID: by.Tenant, Executor: p.Executor, Name: p.Name,
		Prefix: secret[:len(JoinTokenPrefix)+shownChars], Hash: hashSecret(secret),
		CreatedBy: by.Actor(), CreatedAt: now(), ExpiresAt: p.ExpiresAt, MaxUses: p.MaxUses, NoJobs: p.NoJobs,
	}
	if err := s.store.CreateJoinToken(ctx, token); err != nil {
		return token, "", fmt.Errorf("create join token: %w", err)
	}
	return token, secret, nil
}

// VerifyJoinTokens checks join tokens before anything else is read from
// executors, and counts the registrations of new boots. The tokens decide about
// tenant and executor; the executors' names are only compared. An error is
// everybody's.
func (s *Service) VerifyJoinTokens(ctx context.Context, claims []domain.JoinClaim) ([]domain.JoinVerdict, error) {
	out := make([]domain.JoinVerdict, len(claims))
	var uses []store.JoinTokenUse
	var of []int // the claim of each use
	for i, c := range claims {
		if !looksLike(c.Secret, JoinTokenPrefix) {
			out[i].Err = domain.Errorf(domain.CodeUnauthenticated, "the join token is not valid")
			continue
		}
		uses, of = append(uses, store.JoinTokenUse{Hash: hashSecret(c.Secret), BootID: c.BootID, Executor: c.Executor}), append(of, i)
	}
	if len(uses) == 0 {
		return out, nil
	}
	used, err := s.store.UseJoinTokens(ctx, uses)
	if err != nil {
		return nil, err
	}
	for n, u := range used {
		out[of[n]] = verdictOn(&claims[of[n]], u)
	}
	return out, nil
}

func verdictOn(c *domain.JoinClaim, u store.UsedJoinToken) domain.JoinVerdict {
	switch {
	case u.Err != nil:
		return domain.JoinVerdict{Err: u.Err}
	case u.Executor == "":
		return domain.JoinVerdict{Err: domain.Errorf(domain.CodeUnauthenticated, "the join token's executor no longer exists")}
	case u.Executor != c.Executor:
		return domain.JoinVerdict{Err: domain.Errorf(domain.CodeDenied,
			"the join token is for another executor than %q; use that one's name, or make a token for %[1]q", c.Executor)}
	}
	return domain.JoinVerdict{Tenant: u.Token.TenantID, Executor: u.Token.Executor, NoJobs: u.Token.NoJobs}
}

// now is the creation time of new rows, in the precision of the store.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
