package domain

// LimitKey names whose runs a limit bounds: a tenant's, or those of one of its
// executors.
type LimitKey struct {
	Tenant   TenantID
	Executor ExecutorID // 0 = all of the tenant
}

// Limit bounds how many runs may be on instances (offered, running or
// cancelling) at once, on all nodes together. What is over it waits, in the
// order of precedence.
type Limit struct {
	LimitKey
	Max int // 0 = no limit
}

// MaxLimit is the greatest limit that can be set.
const MaxLimit = 100_000
