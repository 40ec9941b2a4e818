package timing

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// FiresBetween returns the first fire times of a schedule with from ≤ fire <
// to, at most limit, without those that calendars exclude. A fixed delay has
// none: it goes by its runs.
func FiresBetween(spec *domain.JobSpec, from, to time.Time, limit int) []time.Time {
	compiled, err := Compile(&spec.Schedule, "")
	if err != nil || compiled.AwaitsFinish() {
		return nil
	}
	var out []time.Time
	after := from.Add(-time.Millisecond)
	for len(out) < limit {
		at, ok := compiled.NextRun(after)
		if !ok || !at.Before(to) {
			break
		}
		out = append(out, at.UTC())
		after = at
	}
	return out
}
