package timing

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ratedFires is how many of a cron's next fires are looked at. Its minutes are
// alike, for a cron chooses seconds, and minutes beside them: 120 fires hold a
// whole one, whatever lies before and after it.
const ratedFires = 120

// FiresPerMinute is the most that a schedule fires in any minute from now on,
// whatever calendars exclude: what is excluded gets its row too. A fixed delay
// counts as if its runs took no time. It is 0 where nothing fires any more.
func FiresPerMinute(now time.Time, spec *domain.JobSpec) int {
	s := spec.Schedule
	s.Calendars = nil
	compiled, err := Compile(&s, "")
	if err != nil {
		return 0
	}
	if _, ok := compiled.Next(now); !ok {
		return 0
	}
	n := ratedFires
	switch s.Kind {
	case domain.ScheduleFixedRate, domain.ScheduleFixedDelay, domain.ScheduleDailyWindow:
		return int((time.Minute + s.Every - 1) / s.Every)
	case domain.ScheduleInstants:
		n = len(s.Instants)
	}
	most, first := 0, 0
	fires := compiled.NextN(now, n)
	for last, at := range fires {
		for at.Sub(fires[first]) >= time.Minute {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
