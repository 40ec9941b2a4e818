package timing

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/schedule"
)

// Fire is one planned fire time.
type Fire struct {
	// At is the fire time: the run's identity.
	At time.Time
	// RunAt is when the run is to start: At plus jitter, or now for a misfire.
	RunAt time.Time
	// Missed is the reason why it will not run, or empty.
	Missed domain.Reason
	// Detail says in words what excludes it (ReasonCalendar).
	Detail string
	// Into is the fire time whose run stands for this one (ReasonCoalesced).
	Into time.Time
	// Misfire: it runs now although its time has passed.
	Misfire bool
}

// Planned is what Plan decides about a trigger.
type Planned struct {
	Fires []Fire
	// Next is when the trigger fires after them; domain.Never: no more.
	Next time.Time
	// AwaitsFinish: Next is Never until the last of the fires has ended.
	AwaitsFinish bool
	// Err: the schedule cannot be read. It was checked when it was saved, but
	// a calendar that it uses may be gone, or a time zone not known here.
	Err error
}

// Plan says which fires of a trigger are to be written now: those from next
// (the trigger's next fire time) to horizon, at most limit of them. The
// decisions are schedule.Due's.
func (c *Cache) Plan(job domain.JobID, number int64, spec *domain.JobSpec, next, now, horizon time.Time, limit int) Planned {
	compiled, err := c.get(job, number, spec)
	if err != nil {
		return Planned{Next: next, Err: err}
	}
	due := schedule.Due(compiled, schedule.DueParams{
		Next: next, Now: now, Horizon: horizon.Sub(now), Max: limit,
		Policy: schedule.MisfirePolicy(spec.Misfire.Policy), Threshold: spec.Misfire.Threshold,
		Window: spec.Misfire.Window, MaxRuns: spec.Misfire.MaxRuns,
	})
	out := Planned{Fires: make([]Fire, len(due.Fires)), Next: orNever(due.Next, !due.Next.IsZero()), AwaitsFinish: due.AwaitsFinish}
	for i, f := range due.Fires {
		out.Fires[i] = Fire{
			At: f.At.UTC(), RunAt: f.RunAt.UTC(), Missed: domain.Reason(f.Reason), Into: f.Into.UTC(), Misfire: f.Cause == schedule.CauseMisfire,
		}
		if f.Decision == schedule.DecisionExcluded {
			out.Fires[i].Detail = ExcludedText(&spec.Schedule, f.Excluded)
		}
	}
	return out
}
