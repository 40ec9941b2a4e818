package auth

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Names of what the first start makes.
const (
	FirstTenant = "default"
	FirstUser   = "admin"
)

// FirstAdmin is the outcome of EnsureFirstAdmin.
type FirstAdmin struct {
	// Created is false when there was a user already, also when another node
	// was quicker; then the rest is empty.
	Created  bool
	Username string
	// Password is shown once by the caller; it is empty when the operator had
	// given one.
	Password string
	Tenant   domain.TenantID
}

// EnsureFirstAdmin makes the tenant "default" and the platform admin "admin"
// if there is no user at all. password is what the operator chose; empty = a
// random one, which has to be changed at the first login.
func (s *Service) EnsureFirstAdmin(ctx context.Context, password string) (FirstAdmin, error) {
	chosen := password != ""
	if chosen {
		if err := CheckPassword("the first administrator's password", FirstUser, password); err != nil {
			return FirstAdmin{}, err
		}
	} else {
		var err error
		if password, err = GeneratePassword(); err != nil {
			return FirstAdmin{}, err
		}
	}
	phc, err := s.hasher.hash(ctx, "", password)
	if err != nil {
		return FirstAdmin{}, err
	}
	at := now()
	tenant := domain.Tenant{ID: domain.TenantID(s.newID()), Name: FirstTenant, CreatedAt: at}
	user := domain.User{
		ID: domain.UserID(s.newID()), Username: FirstUser, PasswordHash: phc, PlatformAdmin: true,
		MustChangePassword: !chosen, SessionVersion: 1, CreatedAt: at,
	}
	ctx = domain.WithAudit(ctx, domain.NewPendingAudit(domain.AuditEntry{
		Actor: "first start", Operation: "first-start", Outcome: domain.AuditDone,
		AuditObject: domain.AuditObject{Kind: "user", ID: user.ID.String(), Name: FirstUser},
	}))
	created, err := s.store.CreateFirstUser(ctx, tenant, user, domain.RoleAdmin)
	if err != nil {
		return FirstAdmin{}, fmt.Errorf("create first user: %w", err)
	}
	if !created {
		return FirstAdmin{}, nil
	}
	first := FirstAdmin{Created: true, Username: FirstUser, Tenant: tenant.ID}
	if !chosen {
		first.Password = password
	}
	s.log.Info("first administrator created", "user", FirstUser, "tenant_id", tenant.ID)
	return first, nil
}
