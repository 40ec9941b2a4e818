package auth

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Kind tells people from programs.
type Kind string

const (
	KindUser   Kind = "user"
	KindAPIKey Kind = "api_key"
	// KindNode is a node that makes the documents of its provision file.
	KindNode Kind = "node"
)

// Provisioning is the identity of a node that makes the documents of its provision file in a
// tenant. 0: those of the cluster.
func Provisioning(tenant domain.TenantID) Identity {
	return Identity{
		Kind: KindNode, Tenant: tenant, Name: "provisioning", Role: domain.RoleAdmin, Permissions: domain.RoleAdmin.Permissions(), PlatformAdmin: true,
	}
}

// Identity is who asks, in which tenant, with which rights. The zero value is
// nobody.
type Identity struct {
	Kind   Kind
	Tenant domain.TenantID
	// User is set for KindUser, APIKey for KindAPIKey, and Owner is the account
	// that the key belongs to.
	User   domain.UserID
	APIKey int64
	Owner  domain.UserID
	// Name is the user's or the key's name.
	Name        string
	Role        domain.Role
	Permissions domain.Permission
	// Scope bounds the role to executors and, for calls and timers, to handlers.
	Scope domain.Scope
	// Reach is the executors of the scope that exist now.
	Reach domain.Reach
	// PlatformAdmin may manage tenants and acts as admin in each of them.
	PlatformAdmin bool
	// Via is the way that the request came, if it says so; "mcp": an assistant asks.
	Via string
	// MustChangePassword: everything but the change itself is refused.
	MustChangePassword bool
	// Preferences are those of a user.
	Preferences domain.Preferences
}

// Known reports whether there is anybody at all.
func (id Identity) Known() bool { return id.Kind != "" }

// May reports whether the identity has all the rights in p.
func (id Identity) May(p domain.Permission) bool { return id.Permissions&p == p }

// Account is the user who answers for what the identity does; 0: a key that has
// no owner.
func (id Identity) Account() domain.UserID {
	if id.Kind == KindAPIKey {
		return id.Owner
	}
	return id.User
}

// Actor is the name written into createdBy, requestedBy and the like.
func (id Identity) Actor() string {
	name := id.Name
	if id.Kind == KindAPIKey {
		name = "key:" + id.Name
	}
	if id.Via != "" {
		name += domain.Via + id.Via
	}
	return name
}

// LogValue keeps log lines short.
func (id Identity) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", id.Actor()), slog.Int64("tenant_id", int64(id.Tenant)))
}
