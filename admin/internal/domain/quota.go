package domain

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// QuotaKind names what a tenant may have a bounded number of. The names are
// part of the API and of the database.
type QuotaKind string

// The kinds of quotas.
const (
	// QuotaJobs counts jobs that are not deleted, those for calls included.
	QuotaJobs QuotaKind = "jobs"
	// QuotaFires adds up, over all enabled jobs, the most that each schedule
	// fires in a minute: no minute has more fires than that. Its default protects the
	// other tenants. It has no effect while a tenant is alone (Quota.Alone).
	QuotaFires QuotaKind = "fires_per_minute"
	// QuotaExecutors counts executors.
	QuotaExecutors QuotaKind = "executors"
	// QuotaInstances counts instances that are not gone. It is held to within
	// what all nodes register in InstanceCountAge.
	QuotaInstances QuotaKind = "instances"
	// QuotaUsers counts members.
	QuotaUsers QuotaKind = "users"
	// QuotaAPIKeys counts API keys that are not revoked.
	QuotaAPIKeys QuotaKind = "api_keys"
	// QuotaTimers counts pending timers. It is held to within what is set at the
	// same time.
	QuotaTimers QuotaKind = "timers"
	// QuotaStoredBytes sums rows that stay until they are deleted or their time comes. These
	// are pending timers, revisions of jobs and scripts, versions of calendars, and
	// catalogues. Each row counts StoredRow more. Writes at the same time may together
	// exceed it.
	QuotaStoredBytes QuotaKind = "stored_bytes"
	// QuotaAPICalls bounds the API calls of a tenant that one node answers in a
	// second; half of it those of one API key. There is no count of it.
	QuotaAPICalls QuotaKind = "api_calls_per_second"
)

// QuotaKinds are all kinds, in the order in which they are shown.
var QuotaKinds = []QuotaKind{QuotaJobs, QuotaFires, QuotaExecutors, QuotaInstances, QuotaUsers, QuotaAPIKeys, QuotaTimers, QuotaStoredBytes, QuotaAPICalls}

// DefaultQuota is what a tenant gets for which nothing else was set.
func DefaultQuota(k QuotaKind) int64 {
	switch k {
	case QuotaJobs:
		return 10_000
	case QuotaFires:
		// 20,000 each second, more than a cluster does: 12,134 are the most that two cores
		// have done (docs/acceptance.md). So it stops mistakes and no use of the product.
		return 1_200_000
	case QuotaExecutors:
		return 1_000
	case QuotaInstances:
		return 20_000
	case QuotaUsers, QuotaAPIKeys:
		return 1_000
	case QuotaTimers:
		return 1_000_000
	case QuotaStoredBytes:
		return 1 << 30
	case QuotaAPICalls:
		return 2_000
	}
	return 0
}

// InstanceCountAge is how old the count of instances may be that a node goes by.
const InstanceCountAge = 5 * time.Second

const (
	// MaxQuota is the greatest that can be set, of all kinds but QuotaStoredBytes.
	MaxQuota = 100_000_000
	// MaxStoredBytes is that of QuotaStoredBytes, which JavaScript counts exactly.
	MaxStoredBytes = 1 << 50
	// StoredRow is what a row counts in QuotaStoredBytes beside its long columns, and
	// each label of a timer.
	StoredRow = 128
	// DocumentReserve is the part of QuotaStoredBytes (one in so many) that documents
	// may take beyond the quota, and timers may not.
	DocumentReserve = 8
)

// MaxHistory bounds the revisions of a job or a script, the versions of a calendar and
// the script policies of a tenant. The newest are kept, and older ones in use.
const MaxHistory = 200

// Bounds of rows that no quota counts.
const (
	// MaxJoinTokens bounds the valid tokens of an executor. As many of its newest
	// revoked or expired ones are kept.
	MaxJoinTokens = 500
	// MaxDenials bounds the denials of an executor.
	MaxDenials = 500
	// MaxRevokedAPIKeys is how many revoked keys of a tenant are kept, the newest ones.
	MaxRevokedAPIKeys = 200
)

