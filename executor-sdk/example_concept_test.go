package executor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/auth"
	"github.com/carillon-sched/carillon/proto"
)

// On working days at 18:00, as the admin's calendar "cn" knows them, spread over
// five minutes; what passed while nothing could fire is made up for two hours.
func ExampleCalendars() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Cron("0 0 18 ? * MON-FRI"), executor.Dialect(executor.DialectQuartz), executor.Zone("Asia/Shanghai"),
		executor.Calendars("cn"), executor.Days(executor.Workdays), executor.Jitter(5*time.Minute),
		executor.Misfire(executor.AllMisfires), executor.MisfireLimit(2*time.Hour, 10), executor.Input(CloseDay{Day: "today"}))

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output: succeeded {"orders":0,"cents":0}
}

// A new run takes the place of the one that still goes on.
func ExampleBlocking() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "refresh-prices", func(ctx context.Context) error {
		return context.Cause(ctx) // ErrKilled when a newer run replaces it
	}, executor.Every(time.Minute), executor.Blocking(executor.CoverEarly))

	admin.run(ex, "refresh-prices", "")
	// Output: succeeded
}

// The hook has to succeed before the shards start.
func ExampleBeforeShards() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "freeze-stock", func(ctx context.Context) error {
		fmt.Println("part:", executor.TaskFrom(ctx).Part)
		return nil
	})
	executor.HandleFunc(ex, "count", func(ctx context.Context) error { return nil },
		executor.Shards(4), executor.BeforeShards("freeze-stock"), executor.FireTimeout(time.Hour))

	admin.run(ex, "freeze-stock", "", func(o *proto.Offer) { o.Part, o.ParentId = "before", 17 })
	// Output:
	// part: before
	// succeeded
}

func ExampleSuccessFunc() {
	admin, ex := newDemo()
	executor.HandleEnd(ex, "books-closed", executor.SuccessFunc(func(ctx context.Context, out Report) error {
		fmt.Println(out.Orders, "orders")
		return nil
	}))

	admin.run(ex, "books-closed", `{"runId": "17", "state": "succeeded", "output": {"orders": 3}}`)
	// Output:
	// 3 orders
	// succeeded
}

// The fence grows with each attempt: a system that remembers the highest one
// refuses an attempt that was given up, and does not know yet.
func ExampleTask() {
	admin, ex := newDemo()
	highest := map[string]int64{} // of the other system
	executor.HandleFunc(ex, "book", func(ctx context.Context) error {
		task := executor.TaskFrom(ctx)
		if task.Fence < highest[task.Key()] {
			return executor.Permanent(errors.New("given up"))
		}
		highest[task.Key()] = task.Fence
		return nil
	})

	admin.run(ex, "book", "")
	// Output: succeeded
}

// A second lock behind the admin's roles, in the hands of the application.
func ExampleExecutor_Use_auth() {
	admin, ex := newDemo()
	ex.Use(auth.Handler("refund", auth.RequestedBy("alice"), auth.Cause("schedule")))
	executor.HandleFunc(ex, "refund", func(ctx context.Context) error { return nil })

	admin.run(ex, "refund", "", func(o *proto.Offer) { o.Cause, o.RequestedBy = "manual", "mallory" })
	// Output: failed permanent refund may not be run here by mallory (cause manual)
}

// When its context ends, Run takes nothing new, lets handlers finish, and
// returns: no attempt is lost by a stop.
func ExampleExecutor_Run() {
	admin, ex := newDemo()
	defer admin.close()
	executor.HandleFunc(ex, "clean-up", func(context.Context) error { return nil })
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in main
	go func() {
		<-ex.Ready()
		stop()
	}()
	fmt.Println(ex.Run(ctx))
	// Output: <nil>
}

// Each concept of the SDK has an example that is compiled, and run if it can be.
func TestEveryConceptHasAnExample(t *testing.T) {
	examples := ""
	for _, pattern := range []string{"*_test.go", "*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			examples += string(source)
		}
	}
	for _, name := range strings.Fields(`New Handle HandleFunc HandleIn HandleOut HandleEnd SuccessFunc
		Job Cron OwnedBy Routing Calendars Blocking Shards BeforeShards Weight Idempotent MaxResult Stuck
		TaskFrom Task InputFrom Logger LogHandler Progress Step Guard GuardStrict Permanent RetryAfter Snooze Cancelled
		Executor_Use Executor_Use_auth Executor_Run Executor_Ready Executor_Health Executor_Stats _cancel
		Call Start Do Interceptor Run`) {
		require.Contains(t, examples, "func Example"+name+"() {", name)
	}
}
