package executortest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

type CloseDay struct {
	Day string `json:"day" required:"true"`
}

type Report struct {
	Orders int `json:"orders"`
}

func closeDay(ctx context.Context, in CloseDay) (Report, error) {
	time.Sleep(time.Minute) // costs the test nothing
	return Report{Orders: len(in.Day)}, nil
}

// What the documentation of the package shows.
func TestClosingADay(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		executor.Handle(ex, "close-day", closeDay,
			executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"),
			executor.Input(CloseDay{Day: "yesterday"}), executor.Retries(2))

		run := admin.Call("close-day", CloseDay{Day: "2026-11-20"})
		var report Report
		run.Output(&report)
		require.Equal(t, 10, report.Orders)

		admin.Sleep(24 * time.Hour) // a day passes at once
		require.Len(t, admin.Runs("close-day"), 2)
	})
}
