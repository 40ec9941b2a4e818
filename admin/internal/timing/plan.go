package timing

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Fire is one planned fire time.
type Fire struct {
	At time.Time
	// Missed is the reason why it will not run, or empty.
	Missed domain.Reason
	// Misfire: it runs now in place of fire times that passed.
	Misfire bool
}

// Plan says which fires of a trigger are to be written now: those from next
// (the trigger's next fire time) to horizon, at most limit of them, and when
// the trigger fires after those; domain.Never: no more.
//
// A fire time that is older than the misfire threshold has passed unnoticed.
// With skip it is missed. With once_now the newest of those that passed runs
// now, and the others are missed because it stands for them.
func (c *Cache) Plan(job domain.JobID, number int64, spec *domain.JobSpec, next, now, horizon time.Time, limit int) (fires []Fire, following time.Time) {
	compiled, err := c.get(job, number, spec)
	if err != nil {
		return nil, domain.Never
	}
	threshold := spec.Misfire.Threshold
	if threshold <= 0 {
		threshold = domain.DefaultMisfireThreshold
	}
	for !next.After(horizon) && len(fires) < limit {
		following := orNever(compiled.Next(next))
		fires = append(fires, judge(next, following, now, threshold, spec.Misfire.Policy))
		next = following
	}
	return fires, next
}

func judge(at, following, now time.Time, threshold time.Duration, policy domain.MisfirePolicy) Fire {
	f := Fire{At: at}
	switch {
	case now.Sub(at) <= threshold:
	case policy != domain.MisfireOnceNow:
		f.Missed = domain.ReasonMisfire
	case !following.After(now):
		f.Missed = domain.ReasonCoalesced // a later one has passed too
	default:
		f.Misfire = true
	}
	return f
}
