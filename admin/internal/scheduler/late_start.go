package scheduler

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Misfire asks a job's misfire policy about a run that was planned in time and
// has not started. It is pure.
func Misfire(plan PlanFunc) store.MisfireFunc {
	return func(now time.Time, e *domain.Execution, spec *domain.JobSpec) (domain.Reason, string) {
		fires := plan(e.JobID, e.Revision, spec, e.FireAt, now, now, 1).Fires
		if len(fires) == 0 || fires[0].Missed == "" {
			return "", ""
		}
		return fires[0].Missed, missedText(fires[0], "passed while nobody could start its run, ")
	}
}
