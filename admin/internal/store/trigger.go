package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Triggers is the scheduler's view.
type Triggers interface {
	// ClaimDueTriggers locks up to Limit triggers of the partitions whose next
	// fire time is at or before the database's now + Horizon (rows locked by
	// others are skipped), asks Plan for each, inserts the planned executions
	// and advances the triggers, all in one transaction. An execution whose
	// fire time exists already is left out of the result (UNIQUE job, fire
	// time, key). CodeStaleTerm: nothing was planned, because somebody has
	// taken over one of the partitions, or its lease has run out.
	// CodeClockJump: nothing was planned, because it is later than Latest.
	ClaimDueTriggers(ctx context.Context, p ClaimDueTriggersParams) (ClaimedTriggers, error)
	// RearmDelays sets the next fire time of triggers that wait for the end of
	// a run which has ended, or is gone. Whatever ends a run does it in its own
	// transaction; this is the net below. It returns how many it found.
	RearmDelays(ctx context.Context, limit int) (int, error)
}

type ClaimDueTriggersParams struct {
	// Partitions are those that the caller holds, with their terms: the claim
	// commits only while these are the highest.
	Partitions []domain.PartitionTerm
	// Except and ExceptExecutors are tenants and executors whose triggers stay where
	// they are.
	Except          []domain.TenantID
	ExceptExecutors []domain.ExecutorID
	Horizon         time.Duration
	Limit           int
	// Latest is the latest time that is believed of the database's clock, when the
	// database has told its time; nil = any.
	Latest func() time.Time
	// Plan is pure and quick; it is called inside the transaction.
	Plan PlanFunc
}

// DueTimers is the scheduler's view of timers.
type DueTimers interface {
	// ClaimDueTimers locks up to Limit timers of the partitions whose time is at or
	// before the database's now + Horizon (rows locked by others are skipped), makes
	// a run of each and deletes them, all in one transaction. Those whose job was
	// deleted become runs that have ended as missed. CodeStaleTerm, CodeClockJump:
	// as of ClaimDueTriggers.
	ClaimDueTimers(ctx context.Context, p ClaimDueTimersParams) (ClaimedTimers, error)
}

type ClaimDueTimersParams struct {
	// Partitions, Except, Horizon, Limit and Latest are as of
	// ClaimDueTriggersParams.
	Partitions []domain.PartitionTerm
	Except     []domain.TenantID
	Horizon    time.Duration
	Limit      int
	Latest     func() time.Time
	// NewID makes the ids of the runs.
	NewID func() int64
	// Begin hears of each run before it is written, again when the transaction is
	// repeated, and may set its Trace; nil = nothing.
	Begin func(e *domain.Execution)
	// Hot is asked first which timers are due; nil = only the database is.
	Hot HotTimers
}

// ClaimedTimers is what was claimed.
type ClaimedTimers struct {
	Timers     int  // how many were locked
	More       bool // there may be more that are due
	Executions []domain.Execution
}

// MisfireFunc asks the misfire policy of a job about a run which was planned in
// time, and whose fire time has passed by more than the threshold before it
// could start: the reason why it does not run any more, with the text for its
// row, or none. It is pure and quick; it is called inside transactions.
type MisfireFunc func(now time.Time, e *domain.Execution, spec *domain.JobSpec) (domain.Reason, string)

// PlanFunc decides which executions a trigger gets and when it fires next.
type PlanFunc func(now time.Time, t domain.Trigger, spec *domain.JobSpec) TriggerPlan

type TriggerPlan struct {
	Executions []domain.Execution
	NextFireAt time.Time
	LastFireAt time.Time
	// Awaits is one of Executions whose end sets the next fire time (a fixed
	// delay); 0 = none. NextFireAt is Never until then.
	Awaits domain.ExecutionID
	// Err: the trigger cannot be planned as it is, and is left as it is.
	Err error
}

type ClaimedTriggers struct {
	Now        time.Time
	Triggers   int // how many were locked; Limit means that there may be more
	Executions []domain.Execution
	// NextFireAt is the earliest next fire time seen beyond the horizon, or Never;
	// one inside the horizon means that there is more to claim.
	NextFireAt time.Time
}
