package executortest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/schedule"
)

// All that a job can declare about its schedule reaches the engine.
func TestDeclaredJobsFireAsTheEngineSays(t *testing.T) {
	start, end := day(20).Add(90*time.Second), day(200)
	both := executor.ClockChanges(executor.SkipGap, executor.OverlapBoth)
	dst := schedule.DST{Gap: schedule.GapSkip, Overlap: schedule.OverlapBoth}
	for name, c := range map[string]struct {
		options []executor.JobOption
		means   schedule.Spec
	}{
		"standard": {[]executor.JobOption{executor.Cron("5/20 22-2 * 3,10 *")}, schedule.Spec{Kind: schedule.KindCron, Expr: "5/20 22-2 * 3,10 *"}},
		"dialect": {[]executor.JobOption{executor.Cron("0 0 9 * * 2"), executor.Dialect(executor.DialectSeconds)},
			schedule.Spec{Kind: schedule.KindCron, Expr: "0 0 9 * * TUE"}},
		"lists of quartz": {[]executor.JobOption{executor.Cron("0 0 0 ? * 2#1,3")}, schedule.Spec{Kind: schedule.KindCron, Expr: "0 0 0 ? * 2#1,3"}},
		"@every":          {[]executor.JobOption{executor.Cron("@every 5h")}, schedule.Spec{Kind: schedule.KindFixedRate, Every: 5 * time.Hour}},
		"zone": {[]executor.JobOption{executor.Cron("*/7 1-3 * * *"), executor.Zone("Europe/Berlin")},
			schedule.Spec{Kind: schedule.KindCron, Expr: "*/7 1-3 * * *", Zone: "Europe/Berlin"}},
		"changes of the clock": {[]executor.JobOption{executor.Cron("30 2 * * *"), executor.Zone("Europe/Berlin"), both},
			schedule.Spec{Kind: schedule.KindCron, Expr: "30 2 * * *", Zone: "Europe/Berlin", DST: dst}},
		"rate": {[]executor.JobOption{executor.Every(17 * time.Minute)}, schedule.Spec{Kind: schedule.KindFixedRate, Every: 17 * time.Minute, Anchor: day(1)}},
		"rate from a start": {[]executor.JobOption{executor.Every(7 * time.Hour), executor.Between(start, end)},
			schedule.Spec{Kind: schedule.KindFixedRate, Every: 7 * time.Hour, StartAt: start, EndAt: end}},
		"delay": {[]executor.JobOption{executor.Delay(time.Hour), executor.Between(start, end)},
			schedule.Spec{Kind: schedule.KindFixedDelay, Every: time.Hour, StartAt: start, EndAt: end}},
		"once":     {[]executor.JobOption{executor.At(start)}, schedule.Spec{Kind: schedule.KindOnce, At: start}},
		"instants": {[]executor.JobOption{executor.Instants(end, start)}, schedule.Spec{Kind: schedule.KindInstants, Instants: []time.Time{start, end}}},
		"window": {[]executor.JobOption{executor.Every(17 * time.Minute), executor.Window("22:00", "02:30"), executor.Zone("Australia/Lord_Howe")},
			schedule.Spec{Kind: schedule.KindDailyWindow, Every: 17 * time.Minute, WindowFrom: "22:00", WindowTo: "02:30", Zone: "Australia/Lord_Howe"}},
		"none": {nil, schedule.Spec{Kind: schedule.KindNone}},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := schedule.Compile(c.means)
			require.NoError(t, err)
			executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
				executor.HandleFunc(admin.Executor(), "work", nothing, executor.Job("job", c.options...))
				for _, from := range []time.Time{day(1), day(86), day(201), day(302)} { // two changes of Berlin's clocks
					var want []string
					for _, at := range engine.NextN(from, 20) {
						want = append(want, fmt.Sprint(at))
					}
					var got []string
					for _, at := range admin.Fires("job", from, 20) {
						got = append(got, fmt.Sprint(at))
					}
					require.Equal(t, want, got, "after %s", from)
				}
				admin.Stop() // the clock of the test stays where it is
			})
		})
	}
}
