package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Session is what a login gives.
type Session struct {
	AccessToken string
	ExpiresAt   time.Time
	// RefreshToken is for a cookie that scripts cannot read.
	RefreshToken     string
	RefreshExpiresAt time.Time
	Identity         Identity
	Tenant           domain.Tenant
}

// LoginParams is a try to log in.
type LoginParams struct {
	Username string
	Password string
	// Tenant is a name or id; empty = the first one the user belongs to.
	Tenant string
	// Address is where it comes from, for the limits.
	Address string
}

// NormalUsername is the form in which user names are stored and compared.
func NormalUsername(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Login checks user name and password and begins a session.
// CodeUnauthenticated: wrong, whatever of it; CodeRateLimited (LimitedError):
// too many tries; CodeDenied: right, but not a member of that tenant.
func (s *Service) Login(ctx context.Context, p LoginParams) (Session, error) {
	user, err := s.tryPassword(ctx, NormalUsername(p.Username), p.Password, p.Address)
	if err != nil {
		return Session{}, err
	}
	tenant, err := s.chooseTenant(ctx, user, p.Tenant)
	if err != nil {
		return Session{}, err
	}
	return s.begin(ctx, user, tenant, s.newID())
}

// tryPassword checks a password under the limits: while the account has failed
// too often from that address nothing is looked up, and what is checked waits
// for its turn at a gate.
func (s *Service) tryPassword(ctx context.Context, username, password, address string) (domain.User, error) {
	from := pairOf(username, address)
	if err := s.failures.check(from, time.Now()); err != nil {
		return domain.User{}, err
	}
	gate, name := s.hasher.strangers, addressGroup(address)
	if s.familiar.Contains(from) {
		gate, name = s.hasher.known, string(from[:])
	}
	leave, err := gate.enter(ctx, name)
	if err != nil {
		return domain.User{}, fmt.Errorf("wait for password check: %w", err)
	}
	defer leave()
	// Again: those who went before, of the same pair, may have failed.
	if err := s.failures.check(from, time.Now()); err != nil {
		return domain.User{}, err
	}
	user, err := s.checkPassword(ctx, username, password)
	switch {
	case err == nil:
		s.familiar.Add(from, struct{}{})
	case domain.Is(err, domain.CodeUnauthenticated):
		s.failures.note(from, time.Now())
		s.log.Info("login refused", "user", username, "remote_ip", address)
	}
	return user, err
}

// checkPassword does the same work for every outcome.
func (s *Service) checkPassword(ctx context.Context, username, password string) (domain.User, error) {
	user, err := s.store.FindUserByName(ctx, username)
	if err != nil && !domain.Is(err, domain.CodeNotFound) {
		return user, fmt.Errorf("find user: %w", err)
	}
	known := err == nil
	phc := s.decoy
	if known && user.PasswordHash != "" {
		phc = user.PasswordHash
	}
	if len(password) > MaxPassword {
		password = password[:MaxPassword+1] // wrong in any case; bounds the work
	}
	ok, err := s.hasher.verify(phc, password)
	if err != nil {
		return user, fmt.Errorf("verify password: %w", err)
	}
	if !ok || !known || user.PasswordHash == "" || user.Disabled {
		return domain.User{}, domain.Errorf(domain.CodeUnauthenticated, "the user name or the password is wrong")
	}
	return user, nil
}

// chooseTenant finds the tenant that the user asked for, or the first one.
func (s *Service) chooseTenant(ctx context.Context, user domain.User, want string) (domain.Tenant, error) {
	list, err := s.Memberships(ctx, Identity{Kind: KindUser, User: user.ID, PlatformAdmin: user.PlatformAdmin})
	if err != nil {
		return domain.Tenant{}, err
	}
	if want == "" && user.PlatformAdmin {
		// Of all tenants, one where the platform admin is at home comes first.
		own, err := s.store.ListMemberships(ctx, user.ID)
		if err != nil {
			return domain.Tenant{}, fmt.Errorf("list memberships: %w", err)
		}
		if len(own) > 0 {
			want = own[0].TenantID.String()
		}
	}
	var out error // why not in the one that he wants
	for _, m := range list {
		if want != "" && m.Tenant.Name != want && m.Tenant.ID.String() != want {
			continue
		}
		if out = s.closed(user, m.Tenant); out == nil {
			return m.Tenant, nil
		}
	}
	if out != nil {
		return domain.Tenant{}, out
	}
	if want == "" {
		return domain.Tenant{}, domain.Errorf(domain.CodeDenied, "the user belongs to no tenant")
	}
	return domain.Tenant{}, domain.Errorf(domain.CodeDenied, "the user does not belong to the tenant %q", want)
}

// closed is why nobody can log in to a tenant; nil: people can.
func (s *Service) closed(user domain.User, tenant domain.Tenant) error {
	if tenant.State >= domain.TenantMoving {
		if err := s.notHere(tenant.ID); err != nil {
			return err
		}
		return domain.TenantMoving.NotHere(nil) // this node has not heard yet of where it goes
	}
	if tenant.State > domain.TenantEnabled && !user.PlatformAdmin {
		return errTenantDisabled()
	}
	return nil
}

// begin makes the tokens of a session. family ties the refresh tokens of one
// login together.
func (s *Service) begin(ctx context.Context, user domain.User, tenant domain.Tenant, family int64) (Session, error) {
	m, err := s.membership(ctx, user, tenant.ID)
	if err != nil {
		return Session{}, err
	}
	now := time.Now()
	access, expiresAt, err := s.issue(user, tenant.ID, family, now)
	if err != nil {
		return Session{}, err
	}
	refresh, err := newSecret("")
	if err != nil {
		return Session{}, err
	}
	token := domain.RefreshToken{
		Hash: hashSecret(refresh), Family: family, UserID: user.ID, TenantID: tenant.ID,
		SessionVersion: user.SessionVersion, ExpiresAt: now.Add(RefreshTTL),
	}
	domain.AuditOf(ctx).SignedIn(tenant.ID, user.ID, user.Username)
	if err := s.store.CreateRefreshToken(ctx, token); err != nil {
		return Session{}, fmt.Errorf("create refresh token: %w", err)
	}
	a := account{user: user, role: m.Role, scope: m.Scope, at: now}
	return Session{
		AccessToken: access, ExpiresAt: expiresAt, RefreshToken: refresh, RefreshExpiresAt: token.ExpiresAt,
		Identity: a.identity(tenant.ID), Tenant: tenant,
	}, nil
}

// Refresh exchanges a refresh token for a new session. A token that was used
// before ends the whole session: one of the two who have it stole it.
func (s *Service) Refresh(ctx context.Context, token, address string) (Session, error) {
	used, err := s.use(ctx, token, address)
	if err != nil {
		return Session{}, err
	}
	user, err := s.store.FindUser(ctx, used.UserID)
	if err != nil && !domain.Is(err, domain.CodeNotFound) {
		return Session{}, fmt.Errorf("find user: %w", err)
	}
	if err != nil || user.Disabled || user.SessionVersion != used.SessionVersion {
		return Session{}, errSessionOver()
	}
	m, err := s.membership(ctx, user, used.TenantID)
	if err != nil {
		return Session{}, err
	}
	if m.Role == "" {
		return Session{}, errSessionOver()
	}
	tenant, err := s.store.FindTenant(ctx, used.TenantID)
	if err != nil {
		return Session{}, fmt.Errorf("find tenant: %w", err)
	}
	if err := s.closed(user, tenant); err != nil {
		return Session{}, err
	}
	return s.begin(ctx, user, tenant, used.Family)
}

// refreshGrace is how long after its use a refresh token may come a second
// time: from another tab of the same browser, or from a page that was left
// before the answer arrived. A thief would have to be as quick.
const refreshGrace = 10 * time.Second

func (s *Service) use(ctx context.Context, token, address string) (domain.RefreshToken, error) {
	if !looksLike(token, "") {
		return domain.RefreshToken{}, errSessionOver()
	}
	leave, err := s.refreshGate.enter(ctx, addressGroup(address))
	if err != nil {
		return domain.RefreshToken{}, fmt.Errorf("wait for refresh: %w", err)
	}
	defer leave()
	used, err := s.store.UseRefreshToken(ctx, hashSecret(token), refreshGrace)
	switch {
	case domain.Is(err, domain.CodeUnauthenticated):
		s.log.Warn("refresh token refused: unknown, or used before")
		return used, errSessionOver()
	case domain.Is(err, domain.CodeTokenExpired):
		return used, errSessionOver()
	case err != nil:
		return used, fmt.Errorf("use refresh token: %w", err)
	}
	return used, nil
}

// Logout ends the session that the refresh token belongs to, with its access
// tokens: on this node at once, on others after stateTTL. An unknown token is no
// error: the session is over either way.
func (s *Service) Logout(ctx context.Context, token, address string) error {
	audit := domain.AuditOf(ctx)
	used, err := s.use(domain.WithAudit(ctx, nil), token, address) // the entry is that of the revocation
	if domain.Is(err, domain.CodeUnauthenticated) {
		audit.Drop()
		return nil
	}
	if err != nil {
		return err
	}
	user, err := s.store.FindUser(ctx, used.UserID)
	if err != nil && !domain.Is(err, domain.CodeNotFound) {
		return fmt.Errorf("find user: %w", err)
	}
	audit.SignedIn(used.TenantID, used.UserID, user.Username)
	if err := s.store.RevokeRefreshFamily(ctx, used.Family); err != nil {
		return fmt.Errorf("revoke session: %w", err)
	}
	s.sessions.Add(used.Family, session{ended: true, at: time.Now()})
	return nil
}

// SwitchTenant begins a session of the same user in another tenant.
func (s *Service) SwitchTenant(ctx context.Context, id Identity, tenant string) (Session, error) {
	user, err := s.person(ctx, id)
	if err != nil {
		return Session{}, err
	}
	to, err := s.chooseTenant(ctx, user, tenant)
	if err != nil {
		return Session{}, err
	}
	return s.begin(ctx, user, to, s.newID())
}

// person returns the user behind the identity; an API key is none.
func (s *Service) person(ctx context.Context, id Identity) (domain.User, error) {
	if id.Kind != KindUser {
		return domain.User{}, domain.Errorf(domain.CodeDenied, "only a user can do this, not an API key")
	}
	user, err := s.store.FindUser(ctx, id.User)
	if err != nil {
		return user, fmt.Errorf("find user: %w", err)
	}
	return user, nil
}

// ChangePassword sets a new password. All sessions of the user end; the one
// returned takes the place of the caller's.
func (s *Service) ChangePassword(ctx context.Context, id Identity, current, next, address string) (Session, error) {
	user, err := s.person(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if err := CheckPassword("body.new", user.Username, next); err != nil {
		return Session{}, err
	}
	if _, err := s.tryPassword(ctx, user.Username, current, address); err != nil {
		if domain.Is(err, domain.CodeUnauthenticated) {
			return Session{}, domain.Invalid("body.current", "is not the current password")
		}
		return Session{}, err
	}
	if current == next {
		return Session{}, domain.Invalid("body.new", "must differ from the current password")
	}
	if user, err = s.SetPassword(ctx, user, next, false, 0); err != nil {
		return Session{}, err
	}
	tenant, err := s.store.FindTenant(ctx, id.Tenant)
	if err != nil {
		return Session{}, fmt.Errorf("find tenant: %w", err)
	}
	return s.begin(ctx, user, tenant, s.newID())
}

// SetPreferences replaces what a user chose for the pages. CodeDenied: an API key asks.
func (s *Service) SetPreferences(ctx context.Context, id Identity, p domain.Preferences) error {
	if id.Kind != KindUser {
		return domain.Errorf(domain.CodeDenied, "an API key has no preferences: sign in as a user")
	}
	if err := s.store.SetPreferences(ctx, id.User, p); err != nil {
		return fmt.Errorf("set preferences: %w", err)
	}
	s.Forget(id.User)
	return nil
}

// SetPassword writes a new password and ends all sessions of the user. With
// mustChange the user has to choose another one at the next login. only is the
// tenant on whose word it is done, or 0 (store.UpdateUser).
func (s *Service) SetPassword(ctx context.Context, user domain.User, password string, mustChange bool, only domain.TenantID) (domain.User, error) {
	phc, err := s.hasher.hash(ctx, user.ID.String(), password)
	if err != nil {
		return user, err
	}
	user.PasswordHash, user.MustChangePassword = phc, mustChange
	user.SessionVersion++
	if err := s.store.UpdateUser(ctx, user, only); err != nil {
		return user, fmt.Errorf("update user: %w", err)
	}
	s.Forget(user.ID)
	s.log.Info("password changed", "user", user.Username)
	return user, nil
}

// HashPassword returns what is stored of a password that an administrator of the
// tenant has chosen for somebody.
func (s *Service) HashPassword(ctx context.Context, tenant domain.TenantID, password string) (string, error) {
	return s.hasher.hash(ctx, tenant.String(), password)
}
