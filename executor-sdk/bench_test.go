//go:build unix

package executor_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// BenchmarkRoundTrip measures offers that become results, over loopback, with
// the executor and its admin in one process: everything a run costs but the
// admin's database. granted is one step (idempotent handlers), journal is
// accept, write, grant, write, start. Both write the result to the journal
// before it is sent. window is how many runs are under way at a time.
func BenchmarkRoundTrip(b *testing.B) {
	for _, mode := range []string{"granted", "journal"} {
		for _, window := range []int{1, 100, 2000} {
			b.Run(fmt.Sprintf("%s/window=%d", mode, window), func(b *testing.B) {
				roundTrips(b, mode == "granted", window)
			})
		}
	}
}

// cpuTime is what the process has used: unlike the rate, it hardly depends on
// who else uses the machine.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func roundTrips(b *testing.B, granted bool, window int) {
	finished := make(chan int, 4*window)
	admin := startAdmin(b, &fakeadmin.Admin{OnResults: func(_ *fakeadmin.Session, list []*proto.Result) {
		finished <- len(list)
	}})
	var calls atomic.Int64
	a := start(b, admin, func(ex *executor.Executor) {
		executor.Handle(ex, "sum", func(_ context.Context, in sumIn) (sumOut, error) {
			calls.Add(1)
			return sumOut{in.A + in.B}, nil
		})
	}, func(c *executor.Config) { c.Slots = 4096; c.Logger = slog.New(slog.DiscardHandler) })
	<-a.Ready()
	s := session(b, admin, 1)

	input := []byte(`{"a":1,"b":2}`)
	b.ResetTimer()
	began, cpu := time.Now(), cpuTime(b)
	sent, done := 0, 0
	for done < b.N {
		if n := min(b.N-sent, window-(sent-done), 100); n > 0 && (n >= min(window, 100) || sent+n == b.N) {
			batch := make([]*proto.Offer, n)
			for i := range batch {
				sent++
				batch[i] = &proto.Offer{
					ExecutionId: int64(sent), Fence: 1, JobId: 1, JobName: "sum", Handler: "sum", Input: input,
					FireAtMs: began.UnixMilli(), Attempt: 1, MaxAttempts: 1, Cause: "schedule", Granted: granted,
				}
			}
			require.NoError(b, s.Offer(batch...))
			continue
		}
		done += <-finished
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "runs/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/float64(b.N), "cpu-µs/run")
	require.EqualValues(b, b.N, calls.Load())
}
