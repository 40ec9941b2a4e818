package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Timers keeps what applications set (docs/adr/0069). A timer's job is the one of
// kind timer of its executor and handler (calljob.Timer). Of a key counts the
// pending timer, or else the newest run.
type Timers interface {
	// SetTimers sets timers, of any tenants and jobs, in transactions of some
	// hundred. The answers are in the order of the list; one that cannot be set
	// keeps no other one out. The same key twice in a list: the first one is set
	// first. Whoever has set a timer that is due within the planner's look-ahead
	// nudges the planner.
	SetTimers(ctx context.Context, p SetTimersParams) []SetTimerResult
	// FindTimer returns what is known of a key. CodeNotFound: nothing.
	FindTimer(ctx context.Context, tenant domain.TenantID, job domain.JobID, key string) (TimerView, error)
	// FillTimer reads all of a timer of SetTimers or CancelTimers that is Partial.
	FillTimer(ctx context.Context, v *TimerView) error
	// CountTimers counts the pending timers of all jobs of kind timer that the
	// tenant has, also of those that have none, in the order of the names of
	// executor and handler. The counts are exact.
	CountTimers(ctx context.Context, tenant domain.TenantID) ([]TimerCount, error)
}

// TimerLists is the lists of Timers.
type TimerLists interface {
	// ListTimers lists timers of jobs: pending ones by job and key, those with a
	// run from the newest. What filters take out is read too, and a page reads
	// only so much: it may have fewer than Limit, or none, and yet a Next.
	ListTimers(ctx context.Context, p ListTimersParams) (TimerPage, error)
}

// TimerEdits changes timers that are set.
type TimerEdits interface {
	// CancelTimers cancels timers by their keys, at most domain.MaxTimerBatch. A
	// pending one leaves a run that has ended as cancelled; one that has a run is
	// cancelled as a run is (Executions.RequestCancel). The answers are in the
	// order of the keys.
	CancelTimers(ctx context.Context, p CancelTimersParams) []CancelTimerResult
	// RescheduleTimer moves a timer that has not started to another instant; see
	// SetTimers for one that is near. CodeNotFound: there is none of this key.
	// CodeTimerStarted: its run has started. CodeAlreadyFinished: it has ended.
	RescheduleTimer(ctx context.Context, p RescheduleTimerParams) (TimerView, error)
}

// TimerCancellations cancels many timers.
type TimerCancellations interface {
	// CreateTimerCancellation writes it, to be driven on at once. CodeNotFound: no
	// such job in this tenant.
	CreateTimerCancellation(ctx context.Context, c domain.TimerCancellation) (domain.TimerCancellation, error)
	FindTimerCancellation(ctx context.Context, tenant domain.TenantID, id domain.TimerCancellationID) (domain.TimerCancellation, error)
	// DriveTimerCancellations cancels the next timers of cancellations that are
	// not done, at most limit, each in short transactions. Those that other nodes
	// work on are passed over.
	DriveTimerCancellations(ctx context.Context, limit int) (DrivenTimerCancellations, error)
}

// SoonTimer is from when on a timer that is set is due soon: before the node that
// plans its partition is sure to look at it ahead of its time.
const SoonTimer = 4 * time.Second

// SetTimersParams are timers to set, and who asks.
type SetTimersParams struct {
	Timers []SetTimer
	// Held are partitions that this node plans: timers that are due soon go
	// there, so that the node can claim them at once; empty: they go anywhere.
	Held []int
	// Brief: the views of the results have no names and no texts.
	Brief bool
}

// SetTimer asks to set a timer. ID, TenantID, JobID, FireAt and Key are set, and
// checked by the caller as all else; Partition is not.
type SetTimer struct {
	domain.Timer
	Policy domain.TimerPolicy
}

// SetTimerResult is what became of a SetTimer.
type SetTimerResult struct {
	Outcome domain.TimerOutcome
	// View is the timer as it is now: the new one, or the one that was kept. With
	// CodeTimerExists and CodeTimerStarted it is the one that stands in the way. It is
	// Partial if the input of a stored timer was not read.
	View TimerView
	// Err: nothing was set. CodeTimerExists, CodeTimerStarted (see
	// domain.TimerPolicy), CodeQuotaExceeded, CodeNotFound: no such job in this
	// tenant, CodeUnavailable: it may be set nevertheless, and the same request
	// with the same key tells.
	Err error
}

// TimerView is a timer, pending or with its run.
type TimerView struct {
	domain.Timer
	ExecutorName string
	Handler      string
	// Run is the run that the timer has become; nil while it is pending.
	Run *domain.Execution
	// Partial: the input and the end of a long error were not read.
	Partial bool
}

// TimersState says which timers are listed.
type TimersState uint8

const (
	TimersPending TimersState = iota
	TimersEnded               // their runs have ended, also by a cancel while they were pending
	TimersClaimed             // their runs have not ended: due, running and so on
)

type ListTimersParams struct {
	Tenant domain.TenantID
	// Jobs are jobs of kind timer (CountTimers); empty = all of the tenant.
	Jobs      []domain.JobID
	State     TimersState
	KeyPrefix string
	Label     string
	From, To  time.Time   // From ≤ fire time < To; zero = no bound
	After     TimerCursor // zero = from the beginning
	Limit     int
}

// TimerCursor is a place in a list: Job and Key of a list of pending ones, Run of
// all others.
type TimerCursor struct {
	Job domain.JobID
	Key string
	Run domain.ExecutionID
}

// TimerPage is a part of a list. Next is nil at its end.
type TimerPage struct {
	Timers []TimerView
	Next   *TimerCursor
}

// TimerCount is a job of kind timer with its pending timers.
type TimerCount struct {
	Job          domain.JobID
	Executor     domain.ExecutorID
	ExecutorName string
	Handler      string
	Pending      int64
}

type CancelTimersParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	Keys   []string
	By     string // who cancels, for the runs' messages
	// FreeEnded: the key of a timer that has ended is free afterwards, as that of a
	// cancelled one is.
	FreeEnded bool
	// Brief: the views of the results have no names and no texts.
	Brief bool
}

// CancelTimerResult is what became of a key.
type CancelTimerResult struct {
	Key string
	// View has a run that has ended, or is cancelling, and then the cancel has to
	// be sent. It may be Partial.
	View TimerView
	// Err: CodeNotFound, CodeAlreadyFinished (with View), CodeUnavailable.
	Err error
}

type RescheduleTimerParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	Key    string
	FireAt time.Time
	By     string
	Held   []int // see SetTimersParams
}

// DrivenTimerCancellations is what was done.
type DrivenTimerCancellations struct {
	Seen   int                // cancellations worked on
	Cancel []domain.Execution // a cancel has to be sent
}
