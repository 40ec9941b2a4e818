package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Executions moves runs along the state machine of package domain. Results
// come in the order of the requests.
type Executions interface {
	// CreateExecution inserts a run that somebody asked for. When the job has
	// a run with the same OccurrenceKey already, or one that only asked for
	// something else (SplitRequestKey), that one is returned with created=false. CodeNotFound: no such job in this tenant.
	CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error)
	// OfferExecutions decides about slots and moves due executions to
	// instances (arrow 3).
	OfferExecutions(ctx context.Context, offers []Offer) ([]OfferResult, error)
	// SpreadExecutions decides about slots and makes the next parts of due runs
	// whose jobs have shards, in one transaction with the move of the parent.
	SpreadExecutions(ctx context.Context, spreads []Spread) ([]SpreadResult, error)
	// CancelParts passes the cancel of parents on to all of their parts that have
	// not ended. Those that are not being cancelled are left alone.
	CancelParts(ctx context.Context, parents []domain.Execution) (CancelledParts, error)
	// GrantOffers lets accepted offers start (arrow 4); an offer that may not
	// start has Granted=false, which is no error.
	GrantOffers(ctx context.Context, grants []GrantRequest) ([]GrantResult, error)
	// SettleInventories compares what instances hold with the executions of
	// their executors (arrows 4 and 5), many in one transaction. Executions of
	// others, and those that do not exist, are to be dropped. The answers are in
	// the order of the list: one that cannot be settled keeps no other one out.
	SettleInventories(ctx context.Context, list []SettleInventoryParams) []SettledInventory
	// EndOrphans ends attempts that the database calls running on an instance,
	// and which the instance does not have, where the end may have been lost with
	// commits (arrow 8): those that were offered before an operator accepted such
	// a database. Nothing happens when nobody ever did, or when the inventory may
	// be older than that. With an error it returns what was committed before.
	EndOrphans(ctx context.Context, p EndOrphansParams) (EndedOrphans, error)
	// GiveBackOffers returns refused offers (arrow 5); Gone results are no error.
	GiveBackOffers(ctx context.Context, items []GiveBack) ([]OfferResult, error)
	// SetAside ends executions as failed that cannot be read, decided or sent,
	// with the reason, and tells the operators; what of them can still be looked
	// at is cleared where they have ended. The error names those that stay as they
	// are.
	SetAside(ctx context.Context, bad map[domain.ExecutionID]error) error
	// RecordWaits notes why due executions wait, and until when. They keep their
	// place before later runs of a job that has a slot, and cover earlier ones
	// as an offer does; it returns those, and waiting ones that were covered.
	RecordWaits(ctx context.Context, waits []Wait) (covered []domain.Execution, err error)
	// StillDue returns those of the executions that wait to be offered, with their
	// fences.
	StillDue(ctx context.Context, ids []domain.ExecutionID) (map[domain.ExecutionID]int64, error)
	// WaitingLines returns lines in which runs wait, by their numbers: at most limit of those
	// after a number. It reads one run of each.
	WaitingLines(ctx context.Context, after int64, limit int) ([]WaitingLine, error)
	// ListWaiting returns runs of a line, in the order of their places. They wait for an
	// instance, or for the end of maintenance.
	ListWaiting(ctx context.Context, p ListWaitingParams) ([]domain.Execution, error)
	// ListWaitingJobs returns the jobs with living runs of an executor, by job;
	// where there are very many runs, of some of them.
	ListWaitingJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]WaitingJob, error)
	// RecordStarts writes the start time of running attempts (for display; the
	// result brings it again).
	RecordStarts(ctx context.Context, starts []Start) error
	// FinishAttempts applies results (arrows 5, 7, 8, 10).
	FinishAttempts(ctx context.Context, reports []AttemptReport) ([]FinishResult, error)
	// RecentInstances returns the instances that the newest runs of jobs were
	// sent to, by fire time, newest first; runs of Limit were looked at for
	// each job. A job without any has no entry.
	RecentInstances(ctx context.Context, p RecentInstancesParams) (map[domain.JobID][]domain.InstanceID, error)
	// RequestCancel is arrow 11. CodeAlreadyFinished when it is too late.
	RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error)
	// SweepExecutions looks after executions whose WakeAt has passed (arrows
	// 5, 8, 9 and deadlines). Hold is how long due ones are left to the caller.
	SweepExecutions(ctx context.Context, p SweepParams) (Swept, error)
}

