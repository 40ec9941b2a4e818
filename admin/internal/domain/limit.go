package domain

import "fmt"

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

const limitMessage = "the %s may have %d runs at once"

// LimitMessage says under which limit a run waits: the tenant's, or its
// executor's.
func LimitMessage(tenants bool, capacity int64) string {
	if tenants {
		return fmt.Sprintf(limitMessage, "tenant", capacity)
	}
	return fmt.Sprintf(limitMessage, "executor", capacity)
}

// ReadLimitMessage reads what LimitMessage has written; ok is false for all else.
func ReadLimitMessage(message string) (tenants bool, capacity int64, ok bool) {
	var whose string
	n, err := fmt.Sscanf(message, limitMessage, &whose, &capacity)
	return whose == "tenant", capacity, err == nil && n == 2 && (whose == "tenant" || whose == "executor")
}
