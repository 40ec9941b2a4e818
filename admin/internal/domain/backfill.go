package domain

import "time"

// Backfill is a wish to run a job for the fire times of a past range. Its runs
// are written a few at a time, so that it can be driven on by any node after a
// crash, and never fills the job's queue.
type Backfill struct {
	ID       BackfillID
	TenantID TenantID
	JobID    JobID
	// Revision is the job's when it was asked for; all its runs use it.
	Revision int64
	State    BackfillState
	Scope    BackfillScope
	// From ≤ fire time < To. Those before Next are done with.
	From, To, Next time.Time
	// Concurrency is how many of its runs may be under way at once.
	Concurrency int
	// Planned counts the fire times of the range when it was asked for, Created
	// the runs written so far, Skipped the fire times that did not need one.
	Planned, Created, Skipped int
	// Succeeded and Failed count its runs that have ended.
	Succeeded, Failed int
	// Live are its runs that have not ended, as far as is known.
	Live      []ExecutionID
	Note      string
	Message   string // why it ended early
	WakeAt    time.Time
	CreatedAt time.Time
	CreatedBy string
	// Trace is where it was asked for; its runs have traces of their own.
	Trace      Trace
	FinishedAt time.Time
}

// BackfillState is where a backfill stands. The numbers are stored.
type BackfillState uint8

const (
	// BackfillRunning: driven on by any node once its WakeAt has come.
	BackfillRunning BackfillState = 1
	// BackfillDone: all its runs have ended.
	BackfillDone BackfillState = 2
	// BackfillCancelled: no more runs are written. Those that live go on.
	BackfillCancelled BackfillState = 3
)

func (s BackfillState) String() string {
	switch s {
	case BackfillRunning:
		return "running"
	case BackfillDone:
		return "done"
	default:
		return "cancelled"
	}
}

// BackfillScope says which fire times of the range get a run. None gets a
// second one by a backfill, whatever the scope.
type BackfillScope string

const (
	// BackfillMissing: those without a run, or whose run was missed, discarded or
	// excluded by a calendar as it was then.
	BackfillMissing BackfillScope = "missing"
	// BackfillUnsuccessful: also those whose run did not succeed.
	BackfillUnsuccessful BackfillScope = "unsuccessful"
	// BackfillAll: all.
	BackfillAll BackfillScope = "all"
)

// Limits of a backfill.
const (
	MaxBackfillFires       = 10_000
	MaxBackfillConcurrency = 100
)

// BackfillKey is the OccurrenceKey of every run of a backfill: with the job and
// the fire time it is unique, so that two backfills cannot double one.
const BackfillKey = "backfill"

// Occurred is what is known of one fire time of a job.
type Occurred struct {
	Scheduled State // of the run of the schedule; 0 = there is none
	Backfill  bool  // a backfill has written a run already
}

// Wants reports whether a fire time gets a run.
func (s BackfillScope) Wants(o Occurred) bool {
	switch {
	case o.Backfill:
		return false
	case o.Scheduled == 0 || s == BackfillAll:
		return true
	case o.Scheduled == Missed || o.Scheduled == Discarded || o.Scheduled == Excluded:
		return true
	case s == BackfillUnsuccessful:
		return o.Scheduled.Terminal() && o.Scheduled != Succeeded
	}
	return false
}
