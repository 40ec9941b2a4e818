package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Retention removes what has grown old, in bounded steps: callers repeat them
// until less than limit was removed. An instant is compared with the time
// inside the id, which is when the row was planned.
type Retention interface {
	// DeleteRunsBefore removes ended runs with their attempts and request
	// keys, but those of timers. Runs that have not ended stay, however old they are.
	DeleteRunsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// ApplyRetentionRules removes ended runs and logs that the rules of their tenants
	// and jobs keep less long than the server does, all of them, in transactions of at
	// most limit runs. It says how many runs and log chunks went.
	ApplyRetentionRules(ctx context.Context, limit int) (runs, chunks int64, err error)
	// DeleteRunPurgesBefore forgets clean-ups and backfills that were asked for before
	// the instant and are done.
	DeleteRunPurgesBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteTimersBefore removes ended runs of timers, with what explains them, and
	// cancellations of timers that are done. How the runs ended stays known (TimerStatistics).
	DeleteTimersBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteLogsBefore removes chunks of executions that were planned before
	// the instant.
	DeleteLogsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// TrimLogs removes the oldest chunks of tenants whose logs take more than
	// most bytes (after compression), until they take a tenth less.
	TrimLogs(ctx context.Context, most int64, limit int) (int64, error)
	// DeleteOutboxBefore removes events of the outbox, and rows of add-ons that are as old.
	DeleteOutboxBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteInstancesBefore removes instances that had gone before the instant.
	DeleteInstancesBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteHandlersBefore removes handlers that were last registered before the
	// instant, unless an instance that is still stored lists them, or a job that is
	// not deleted names them.
	DeleteHandlersBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteJoinTokenBootsBefore forgets which boots their tokens let in before
	// the instant, but for those that have an instance: a process that lives, or
	// went lately, is never counted as another use of its token.
	DeleteJoinTokenBootsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteRefusalsBefore forgets who was turned away before the instant for the
	// last time.
	DeleteRefusalsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteMaintenanceBefore forgets maintenance that was over before the instant.
	DeleteMaintenanceBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteJobsBefore removes jobs that were deleted before the instant and of
	// which no run is kept, with their revisions, events, trigger and slot.
	DeleteJobsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteExecutorsBefore removes executors that were deleted before the instant and
	// that no job and no run names, with what registered of them after all.
	DeleteExecutorsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteDocumentsBefore removes documents that were deleted before the instant, with
	// their versions.
	DeleteDocumentsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// RecountStored corrects the stored bytes and the pending timers of tenants that
	// were not counted since an instant (docs/adr/0093). It returns how many tenants
	// had wrong sums.
	RecountStored(ctx context.Context, since time.Time) (int, error)
	// DeleteTenantsBefore removes all of the tenants that were to be deleted before the
	// instant, and accounts that belong to no other one.
	DeleteTenantsBefore(ctx context.Context, before time.Time, limit int) (int64, error)
	// DeleteRefreshTokensBefore removes tokens that expired before the instant.
	DeleteRefreshTokensBefore(ctx context.Context, before time.Time, limit int) (int64, error)
}

// RetentionRules keeps for how long the runs of tenants and jobs are kept
// (docs/adr/0087).
type RetentionRules interface {
	// FindRetention returns the rule of a tenant (job 0) or of a job, and what of it
	// holds with that of the tenant. Of what there is no rule the version is 0.
	FindRetention(ctx context.Context, tenant domain.TenantID, job domain.JobID) (RetentionView, error)
	// ListRetention returns the tenant's rules in the order of the jobs, its own first:
	// after a job, at most limit.
	ListRetention(ctx context.Context, tenant domain.TenantID, after domain.JobID, limit int) ([]RetentionView, error)
	// SetRetention writes a rule; one that says nothing takes it away. CodeVersionMismatch:
	// IfVersion is neither 0 nor its version. CodeNotFound: no such job in this tenant.
	SetRetention(ctx context.Context, p SetRetentionParams) (RetentionView, error)
}

// RetentionView is a rule, and what of it holds.
type RetentionView struct {
	domain.RetentionRule
	JobName string
	// Effective is the rule under that of the tenant; what is 0 the server decides.
	Effective domain.Retention
	// RunsFrom: of fire times before it runs may have been deleted, by a rule or by
	// hand. Zero: of none. Of a tenant always zero.
	RunsFrom time.Time
}

type SetRetentionParams struct {
	Tenant    domain.TenantID
	Job       domain.JobID
	Retention domain.Retention
	IfVersion int64
	By        string
}

// RunPurges deletes ended runs because somebody asks for it.
type RunPurges interface {
	// CountRunPurge says how many runs it would delete now, up to most.
	CountRunPurge(ctx context.Context, p domain.RunPurge, most int) (int64, error)
	// CreateRunPurge writes it, to be driven on at once. CodeNotFound: no such job in
	// this tenant. CodeQuotaExceeded: domain.MaxRunPurges are under way.
	CreateRunPurge(ctx context.Context, p domain.RunPurge) (domain.RunPurge, error)
	FindRunPurge(ctx context.Context, tenant domain.TenantID, id domain.RunPurgeID) (domain.RunPurge, error)
	// ListRunPurges returns the newest first: before an id (0: from the newest).
	ListRunPurges(ctx context.Context, tenant domain.TenantID, before domain.RunPurgeID, limit int) ([]domain.RunPurge, error)
	// CancelRunPurge ends it where it is. CodeConflict: it is done.
	CancelRunPurge(ctx context.Context, tenant domain.TenantID, id domain.RunPurgeID) (domain.RunPurge, error)
	// DriveRunPurges deletes the next runs of those that are not done, each for some
	// seconds at most, in short transactions. Those that other nodes work on are
	// passed over.
	DriveRunPurges(ctx context.Context, limit int) error
}
