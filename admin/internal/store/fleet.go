package store

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Instances keeps the leases of executors' instances.
type Instances interface {
	// RegisterInstances writes the instances with fresh leases, in one
	// transaction. A build that is new, or was not seen for BuildLastSeen, is
	// noted, and handlers that are new are added to the catalogue; those without
	// a build are merged into it each time. The same boot id updates the row it
	// made before (another node's session of the same process); of two in one
	// list the later one is what is written. The answers are in the order of the
	// list: one that cannot be written keeps no other one out. An error is
	// everybody's: the database does not answer.
	RegisterInstances(ctx context.Context, list []RegisterInstanceParams) ([]Registration, error)
	// RenewInstances extends the leases of live instances by ttl and their Quiet
	// from the database's now and writes their load; it returns the ids that it
	// renewed. An instance that is gone is not renewed. No lease is shortened.
	RenewInstances(ctx context.Context, renewals []InstanceRenewal, ttl time.Duration) (now time.Time, renewed []domain.InstanceID, err error)
	// WakeInstances notes that parked instances of these executors, of any
	// tenant, are wanted; those that are noted already stay as they are.
	WakeInstances(ctx context.Context, executors []domain.ExecutorID) error
	// ListWanted returns those of the instances that are parked and wanted. A
	// renewal that says that an instance is not parked forgets that it was wanted.
	ListWanted(ctx context.Context, ids []domain.InstanceID) ([]domain.InstanceID, error)
	// LeaveInstances ends instances that stopped cleanly, in one transaction. It
	// answers in the order of the list: nil, CodeNotFound, or why this one, or
	// all, could not be written.
	LeaveInstances(ctx context.Context, list []InstanceLeave) []error
	// SupersedeBoots ends the leases of older boots of the executor at once,
	// because their processes are dead. Executions whose results the
	// taken-over journal may hold wake in Grace, when these had time to arrive,
	// all others now.
	// All of the list go in one transaction; the answers are in its order.
	SupersedeBoots(ctx context.Context, list []SupersedeBootsParams) []SupersededBoots
	// ExpireInstances marks at most limit instances gone whose lease ran out.
	// Nothing happens when it is later than latest (nil = any), by which time
	// the database's clock is not believed: CodeClockJump.
	ExpireInstances(ctx context.Context, limit int, latest func() time.Time) ([]domain.Instance, error)
	// ListHeld returns which of the attempts occupy the instance, as far as the
	// database knows: offered to it, running there, or lingering. Their phases
	// do not matter.
	ListHeld(ctx context.Context, tenant domain.TenantID, instance domain.InstanceID, attempts []domain.Held) ([]domain.Held, error)
	// CountOnline returns the number of instances with a live lease.
	CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error)
}

// Executors keeps executors and their handler catalogue, and lists their instances.
type Executors interface {
	CreateExecutor(ctx context.Context, e domain.Executor) error // CodeConflict: the name is taken
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	ListExecutors(ctx context.Context, p ListExecutorsParams) ([]ExecutorSummary, error)

	FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error)
	ListInstances(ctx context.Context, p ListInstancesParams) ([]domain.Instance, error)
	// CountHeard returns the number of instances that are not domain.Silent: of
	// those that CountOnline counts, the ones that people are told are online.
	CountHeard(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error)
	ListHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Handler, error)
	FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error)
}

type ListExecutorsParams struct {
	Tenant domain.TenantID
	Query  string // part of the name
	After  string // name of the last one seen
	Limit  int
}

// ExecutorSummary is an executor with its counts.
type ExecutorSummary struct {
	domain.Executor
	Online   int // instances that are heard
	Total    int // instances not gone
	Handlers int
}

type RegisterInstanceParams struct {
	Instance domain.Instance // ID is used for a new row
	Handlers []domain.Handler
	// Build is what the instance registers; without a digest nothing is noted.
	Build domain.Build
	TTL   time.Duration
}

// Registration is the answer to one registration: the instance with its id, or
// why it is none. CodeNotFound: the tenant has no such executor.
type Registration struct {
	Instance domain.Instance
	Err      error
}

// InstanceRenewal is one heard heartbeat.
type InstanceRenewal struct {
	ID       domain.InstanceID
	Running  int
	Slots    int
	Draining bool
	// DrainingFor is how long it has been draining, as far as the caller heard.
	DrainingFor time.Duration
	Parked      bool
	Refusing    bool // it takes nothing for now: its journal cannot be written
	// Quiet is how much longer than others its lease lasts, because its next
	// heartbeat may come so much later; 0 for whoever runs something.
	Quiet time.Duration
}

// InstanceLeave is one instance that stopped cleanly.
type InstanceLeave struct {
	Tenant domain.TenantID
	ID     domain.InstanceID
	Reason string
}

// SupersededBoots are the instances that ended; Err is CodeUnavailable and the like.
type SupersededBoots struct {
	Ended []domain.InstanceID
	Err   error
}

type SupersedeBootsParams struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	BootIDs  []string
	Grace    time.Duration
	// Owed are the executions whose results follow; with OwedComplete, all.
	Owed         []domain.ExecutionID
	OwedComplete bool
}

// GraceOf is when the execution of a superseded boot has to be judged.
func (p SupersedeBootsParams) GraceOf(e domain.ExecutionID) time.Duration {
	if p.OwedComplete && !slices.Contains(p.Owed, e) {
		return 0
	}
	return p.Grace
}

type ListInstancesParams struct {
	Tenant      domain.TenantID
	Executor    domain.ExecutorID // 0 = all
	IncludeGone bool
	Limit       int
}
