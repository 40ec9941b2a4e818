package domain

import (
	"strconv"
	"time"
)

// Retention says for how long ended runs are kept. What is 0 is not said: what stands
// above it decides (a job's tenant, and above that the server).
type Retention struct {
	// RunDays is how long runs are kept after their end, LogDays the same of logs.
	RunDays, LogDays int
	// RunCount is how many of the newest ended runs of each job are kept, parts of
	// runs not counted; whichever of the two comes first.
	RunCount int
}

// Bounds of what a Retention says.
const (
	MaxRetentionDays  = 3650
	MaxRetentionCount = 10_000
)

// What no Retention and no clean-up by hand takes, because others still need it.
const (
	// DeletedDocumentsKept is how long a deleted document can be restored.
	DeletedDocumentsKept = 30 * 24 * time.Hour
	// RetentionGrace is for how long after its end a run stays in any case: alerts,
	// callbacks, backfills and whoever waits for it read it, and a node looks for its
	// last commits after a reconnect.
	RetentionGrace = time.Hour
	// RequestKeyGrace is the same of a run that was asked for with a key of the
	// caller's: a request that is repeated has to find it.
	RequestKeyGrace = 24 * time.Hour
)

// Under fills in from above what a Retention does not say. Logs are kept no longer
// than above.
func (r Retention) Under(above Retention) Retention {
	if r.RunDays == 0 {
		r.RunDays = above.RunDays
	}
	if r.RunCount == 0 {
		r.RunCount = above.RunCount
	}
	if r.LogDays == 0 || above.LogDays != 0 && above.LogDays < r.LogDays {
		r.LogDays = above.LogDays
	}
	return r
}

// Days is a number of days.
func Days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// RetentionRule is the Retention of a tenant, or of one of its jobs.
type RetentionRule struct {
	TenantID TenantID
	// JobID is 0 for the whole tenant.
	JobID JobID
	Retention
	Version   int64 // 0: there is no rule
	ChangedAt time.Time
	ChangedBy string
}

// RunPurgeID names a RunPurge.
type RunPurgeID int64

func (id RunPurgeID) String() string { return strconv.FormatInt(int64(id), 10) }

// RunPurge is a wish to delete the ended runs of a job or a tenant that had ended
// before an instant, with their logs. Any node drives it on in steps.
type RunPurge struct {
	ID       RunPurgeID
	TenantID TenantID
	JobID    JobID // 0: all jobs of the tenant, but those of timers
	Before   time.Time
	// Deleted counts runs, parts of runs too.
	Deleted    int64
	Cancelled  bool
	CreatedBy  string
	CreatedAt  time.Time
	FinishedAt time.Time // zero while it is not done
}

// Done reports whether nothing more is deleted.
func (p *RunPurge) Done() bool { return !p.FinishedAt.IsZero() }

// MaxRunPurges is how many clean-ups of a tenant may be under way at once.
const MaxRunPurges = 10