// Most is the greatest that can be set of a kind.
func (k QuotaKind) Most() int64 {
	if k == QuotaStoredBytes {
		return MaxStoredBytes
	}
	return MaxQuota
}

// Quota is how much a tenant may have of a kind, and has. It stops growth only:
// a tenant that has more, because the quota was lowered, keeps it.
type Quota struct {
	Kind QuotaKind
	Max  int64 // 0 = no limit
	Used int64
	// Default: Max was not set for this tenant.
	Default bool
}

// Alone returns the quota of a tenant while no other enabled tenant has an enabled job.
// A default of fires protects nobody then, so there is no limit. Quotas that were set
// stay.
func (q Quota) Alone() Quota {
	if q.Kind == QuotaFires && q.Default {
		q.Max = 0
	}
	return q
}

// Check returns nil if by more fit, or else an Error with CodeQuotaExceeded.
func (q Quota) Check(by int64) error {
	if q.Max == 0 || by <= 0 || q.Used+by <= q.Max {
		return nil
	}
	text := q.Kind.text()
	if q.Kind == QuotaFires && q.Default {
		text += ". This default holds because another tenant has jobs"
	}
	err := Errorf(CodeQuotaExceeded, text+"; ask a platform administrator for a larger quota", q.Max, q.Used, by)
	err.Quota = &QuotaExcess{Quota: q, Asked: by}
	return err
}

// CheckQuotas is Check for several kinds at once. The error names all that would be
// exceeded, and its Quota is the first of them.
func CheckQuotas(quotas []Quota, by []int64) error {
	var first *Error
	var texts []string
	for i, q := range quotas {
		var excess *Error
		if err := q.Check(by[i]); errors.As(err, &excess) {
			first = cmp.Or(first, excess)
			texts = append(texts, fmt.Sprintf(q.Kind.text(), q.Max, q.Used, by[i]))
		}
	}
	if first == nil {
		return nil
	}
	err := Errorf(CodeQuotaExceeded, "%s; ask a platform administrator for a larger quota", strings.Join(texts, "; "))
	err.Quota = first.Quota
	return err
}

// text has the verbs for what may be had, is there and is asked for.
func (k QuotaKind) text() string {
	switch k {
	case QuotaJobs:
		return "the tenant may have %d jobs and has %d, this needs %d more: delete jobs that are not needed"
	case QuotaFires:
		return "the tenant's enabled schedules may fire %d times in a minute and are planned for %d, this needs %d more: pause jobs, or let them fire less often"
	case QuotaExecutors:
		return "the tenant may have %d executors and has %d, this needs %d more: delete executors that are not needed"
	case QuotaInstances:
		return "the tenant may have %d instances online and has %d, this needs %d more: stop some of them"
	case QuotaUsers:
		return "the tenant may have %d users and has %d, this needs %d more: remove users who have left"
	case QuotaAPIKeys:
		return "the tenant may have %d API keys and has %d, this needs %d more: revoke keys that are not used"
	case QuotaTimers:
		return "the tenant may have %d pending timers and has %d, this needs %d more: cancel timers that are not needed"
	case QuotaStoredBytes:
		return "the tenant may store %d bytes and stores %d, this needs %d more: cancel timers, or delete jobs, scripts and calendars, whose room is free when their history has gone"
	}
	return fmt.Sprintf("the tenant may have %%d of %s and has %%d, this needs %%d more", k)
}

// QuotaExcess is what was refused.
type QuotaExcess struct {
	Quota
	Asked int64
}

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

// MaxPageBytes bounds the large columns of one page of a list, in bytes: inputs,
// specifications, lines of a log. A page ends with the row that reaches it.
const MaxPageBytes = 1 << 20
