package executortest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// recorder is a test that keeps what it is told instead of failing.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// What would be wrong is said, and nothing fires instead.
func TestWhatIsNotKnownFailsTheTest(t *testing.T) {
	for want, option := range map[string]executor.JobOption{
		`calendar "cn" lets it, which the test has not made`: executor.Calendars("cn"),
		"hour: 25 is outside 0-23":                           executor.Cron("0 25 * * *"),
		"jitter_max: 25h0m0s must be":                        executor.Jitter(25 * time.Hour),
		`"Mars/Olympus" is no time zone`:                     executor.Zone("Mars/Olympus"),
	} {
		synctest.Test(t, func(t *testing.T) {
			told := &recorder{TB: t}
			admin := newAdmin(told)
			ex := admin.Executor()
			runs := 0
			executor.HandleFunc(ex, "work", func(context.Context) error { runs++; return nil }, executor.Cron("0 0 * * *"), option)
			admin.Start()
			admin.Sleep(25 * time.Hour)
			admin.Stop()
			require.Len(t, told.said, 1)
			require.Contains(t, told.said[0], want)
			require.Zero(t, runs)
		})
	}
}

func TestInstancesWithDifferentLabelsFailTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		labels []string
		said   int
	}{"the same": {[]string{"eu", "eu"}, 0}, "different": {[]string{"eu", "us"}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			told := &recorder{TB: t}
			admin := newAdmin(told)
			for _, zone := range c.labels {
				ex := admin.Executor(func(config *executor.Config) { config.Labels = map[string]string{"zone": zone} })
				executor.HandleFunc(ex, "work", func(context.Context) error { return nil }, executor.RequireLabels("zone=eu"))
			}
			admin.Call("work", nil)
			admin.Call("work", nil)
			admin.Stop()
			require.Len(t, told.said, c.said, name)
		})
	}
}
