package admin

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// scheduleCache is how many compiled schedules a node keeps: some kilobytes each.
const scheduleCache = 32_768

// checkSchedule refuses what cannot be compiled; it is for jobs declared in
// code, whose author sees the message in the application's log.
func checkSchedule(s domain.ScheduleSpec) error {
	if _, err := timing.Compile(&s, ""); err != nil {
		return domain.Errorf(domain.CodeInvalid, "%w", err)
	}
	return nil
}

// nextFire is the first fire of a schedule that was saved now.
func nextFire(domain.JobID) store.NextFireFunc {
	return func(now time.Time, spec *domain.JobSpec) time.Time { return timing.Next(now, spec) }
}
