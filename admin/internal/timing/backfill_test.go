package timing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func TestFiresBetween(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 10, n, 2, 0, 0, 0, time.UTC) }
	spec := &domain.JobSpec{Schedule: domain.ScheduleSpec{
		Kind: domain.ScheduleCron, Expr: "0 2 * * *", Dialect: "standard",
		Calendars: []domain.CalendarUse{{Content: &domain.CalendarSpec{Holidays: []domain.CalendarDay{{Date: "2026-10-02"}}}}},
	}}
	require.Equal(t, []time.Time{day(1), day(3)}, timing.FiresBetween(spec, day(1), day(4), 10), "from is included, to is not")
	require.Equal(t, []time.Time{day(1)}, timing.FiresBetween(spec, day(1), day(4), 1))
	require.Empty(t, timing.FiresBetween(spec, day(4), day(4), 10))
	spec.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay, Every: time.Hour}
	require.Empty(t, timing.FiresBetween(spec, day(1), day(4), 10))
}
