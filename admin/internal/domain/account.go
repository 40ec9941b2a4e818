package domain

import "time"

// Tenant is the isolation boundary; it owns jobs, executors, users and keys.
type Tenant struct {
	ID        TenantID
	Name      string
	CreatedAt time.Time
}

// User is a person. Rights stand in memberships.
type User struct {
	ID                 UserID
	Username           string
	PasswordHash       string // argon2id, PHC string
	PlatformAdmin      bool
	MustChangePassword bool
	Disabled           bool
	// SessionVersion grows when all sessions of the user must end.
	SessionVersion int64
	CreatedAt      time.Time
}

// Membership gives a user a role in a tenant.
type Membership struct {
	TenantID TenantID
	UserID   UserID
	Role     Role
}

// Bounds of invitations.
const (
	// MaxInvitations is how many a tenant may have open at once.
	MaxInvitations = 100
	// InvitationTTL is how long an account's owner has to answer.
	InvitationTTL = 7 * 24 * time.Hour
)

// Invitation offers an account a role in a tenant. Nothing changes until the
// account's owner accepts. The tenant sees the same whether there is an account
// of that name or not, and whether its owner has declined or has not answered.
type Invitation struct {
	ID       InvitationID
	TenantID TenantID
	Username string
	Role     Role
	// InvitedBy is who has invited, in words; Inviter is the account whose right
	// to do so must still be there when it is accepted.
	InvitedBy string
	Inviter   UserID
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Role is a fixed set of permissions.
type Role string

const (
	// RoleCaller may only call handlers, and see and cancel its own calls.
	RoleCaller   Role = "caller"
	RoleViewer   Role = "viewer"
	RoleOperator Role = "operator"
	RoleEditor   Role = "editor"
	RoleScripter Role = "scripter" // an editor who also writes what agents run
	RoleAdmin    Role = "admin"
)

// Permission is one right, as a bit.
type Permission uint32

const (
	PermRead    Permission = 1 << iota // see everything of the tenant but secrets
	PermOperate                        // run, pause, resume, cancel, retry
	PermEdit                           // create, edit, delete jobs and executors
	PermAdmin                          // users, API keys, join tokens
	PermScript                         // write scripts, which is to run programs where agents are
	PermCall                           // call handlers, and see and cancel one's own calls
)

// PermissionNames are the names in API answers, in bit order.
var PermissionNames = []string{"read", "operate", "edit", "admin", "script", "call"}

// Permissions returns the rights of a role; none for an unknown one.
func (r Role) Permissions() Permission {
	switch r {
	case RoleCaller:
		return PermCall
	case RoleViewer:
		return PermRead
	case RoleOperator:
		return PermRead | PermOperate | PermCall
	case RoleEditor:
		return PermRead | PermOperate | PermCall | PermEdit
	case RoleScripter:
		return PermRead | PermOperate | PermCall | PermEdit | PermScript
	case RoleAdmin:
		return PermRead | PermOperate | PermCall | PermEdit | PermAdmin | PermScript
	default:
		return 0
	}
}

// RefreshToken is one link in a chain of rotating tokens. Presenting a used
// one revokes the whole family.
type RefreshToken struct {
	Hash           [32]byte // SHA-256 of the secret
	Family         int64
	UserID         UserID
	TenantID       TenantID
	SessionVersion int64
	ExpiresAt      time.Time
	UsedAt         time.Time
}

// APIKey lets a program act in one tenant. Only a hash of it is stored.
type APIKey struct {
	ID        int64
	TenantID  TenantID
	Name      string
	Prefix    string
	Hash      [32]byte
	Role      Role
	CreatedBy string
	// Owner is the account that answers for the key, which can do no more than
	// the account may in the tenant, and ends when it leaves; 0: there is none.
	Owner      UserID
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero = never
	LastUsedAt time.Time
	RevokedAt  time.Time
	// CallExecutors are the executors, by name, whose handlers the key may
	// call; empty = all of the tenant.
	CallExecutors []string
}

// JoinToken lets instances of one executor register.
type JoinToken struct {
	ID        int64
	TenantID  TenantID
	Executor  ExecutorID
	Name      string
	Prefix    string
	Hash      [32]byte
	CreatedBy string
	CreatedAt time.Time
	ExpiresAt time.Time // zero = never
	MaxUses   int       // registrations of new boots; 0 = no limit
	Uses      int
	RevokedAt time.Time
	// NoJobs: what registers with it may declare no jobs.
	NoJobs bool
}

// SigningKey is the public half of a node's token-signing key; every node
// verifies the tokens of every other.
type SigningKey struct {
	ID        string // kid
	PublicKey []byte // Ed25519
	CreatedAt time.Time
	ExpiresAt time.Time
}
