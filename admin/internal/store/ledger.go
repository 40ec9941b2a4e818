package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Ledger reads what was planned and what came of it, for whoever judges it
// from outside of the engine (carillon verify). It serves all tenants.
type Ledger interface {
	// ReadLedger calls fn with a reader in one read-only transaction. It takes
	// as long as fn does: callers give ctx a deadline of their own.
	ReadLedger(ctx context.Context, fn func(LedgerReader) error) error
}

// LedgerReader reads in the order of an index and keeps nothing in memory but
// what it returns. It is for one goroutine; callbacks must not read.
type LedgerReader interface {
	// Now is the database's clock at the beginning.
	Now() time.Time
	// Jobs returns up to limit jobs, deleted ones too, after one in the order
	// of their ids, each with all its revisions and events.
	Jobs(ctx context.Context, after domain.JobID, limit int) ([]LedgerJob, error)
	// Occurrences calls fn for each execution of the jobs with from ≤ fire time
	// ≤ to, in the order of job and fire time.
	Occurrences(ctx context.Context, jobs []domain.JobID, from, to time.Time, fn func(Occurrence) error) error
	// Executions calls fn for each execution with after < id ≤ until, in the
	// order of ids. The entry is only valid during the call.
	Executions(ctx context.Context, after, until domain.ExecutionID, fn func(*LedgerEntry) error) error
}

// LedgerJob is one job's history.
type LedgerJob struct {
	ID       domain.JobID
	TenantID domain.TenantID
	// NextFireAt is up to where its fire times have rows.
	NextFireAt time.Time
	Revisions  []Revision
	Events     []JobEvent
	// RunsFrom: runs of fire times before it may have been deleted before their age
	// (RetentionView); zero: none have.
	RunsFrom time.Time
}

// JobEvent is a change of a job's state, or of the note on it.
type JobEvent struct {
	State domain.JobState
	At    time.Time
}

// Occurrence is what the index of occurrences knows of an execution.
type Occurrence struct {
	JobID     domain.JobID
	ID        domain.ExecutionID
	FireAt    int64 // Unix ms
	Scheduled bool  // it has no key of its own: the schedule made it
	Part      bool  // it is a part of another one
}

// LedgerEntry is an execution as far as it can be judged by itself. Instants
// are Unix milliseconds; 0 = none.
type LedgerEntry struct {
	ID        domain.ExecutionID
	JobID     domain.JobID
	TenantID  domain.TenantID
	Cause     domain.Cause
	FireAt    int64
	State     domain.State
	Reason    domain.Reason
	Attempt   int64
	WakeAt    int64
	NotBefore int64
	// FirstDelay is when it was first put on record that something kept it from
	// starting when it was due.
	FirstDelay int64
	// Unlisted: it waits for a start by its row, and has no row among the waiting runs, which
	// nodes load.
	Unlisted bool

	PlannedAt, OfferedAt, GrantedAt, StartedAt, FinishedAt int64

	// Of a part, what it is to Parent, and which of Shards shards. A parent has
	// Shards too, and Stage. Picked: it makes some of them only.
	Parent domain.ExecutionID
	Part   domain.Part
	Shard  int64
	Shards int64
	Stage  domain.Stage
	Picked bool
}
