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
	// ListDrained returns the instances, of all tenants, that are to take nothing new
	// because somebody wants it.
	ListDrained(ctx context.Context) ([]domain.InstanceID, error)
	// CountOnline returns the number of instances with a live lease.
	CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error)
}

// Executors keeps executors and their handler catalogue, and lists their instances.
type Executors interface {
	// CreateExecutor: CodeConflict: the name is taken. CodeInvalid: it is that of the
	// built-in one, which SetScriptPolicy makes.
	CreateExecutor(ctx context.Context, e domain.Executor) error
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	ListExecutors(ctx context.Context, p ListExecutorsParams) ([]ExecutorSummary, error)
	// FindExecutorIDs returns the executors of these names that exist. Former names are none.
	FindExecutorIDs(ctx context.Context, tenant domain.TenantID, names []string) ([]domain.ExecutorID, error)
	// InReach reports whether an object exists whose executor is one of a bounded reach.
	InReach(ctx context.Context, q domain.ReachQuery) (bool, error)
	// UpdateExecutor changes name, description and reach of callbacks, and adds one to the version. A
	// former name stays an alias, by which FindExecutorByName and join tokens know the
	// executor too, and API keys that are bound to it are bound to both. CodeConflict:
	// the name is taken or another one's alias, there are domain.MaxExecutorAliases, or
	// it is the built-in one. CodeRevisionMismatch: it is at another version.
	UpdateExecutor(ctx context.Context, p UpdateExecutorParams) (domain.Executor, error)
	// SetExecutorState disables or enables an executor; its jobs follow (ListJobsToHold).
	SetExecutorState(ctx context.Context, p SetExecutorStateParams) (domain.Executor, error)
	// ListDisabled lists disabled executors and tenants.
	ListDisabled(ctx context.Context) (Disabled, error)
	// ListJobsToHold lists enabled jobs of what is disabled, which are to be paused, and
	// jobs that were paused so and whose executor or tenant is enabled again; a limited
	// number of each (SetJobStateParams.Hold and Release).
	ListJobsToHold(ctx context.Context, limit int) (hold, release []HeldJob, err error)
	// ListBusyBoots tells which of the boots have a living instance that runs something.
	ListBusyBoots(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, boots []string) (map[string]bool, error)
	ListExecutorAliases(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) ([]string, error)
	// DeleteExecutorAlias frees a former name.
	DeleteExecutorAlias(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID, name string) error
	// ExecutorUse counts what an executor has.
	ExecutorUse(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (ExecutorUse, error)
	// DeleteExecutor deletes an executor that has no job, with its tokens, aliases,
	// denials, handlers, builds and proposals. CodeInUse: it has jobs, or instances that
	// are not to end. Its name is free then, and its row goes when no job and no run
	// names it (Retention).
	DeleteExecutor(ctx context.Context, p DeleteExecutorParams) error

	// RestoreExecutor brings an executor back that was deleted after an instant, enabled, with its
	// id, description, reach of callbacks and limit. CodeNotFound: there is no such one.
	// CodeConflict: its name is taken, or is a former one of another executor.
	RestoreExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID, since time.Time) (domain.Executor, error)
	// ListDeletedExecutors lists those that were deleted after an instant, the last deleted first.
	ListDeletedExecutors(ctx context.Context, p ListDeletedParams) ([]Deleted, error)

	FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error)
	ListInstances(ctx context.Context, p ListInstancesParams) ([]domain.Instance, error)
	// FillInstances reads labels and handlers of instances that were listed with Brief. It
	// returns how many of the first ones have them: the last one reaches
	// domain.MaxPageBytes.
	FillInstances(ctx context.Context, tenant domain.TenantID, list []domain.Instance) (int, error)
	// DrainInstance lets a process take nothing new, from a second later on, until it
	// is undone or the process ends; what it runs goes on. CodeConflict: it has gone.
	DrainInstance(ctx context.Context, p DrainInstanceParams) (domain.Instance, error)
	// ListLostInstances returns enabled executors with lost instances. Such an instance took
	// runs until its lease ran out, from domain.LostFor to domain.LostFor + domain.LostWindow
	// ago, and no instance of the same name has come since. Executors that have an outage,
	// or had one since the first of them was lost, are left out.
	ListLostInstances(ctx context.Context) ([]LostInstances, error)
	// ListConnected returns the instances of all tenants that hold a lease and take runs,
	// without nodes and parked ones; 10,000 at most.
	ListConnected(ctx context.Context) ([]domain.InstanceID, error)
	// CountHeard returns the number of instances that are not domain.Silent: of
	// those that CountOnline counts, the ones that people are told are online.
	CountHeard(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error)
	// ListHandlers returns handlers in the order of their names, without what they say of
	// calls.
	ListHandlers(ctx context.Context, p ListHandlersParams) (Page[domain.Handler], error)
	// ListHandlerNames returns names of handlers that stand next to a name: half of the
	// limit before it, half from it on. Without handlers it is empty.
	ListHandlerNames(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, near string, limit int) ([]string, error)
	FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error)
}

type ListHandlersParams struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	After    string // name of the last one seen
	Limit    int
	// Bytes ends a page with the handler with which its descriptions and schemas reach it;
	// 0: they are not counted.
	Bytes int64
	// NoSchemas leaves the schemas out.
	NoSchemas bool
}

type SetExecutorStateParams struct {
	Tenant    domain.TenantID
	ID        domain.ExecutorID
	IfVersion int64 // 0 = any
	State     domain.ExecutorState
	Note      string // why it is disabled
}

// Disabled is what takes nothing now.
type Disabled struct {
	Tenants   map[domain.TenantID]bool
	Executors map[domain.ExecutorID]bool
	// NotHere are those of Tenants that are moving, or have moved to another cell.
	NotHere map[domain.TenantID]TenantPlace
}

// TenantPlace is where a tenant is.
type TenantPlace struct {
	State domain.TenantState
	Cell  domain.Cell
}

// HeldJob is a job that was disabled, or is enabled again, with its executor or tenant
// (By).
type HeldJob struct {
	Tenant domain.TenantID
	ID     domain.JobID
	By     int64
	Note   string
}

type UpdateExecutorParams struct {
	Tenant            domain.TenantID
	ID                domain.ExecutorID
	IfVersion         int64   // 0 = any
	Name, Description *string // nil = as it is
	CallbacksTo       *[]string
}

type DeleteExecutorParams struct {
	Tenant    domain.TenantID
	ID        domain.ExecutorID
	IfVersion int64 // 0 = any
	// EndInstances takes connected instances along: what they run is lost.
	EndInstances bool
}

type ListExecutorsParams struct {
	Tenant domain.TenantID
	Within domain.Reach
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

type DrainInstanceParams struct {
	Tenant domain.TenantID
	ID     domain.InstanceID
	By     string
	Undo   bool
}

type ListInstancesParams struct {
	Tenant      domain.TenantID
	Within      domain.Reach
	Executor    domain.ExecutorID // 0 = all
	IncludeGone bool
	OnlyGone    bool      // and after GoneSince
	GoneSince   time.Time // of those that are gone; zero = any
	Limit       int
	Brief       bool // without labels and handlers
}

// LostInstances are those of one executor.
type LostInstances struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Name     string // of the executor
	// Lost are the instances as name and host, LostSlots their slots.
	Lost      []string
	LostSlots int
	Newest    domain.InstanceID
	Since     time.Time // the first of them was gone
	// Living instances take runs now.
	Living, LivingSlots int
}
