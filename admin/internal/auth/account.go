package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// accountKey is a user in a tenant.
type accountKey struct {
	user   domain.UserID
	tenant domain.TenantID
}

// account is what is known of a user in a tenant, and since when.
type account struct {
	user  domain.User
	role  domain.Role
	scope domain.Scope
	at    time.Time
}

// account returns the user with the role in the tenant, at most stateTTL old.
// CodeUnauthenticated: gone, disabled or no longer a member.
func (s *Service) account(ctx context.Context, key accountKey) (account, error) {
	now := time.Now()
	if a, ok := s.users.Get(key); ok && now.Sub(a.at) < stateTTL {
		return a, nil
	}
	user, err := s.store.FindUser(ctx, key.user)
	if domain.Is(err, domain.CodeNotFound) {
		return account{}, errSessionOver()
	}
	if err != nil {
		return account{}, fmt.Errorf("find user: %w", err)
	}
	if user.Disabled {
		return account{}, errSessionOver()
	}
	m, err := s.membership(ctx, user, key.tenant)
	if err != nil {
		return account{}, err
	}
	if m.Role == "" {
		return account{}, errSessionOver()
	}
	a := account{user: user, role: m.Role, scope: m.Scope, at: now}
	s.users.Add(key, a)
	return a, nil
}

// membership returns what the user may do in the tenant; nothing if the user is no member.
func (s *Service) membership(ctx context.Context, user domain.User, tenant domain.TenantID) (domain.Membership, error) {
	if user.PlatformAdmin {
		return domain.Membership{TenantID: tenant, UserID: user.ID, Role: domain.RoleAdmin}, nil
	}
	memberships, err := s.store.ListMemberships(ctx, user.ID)
	if err != nil {
		return domain.Membership{}, fmt.Errorf("list memberships: %w", err)
	}
	for _, m := range memberships {
		if m.TenantID == tenant {
			return m, nil
		}
	}
	return domain.Membership{}, nil
}

// MayAdminister reports whether an account has the rights of an administrator in
// the tenant now.
func (s *Service) MayAdminister(ctx context.Context, user domain.UserID, tenant domain.TenantID) (bool, error) {
	a, err := s.account(ctx, accountKey{user: user, tenant: tenant})
	if domain.Is(err, domain.CodeUnauthenticated) {
		return false, nil
	}
	return err == nil && permissionsOf(a.role, a.scope)&domain.PermAdmin != 0, err
}

// session is what is known of a log-in, and since when.
type session struct {
	ended bool
	at    time.Time
}

// sessionEnded reports whether the log-in that an access token comes from has
// ended, by log-out or because a refresh token of it came twice; at most stateTTL
// old. 0 is a token of a node that did not write it yet.
func (s *Service) sessionEnded(ctx context.Context, family int64) (bool, error) {
	if family == 0 {
		return false, nil
	}
	now := time.Now()
	if one, ok := s.sessions.Get(family); ok && (one.ended || now.Sub(one.at) < stateTTL) {
		return one.ended, nil
	}
	ended, err := s.store.RefreshFamilyEnded(ctx, family)
	if err != nil {
		return false, fmt.Errorf("look whether the session has ended: %w", err)
	}
	s.sessions.Add(family, session{ended: ended, at: now})
	return ended, nil
}

// Forget drops what is known of a user, so that a change shows at once on
// this node.
func (s *Service) Forget(user domain.UserID) {
	for _, key := range s.users.Keys() {
		if key.user == user {
			s.users.Remove(key)
		}
	}
}

func errSessionOver() error {
	return domain.Errorf(domain.CodeUnauthenticated, "the session is over; log in again")
}

// permissionsOf are the rights of a role. A bounded scope leaves out rights about the whole
// tenant.
func permissionsOf(role domain.Role, scope domain.Scope) domain.Permission {
	if scope.Bounded() {
		return role.Permissions() &^ (domain.PermAdmin | domain.PermScript)
	}
	return role.Permissions()
}

// reaching finds the executors of an identity that is bound to some.
func (s *Service) reaching(ctx context.Context, id Identity) (Identity, error) {
	if !id.Scope.Bounded() {
		return id, nil
	}
	if id.Reach = domain.Within(); id.Permissions&^(domain.PermCall|domain.PermTimer) == 0 {
		return id, nil // calls and timers go by the names of the scope
	}
	ids, err := s.store.FindExecutorIDs(ctx, id.Tenant, id.Scope.Executors)
	if err != nil {
		return Identity{}, fmt.Errorf("find executors of scope: %w", err)
	}
	id.Reach = domain.Within(ids...)
	return id, nil
}

// identity puts an account into words.
func (a account) identity(tenant domain.TenantID) Identity {
	return Identity{
		Kind: KindUser, Tenant: tenant, User: a.user.ID, Name: a.user.Username,
		Role: a.role, Permissions: permissionsOf(a.role, a.scope), Scope: a.scope,
		PlatformAdmin: a.user.PlatformAdmin, MustChangePassword: a.user.MustChangePassword, Preferences: a.user.Preferences,
	}
}

// Membership is a tenant that a user may act in.
type Membership struct {
	Tenant domain.Tenant
	Role   domain.Role
}

// Memberships lists where the identity may go: its own tenant for an API key,
// every tenant for a platform admin.
func (s *Service) Memberships(ctx context.Context, id Identity) ([]Membership, error) {
	if id.Kind == KindAPIKey {
		t, err := s.store.FindTenant(ctx, id.Tenant)
		return []Membership{{Tenant: t, Role: id.Role}}, err
	}
	if id.PlatformAdmin {
		tenants, err := s.store.ListTenants(ctx)
		out := make([]Membership, 0, len(tenants))
		for _, t := range tenants {
			out = append(out, Membership{Tenant: t, Role: domain.RoleAdmin})
		}
		return out, err
	}
	memberships, err := s.store.ListMemberships(ctx, id.User)
	if err != nil {
		return nil, fmt.Errorf("list memberships: %w", err)
	}
	out := make([]Membership, 0, len(memberships))
	for _, m := range memberships {
		t, err := s.store.FindTenant(ctx, m.TenantID)
		if err != nil {
			return nil, fmt.Errorf("find tenant: %w", err)
		}
		out = append(out, Membership{Tenant: t, Role: m.Role})
	}
	return out, nil
}
