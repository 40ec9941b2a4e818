package domain

import (
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Names that are the same for the API and for what an operator declares in a file.
var (
	// TenantNames can stand in a URL and cannot be taken for an id.
	TenantNames = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$|^[a-z]$`)
	// UserNames are as they are compared: in small letters.
	UserNames = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,63}$`)
	// ExecutorNames can stand in configuration files and on a command line.
	ExecutorNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// Tenant is the isolation boundary; it owns jobs, executors, users and keys.
type Tenant struct {
	ID        TenantID
	Name      string
	State     TenantState // 0 counts as TenantEnabled where one is made
	Note      string      // why it is disabled
	Version   int64       // grows with each change of name and state
	CreatedAt time.Time
	// ChangedAt is when its state changed; zero = never.
	ChangedAt time.Time
	// DeleteAt is from when on a deleted tenant's rows go, and those that one has left
	// behind that lives in another cell.
	DeleteAt time.Time
	// Cell is where it lives or goes to, when that is another one; empty: here.
	Cell string
}

// TenantState is whether a tenant takes part.
type TenantState uint8

const (
	TenantEnabled TenantState = 1
	// TenantDisabled lets nobody in and starts nothing, until it is enabled again.
	TenantDisabled TenantState = 2
	// TenantDeleted is disabled, and its rows go after DeleteAt. Until then it can be
	// restored.
	TenantDeleted TenantState = 3
	// TenantMoving is on its way to or from another cell: it starts nothing, and who
	// asks is to ask again in a moment.
	TenantMoving TenantState = 4
	// TenantMoved lives in another cell: this one only says in which.
	TenantMoved TenantState = 5
)

func (s TenantState) String() string {
	switch s {
	case TenantDisabled:
		return "disabled"
	case TenantDeleted:
		return "deleted"
	case TenantMoving:
		return "moving"
	case TenantMoved:
		return "moved"
	default:
		return "enabled"
	}
}

// MovedTenantKept is how long a tenant's rows stay in the cell that it has left. Nodes
// there look for the runs that they moved last, and would miss younger ones
// (docs/adr/0019).
const MovedTenantKept = 24 * time.Hour

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
	Preferences    Preferences
	CreatedAt      time.Time
}

// Preferences are what a person chose for the pages, on each machine. Empty: nothing was chosen.
type Preferences struct {
	Language string `json:"language,omitempty" enum:"en,zh" doc:"Language of the pages; absent: as the browser says"`
	Theme    string `json:"theme,omitempty" enum:"system,light,dark" doc:"Colours of the pages; absent: as the system says"`
	Times    string `json:"times,omitempty" enum:"relative,local,utc" doc:"How lists write instants; absent: relative"`
}

// Membership gives a user a role in a tenant.
type Membership struct {
	TenantID TenantID
	UserID   UserID
	Role     Role
	// Scope bounds the role to executors.
	Scope Scope
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
	Scope    Scope
	// InvitedBy is who has invited, in words; Inviter is the account whose right
	// to do so must still be there when it is accepted.
	InvitedBy string
	Inviter   UserID
	CreatedAt time.Time
	ExpiresAt time.Time
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
	// Scope bounds the role to executors and, for calls and timers, to handlers.
	Scope Scope
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

// Cell is another cluster of the installation: it has nodes and a database of its own,
// and the tenants that live there (docs/adr/0088).
type Cell struct {
	Name string
	// URL is that of its API and console.
	URL string
	// Executors are the addresses of its executor ports, host:port.
	Executors []string
	CreatedAt time.Time
	CreatedBy string
}

// Bounds of cells.
const (
	MaxCells         = 1000
	MaxCellExecutors = 16
)

// CellNames are as those of tenants.
var CellNames = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$|^[a-z]$`)

// Check says what of a cell cannot be used. name is the location of the name, and below the one
// that the other fields are below, such as "body.".
func (c *Cell) Check(name, below string) error {
	if !CellNames.MatchString(c.Name) {
		return Invalid(name, "must be lower-case letters, digits and hyphens, beginning with a letter")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return Invalid(below+"url", "must be the address of API and console, such as https://eu2.carillon.example.com")
	}
	if len(c.Executors) == 0 || len(c.Executors) > MaxCellExecutors {
		return Invalid(below+"executors", "must be 1 to %d addresses of executor ports", MaxCellExecutors)
	}
	for _, address := range c.Executors {
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || strings.Contains(address, ",") || len(address) > 128 {
			return Invalid(below+"executors", "%q is not host:port", address)
		}
	}
	return nil
}

// NotHere is what becomes of a request of a tenant that is not, or not yet, in this
// cell; nil: it is here. cell is where it lives.
func (s TenantState) NotHere(cell *Cell) error {
	switch s {
	case TenantMoving:
		err := Errorf(CodeTenantMoving, "the tenant is moving to another cell; ask again in a moment")
		err.RetryAfter = time.Second
		return err
	case TenantMoved:
		err := Errorf(CodeTenantElsewhere, "the tenant lives in the cell %s: ask %s", cell.Name, cell.URL)
		err.Cell = cell
		return err
	}
	return nil
}
