package executortest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/proto/schedule"
)

// Declared jobs fire in tests when the engine says, as they do with an admin.
func TestExecutortestFiresAsTheEngine(t *testing.T) {
	crons := []string{
		"0 2 * * *", "30 2 * * *", "*/7 1-3 * * *", "0 * * * *", "*/15 2 * * *", "0 0 13 * 5", "0 0 */2 * 1", "5/20 22-2 * 3,10 *",
		"0 0 * * FRI-MON", "0 0 * * 5-7", "0 0 * * 6-1", "@daily", "@weekly", "@every 1h30m", "15 30 1,2,3 * * *", "0 0 9 * * 2",
		"0 0 9 ? * 2", "0 0 9 ? * 6#3", "0 0 9 ? * 6L", "0 0 9 L * ?", "0 30 2 LW * ?", "0 0 9 L-3W 2,10 ?", "0 0 1 15W * ?",
		"0 0 0 31W * ?", "0 0 12 1 1 ? 2001-2003/2", "0 30 2 ? 3 1L", "0 0/30 1-2 ? 10 SUN", "* * 2 ? 3 SUN",
	}
	after := []time.Time{
		time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2000, 3, 25, 12, 0, 0, 0, time.UTC),
		time.Date(2000, 10, 28, 20, 0, 0, 0, time.UTC), time.Date(2001, 3, 31, 9, 0, 0, 0, time.UTC), time.Date(2001, 10, 27, 9, 0, 0, 0, time.UTC),
	}
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		specs := map[string]schedule.Spec{}
		declare := func(spec schedule.Spec, options ...executor.JobOption) {
			name := fmt.Sprint("job-", len(specs))
			options = append(options, executor.Zone(spec.Zone), executor.ClockChanges(executor.GapPolicy(spec.DST.Gap), executor.OverlapPolicy(spec.DST.Overlap)))
			executor.HandleFunc(ex, name, func(context.Context) error { return nil }, executor.Job(name, options...))
			specs[name] = spec
		}
		for _, zone := range []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"} {
			for _, dst := range []schedule.DST{{Gap: "run_at_gap_end", Overlap: "once"}, {Gap: "skip", Overlap: "both"}} {
				for _, expr := range crons {
					declare(schedule.Spec{Kind: schedule.KindCron, Expr: expr, Zone: zone, DST: dst}, executor.Cron(expr))
				}
				for _, w := range [][2]string{{"01:30", "03:10"}, {"22:00", "02:30"}, {"00:00", "24:00"}, {"02:10", "02:20"}} {
					declare(schedule.Spec{Kind: schedule.KindDailyWindow, Every: 17 * time.Minute, WindowFrom: w[0], WindowTo: w[1], Zone: zone, DST: dst},
						executor.Every(17*time.Minute), executor.Window(w[0], w[1]))
				}
			}
		}
		for name, spec := range specs {
			engine, err := schedule.Compile(spec)
			require.NoError(t, err)
			for _, from := range after {
				var want []int64
				for at, ok := engine.Next(from); ok && len(want) < 20; at, ok = engine.Next(at) {
					want = append(want, at.UnixMilli())
				}
				var got []int64
				for _, fire := range admin.Fires(name, from, 20) {
					got = append(got, fire.UnixMilli())
				}
				require.Equal(t, want, got, "%+v after %s", spec, from)
			}
		}
		admin.Stop() // the clock of the test stays where it is
	})
}