// Spread asks to make the next parts of a run.
type Spread struct {
	Tenant domain.TenantID
	ID     domain.ExecutionID
	Since  time.Time // see Offer
}

// SpreadResult: OfferMade means that Parts are due now. OfferBlocked is said of
// a broadcast without an instance, too.
type SpreadResult struct {
	OfferResult
	Parts []domain.Execution
}

// CancelledParts is what came of CancelParts.
type CancelledParts struct {
	Cancel []domain.Execution // a cancel has to be sent
	Ended  []domain.Execution // parts and parents
	Woken  []domain.Execution // see FinishResult
}

// Offer asks to send an execution to an instance.
type Offer struct {
	Tenant     domain.TenantID
	ID         domain.ExecutionID
	Node       domain.NodeID
	Instance   domain.InstanceID
	Idempotent bool
	// Granted: one step; only for idempotent handlers.
	Granted bool
	Passed  domain.Passed // what the choice of the instance leaves
	// Since is from when the caller knows that the run waits for an instance;
	// zero: it does not. Such a run has not misfired.
	Since time.Time
}

// OfferStatus is what became of an offer.
type OfferStatus uint8

const (
	OfferGone      OfferStatus = iota // not due any more: another node, a cancel, a pause; or bound to another instance
	OfferMade                         // send it
	OfferBlocked                      // waits for the job's slot, and a finish wakes it; or for room under a limit (Limits)
	OfferDiscarded                    // ended, because the blocking strategy said so
)

type OfferResult struct {
	Status    OfferStatus
	Execution domain.Execution
	Spec      *domain.JobSpec
	// Again: the offer was sent before, and asks whether the instance has it.
	Again bool
	// Covered are earlier runs of the job that this one covers: ended, or
	// cancelling, and then the cancel has to be sent.
	Covered []domain.Execution
}

type GrantRequest struct {
	Tenant   domain.TenantID
	ID       domain.ExecutionID
	Fence    int64
	Instance domain.InstanceID
}

// GrantResult: Granted is true as well for an attempt that had its grant.
type GrantResult struct {
	Granted   bool
	Execution domain.Execution
}

type GiveBack struct {
	Tenant   domain.TenantID
	ID       domain.ExecutionID
	Fence    int64
	Instance domain.InstanceID
	Reason   domain.Reason
	Message  string
	Wait     time.Duration
	// Unheard: nobody has heard of a one-step offer, and it cannot start any more,
	// see domain.Execution.Unheard.
	Unheard bool
	// Refused: the instance said no, which holds for one-step offers too.
	Refused bool
	// Busy: it did so because it is full, which is no failed send.
	Busy bool
}

type Wait struct {
	Tenant  domain.TenantID
	ID      domain.ExecutionID
	Reason  domain.Reason
	Message string
	// For is until the sweep looks again; 0 = when its wait for an instance ends.
	For time.Duration
	// Line is the number of all runs that the same instances may take (domain.LineNumber).
	Line int64
	// Anyone: each node may take the run at once. Otherwise nodes that do not hold its
	// partition leave it to the holder for OwnFor.
	Anyone bool
	// Full: instances are there, and have no room.
	Full  bool
	Since time.Time // see Offer
}

// attendedFor is until somebody else looks again at a run that may wait for ever.
const attendedFor = time.Hour

