package timing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestFiresPerMinute(t *testing.T) {
	now := time.Date(2026, 11, 24, 8, 30, 31, 0, time.UTC)
	cron := func(expr string) domain.ScheduleSpec {
		return domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: expr, Dialect: "seconds"}
	}
	in := func(seconds ...int) (out []time.Time) {
		for _, s := range seconds {
			out = append(out, now.Add(time.Duration(s)*time.Second))
		}
		return out
	}
	for name, c := range map[string]struct {
		schedule domain.ScheduleSpec
		want     int
	}{
		"none":                         {domain.ScheduleSpec{Kind: domain.ScheduleNone}, 0},
		"every second":                 {cron("* * * * * *"), 60},
		"every second, one minute":     {cron("* 0 9 * * *"), 60},
		"every other second":           {cron("*/2 * * * * *"), 30},
		"every minute":                 {cron("0 * * * * *"), 1},
		"across minutes":               {cron("50,10 * * * * *"), 2},
		"once a day":                   {cron("0 0 3 * * *"), 1},
		"never":                        {cron("0 0 0 31 2 *"), 0},
		"a rate":                       {domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 100 * time.Millisecond}, 600},
		"a rate that does not go in":   {domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: 7 * time.Second}, 9},
		"a slow rate":                  {domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Hour}, 1},
		"a rate that is over":          {domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Second, EndAt: now.Add(-time.Hour)}, 0},
		"a delay":                      {domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay, Every: time.Second}, 60},
		"a window":                     {domain.ScheduleSpec{Kind: domain.ScheduleDailyWindow, Every: 30 * time.Second, WindowFrom: "22:00", WindowTo: "23:00"}, 2},
		"once":                         {domain.ScheduleSpec{Kind: domain.ScheduleOnce, At: now.Add(time.Hour)}, 1},
		"once, over":                   {domain.ScheduleSpec{Kind: domain.ScheduleOnce, At: now.Add(-time.Hour)}, 0},
		"instants, three within 59.9s": {domain.ScheduleSpec{Kind: domain.ScheduleInstants, Instants: in(1, 100, 130, 159, 160, 300)}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, timing.FiresPerMinute(now, &domain.JobSpec{Schedule: c.schedule}))
		})
	}
}
