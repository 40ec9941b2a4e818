package executortest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

func nothing(context.Context) error { return nil }

// 2000-01-01, when the clock of a test begins, is a Saturday.
func TestCalendarsKeepJobsFromFiring(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		admin.Calendar("cn", executortest.Calendar{
			Holidays: []string{"2000-01-04"}, MakeUpDays: []string{"2000-01-02"},
			Blackouts: []executortest.Blackout{{From: day(6), To: day(7)}},
		})
		ex := admin.Executor()
		daily := []executor.HandlerOption{executor.Cron("0 9 * * *"), executor.Calendars("cn")}
		executor.HandleFunc(ex, "books", nothing, append(daily, executor.Days(executor.Workdays))...)
		executor.HandleFunc(ex, "mail", nothing, daily...)
		executor.HandleFunc(ex, "watch", nothing, append(daily, executor.Days(executor.AllDays))...)
		executor.HandleFunc(ex, "after", nothing, executor.Delay(12*time.Hour), executor.Calendars("cn"), executor.Days(executor.Workdays))
		admin.Start()
		admin.Sleep(7 * 24 * time.Hour)

		require.Equal(t, []int{2, 3, 5, 7}, daysOf(admin.Runs("books"), executortest.Succeeded))
		require.Equal(t, []int{1, 4, 6}, daysOf(admin.Runs("books"), executortest.Excluded))
		require.Equal(t, []int{1, 2, 3, 5, 7}, daysOf(admin.Runs("mail"), executortest.Succeeded))
		require.Equal(t, []int{1, 2, 3, 4, 5, 7}, daysOf(admin.Runs("watch"), executortest.Succeeded))
		why := admin.Runs("books")[3]
		require.Equal(t, "calendar", why.ErrKind())
		require.Equal(t, "holiday 2000-01-04 in the calendar cn", why.Err())
		require.Equal(t, []int{2, 2, 3, 3, 5, 5, 7, 7}, daysOf(admin.Runs("after"), executortest.Succeeded), "a delay goes on when it may")

		require.Equal(t, []time.Time{day(10).Add(9 * time.Hour), day(11).Add(9 * time.Hour)}, admin.Fires("books", day(7).Add(10*time.Hour), 2))
	})
}

func day(n int) time.Time { return time.Date(2000, 1, n, 0, 0, 0, 0, time.UTC) }

func daysOf(runs []*executortest.Run, state executortest.State) (out []int) {
	for _, r := range runs {
		if r.State() == state {
			out = append(out, r.FireTime().Day())
		}
	}
	return out
}

// The fire time is the planned one; the start is later, by the same in every test run.
func TestJitterDelaysTheStart(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var late []time.Duration
		executor.HandleFunc(ex, "work", func(ctx context.Context) error {
			late = append(late, time.Since(executor.TaskFrom(ctx).FireTime))
			return nil
		}, executor.Every(time.Hour), executor.Jitter(10*time.Minute))
		admin.Start()
		admin.Sleep(24*time.Hour + 11*time.Minute)
		require.Len(t, late, 24)
		different := map[time.Duration]bool{}
		for _, d := range late {
			require.LessOrEqual(t, d, 10*time.Minute)
			different[d] = true
		}
		require.Greater(t, len(different), 12)
	})
}

func TestSchedulesStartWhenTheyAreValid(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		start := day(2).Add(90 * time.Second)
		executor.HandleFunc(ex, "every", nothing, executor.Every(time.Hour), executor.Between(start, start.Add(2*time.Hour)))
		executor.HandleFunc(ex, "fine", nothing, executor.Every(400*time.Millisecond), executor.Window("23:59:59", "24:00"))
		executor.HandleFunc(ex, "words", nothing, executor.Cron("@daily"))
		executor.HandleFunc(ex, "paced", nothing, executor.Cron("@every 5h"))
		require.Equal(t, []time.Time{start, start.Add(time.Hour), start.Add(2 * time.Hour)}, in(admin.Fires("every", day(1), 9)))
		late := day(2).Add(-time.Second)
		require.Equal(t, []time.Time{late, late.Add(400 * time.Millisecond), late.Add(800 * time.Millisecond), late.Add(24 * time.Hour)}, in(admin.Fires("fine", day(1), 4)))
		require.Equal(t, []time.Time{day(2), day(3)}, in(admin.Fires("words", day(1), 2)))
		require.Zero(t, admin.Fires("paced", day(1), 1)[0].Unix()%(5*3600))
	})
}

func in(list []time.Time) []time.Time {
	for i := range list {
		list[i] = list[i].UTC()
	}
	return list
}
