package store

import "github.com/carillon-sched/carillon/admin/internal/domain"

// ProvisionParams is what an operator declares in a file (docs/adr/0074). Ids,
// tenants and times of what is in it are filled in.
type ProvisionParams struct {
	Tenants []ProvisionTenant
	Users   []ProvisionUser
	By      string // who is said to have made it
}

// ProvisionTenant is a tenant with what belongs to it.
type ProvisionTenant struct {
	Name string
	// Quotas are set where nothing was set for the tenant.
	Quotas    map[domain.QuotaKind]int64
	Executors []ProvisionExecutor
	APIKeys   []domain.APIKey
}

// ProvisionExecutor is an executor with tokens for its processes.
type ProvisionExecutor struct {
	Name, Description string
	JoinTokens        []domain.JoinToken
}

// ProvisionUser is an account with its places in tenants.
type ProvisionUser struct {
	User domain.User
	// Roles are by the tenants' names.
	Roles map[string]domain.Role
}

// ProvisionStep is what became of one thing that was declared.
type ProvisionStep struct {
	Kind   string // as people say it: "join token"
	Tenant string // its name; empty for users
	Name   string
	Made   bool
	// Left says why it is not as declared, and was left so; empty: it is.
	Left string
}
