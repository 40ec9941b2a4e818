package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Accounts keeps tenants, users and the secrets' hashes.
type Accounts interface {
	CreateTenant(ctx context.Context, t domain.Tenant) error // CodeConflict: the name is taken
	FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error)
	FindTenantByName(ctx context.Context, name string) (domain.Tenant, error)
	ListTenants(ctx context.Context) ([]domain.Tenant, error)
	// RenameTenant: CodeConflict: the name is taken. CodeRevisionMismatch: it is at
	// another version than ifVersion (0 = any).
	RenameTenant(ctx context.Context, id domain.TenantID, ifVersion int64, name string) (domain.Tenant, error)
	// SetTenantState disables and enables a tenant, deletes one that is disabled, and
	// restores a deleted one to disabled. CodeConflict: not from its state, or it is too
	// late to restore it.
	SetTenantState(ctx context.Context, p SetTenantStateParams) (domain.Tenant, error)

	// CreateFirstUser creates user, its tenant and the membership only if
	// there is no user at all; created tells whether it did. Several nodes may
	// call it at once; one of them creates.
	CreateFirstUser(ctx context.Context, t domain.Tenant, u domain.User, role domain.Role) (created bool, err error)
	// CreateUser creates an account with its places in tenants, of which there may be none for a
	// platform administrator. CodeConflict: the name is taken.
	CreateUser(ctx context.Context, u domain.User, places ...domain.Membership) error
	FindUser(ctx context.Context, id domain.UserID) (domain.User, error)
	FindUserByName(ctx context.Context, username string) (domain.User, error)
	ListMembers(ctx context.Context, tenant domain.TenantID) ([]Member, error)
	ListMemberships(ctx context.Context, user domain.UserID) ([]domain.Membership, error)
	SaveMembership(ctx context.Context, m domain.Membership) error
	// DeleteMembership takes a user out of the tenant and revokes the API keys
	// there that belong to the account. An account that belongs to
	// no tenant then is locked, unless it is a platform administrator's.
	DeleteMembership(ctx context.Context, tenant domain.TenantID, user domain.UserID) error
	// UpdateUser writes the mutable fields (hash, flags, session version). only
	// is the tenant on whose word it is done: CodeDenied when the account belongs
	// to another one too, or is a platform administrator's. 0: it is done on its
	// owner's word or a platform administrator's.
	UpdateUser(ctx context.Context, u domain.User, only domain.TenantID) error
	// SetPreferences replaces what a person chose for the pages.
	SetPreferences(ctx context.Context, user domain.UserID, p domain.Preferences) error

	CreateRefreshToken(ctx context.Context, t domain.RefreshToken) error
	// UseRefreshToken marks the token used and returns it. CodeTokenExpired
	// when it is over, CodeUnauthenticated when unknown. A token used before
	// revokes its family and gives CodeUnauthenticated, unless the first use is
	// younger than grace: two tabs, or a reload whose answer got lost.
	UseRefreshToken(ctx context.Context, hash [32]byte, grace time.Duration) (domain.RefreshToken, error)
	RevokeRefreshFamily(ctx context.Context, family int64) error
	// RefreshFamilyEnded reports whether tokens of the family were revoked.
	RefreshFamilyEnded(ctx context.Context, family int64) (bool, error)

	CreateAPIKey(ctx context.Context, k domain.APIKey) error
	FindAPIKeyByHash(ctx context.Context, hash [32]byte) (domain.APIKey, error)
	ListAPIKeys(ctx context.Context, tenant domain.TenantID) ([]domain.APIKey, error)
	RevokeAPIKey(ctx context.Context, tenant domain.TenantID, id int64) error
	TouchAPIKeys(ctx context.Context, used map[int64]time.Time) error

	CreateJoinToken(ctx context.Context, t domain.JoinToken) error
	FindJoinTokenByHash(ctx context.Context, hash [32]byte) (domain.JoinToken, error)
	ListJoinTokens(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.JoinToken, error)
	RevokeJoinToken(ctx context.Context, tenant domain.TenantID, id int64) error
	// UseJoinTokens finds valid tokens by hash and counts one use for each boot
	// that has not come with its token before. The answers are in the order of
	// the list; what one of them is refused is the others' no loss. An error is
	// everybody's: the database does not answer.
	UseJoinTokens(ctx context.Context, list []JoinTokenUse) ([]UsedJoinToken, error)
}

type SetTenantStateParams struct {
	ID        domain.TenantID
	IfVersion int64 // 0 = any
	State     domain.TenantState
	Note      string // why it is disabled
	// Grace is how long a deleted tenant can be restored. 0: not at all, and its secrets
	// go with the answer.
	Grace time.Duration
}

// JoinTokenUse is a boot that shows a join token.
type JoinTokenUse struct {
	Hash   [32]byte
	BootID string
	// Executor is the name that the boot comes by.
	Executor string
}

// UsedJoinToken is the answer to one use.
type UsedJoinToken struct {
	Token domain.JoinToken
	// Executor is the name of the token's, or the one that the boot comes by, if the
	// executor had it before; empty: it does not exist any more.
	Executor string
	// Err has CodeUnauthenticated: unknown, revoked or used up; or
	// CodeTokenExpired.
	Err error
}

// Member is a user with the role in one tenant, and the executors that it is bound to.
type Member struct {
	User  domain.User
	Role  domain.Role
	Scope domain.Scope
}