// Until returns when somebody else is to look again.
func (w *Wait) Until(now time.Time, e *domain.Execution) time.Time {
	switch {
	case w.For > 0:
		return now.Add(w.For)
	case e.ExpireAt.IsZero():
		return now.Add(attendedFor)
	}
	return e.ExpireAt
}

// OwnFor is how long a run that waits is left to the node that holds its partition.
const OwnFor = time.Second

// WaitingLine is a line in which runs wait.
type WaitingLine struct {
	Line     int64
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	// Next is the next run, and First its place: its fire time, less what its priority is
	// worth.
	Next  domain.ExecutionID
	First time.Time
}

// MaxListedInput is how many bytes of inputs ListWaiting returns, and those of some runs more.
const MaxListedInput = 8 << 20

type ListWaitingParams struct {
	Line int64
	// Partitions are those of the runs that are read. Empty: all runs that each node may
	// take.
	Partitions []int
	// Newest: the run with the last place comes first.
	Newest bool
	// Read bounds the runs that are looked at, Limit those that are returned. After
	// MaxListedInput bytes of inputs there come no more.
	Read, Limit int
	// Unattended: see SweepParams.
	Unattended func([]domain.ExecutionID) []domain.ExecutionID
}

// WaitingJob is a job that has living runs, with the revision of the newest.
type WaitingJob struct {
	Job      domain.JobID
	Revision int64
}

type RecentInstancesParams struct {
	Jobs  []RecentJob // at most 100
	Until time.Time   // later fire times do not count
	Limit int
}

// RecentJob names a job.
type RecentJob struct {
	Tenant domain.TenantID
	Job    domain.JobID
}

type Start struct {
	Tenant    domain.TenantID
	ID        domain.ExecutionID
	Fence     int64
	Instance  domain.InstanceID
	StartedAt time.Time
}

// AttemptReport is a result with the identity of the session it came in on.
type AttemptReport struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Report   domain.Report
}

// FinishCode tells the executor what became of its result. Each of them ends
// the resending.
type FinishCode string

const (
	FinishStored FinishCode = "stored"
	// FinishReturned: the handler of a run that had ended runs no more. The
	// outcome stands, and what the run still held is free.
	FinishReturned  FinishCode = "returned"
	FinishDuplicate FinishCode = "duplicate"
	FinishStale     FinishCode = "stale_fence"
	FinishNotFound  FinishCode = "not_found"
)

type FinishResult struct {
	Code      FinishCode
	Execution domain.Execution // as it is now; zero for FinishNotFound
	// Woken are executions of the same job that may be offered now, because
	// the slot became free.
	Woken []domain.Execution
	// Ended are parents that ended because their parts have; they stand in one of
	// the results.
	Ended []domain.Execution
}

type SweepParams struct {
	Partitions []int
	Limit      int
	Hold       time.Duration
	// Overdue leaves out what woke less than this ago.
	Overdue time.Duration
	// Unattended leaves out what waits in a queue of the caller's already, and
	// returns the rest in its order; nil: nothing waits. It is called for some
	// hundred runs at a time, without a lock or a transaction.
	Unattended func([]domain.ExecutionID) []domain.ExecutionID
	// Reported names those runs of which a result waits in the caller's memory, by
	// who reported it; nil: there are none. A run is left alone for a result of its
	// own executor only: a session may report any id. It is called like Unattended.
	Reported func([]domain.ExecutionID) []ReportedRun
	// Latest: see ClaimDueTriggersParams.
	Latest func() time.Time
}

// ReportedRun is a run by the executor that sent a result of it, which need not be
// the run's.
type ReportedRun struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	ID       domain.ExecutionID
}

type Swept struct {
	Now      time.Time
	Seen     int                // rows looked at; Limit means that there may be more
	Dispatch []domain.Execution // due now or soon, including woken slot waiters
	Cancel   []domain.Execution // a cancel has to be sent (again)
	Resend   []OfferResult      // a one-step offer has to be sent again
	Ended    []domain.Execution // became terminal (what only lingered did so before) or wait for a retry
}
