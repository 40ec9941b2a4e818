package executor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/metrics"
	"github.com/carillon-sched/carillon/proto"
)

type CloseDay struct {
	Day    string        `json:"day" doc:"the day to close, as 2006-01-02" required:"true"`
	Mode   string        `json:"mode" enum:"full,totals"`
	Budget time.Duration `json:"budget" doc:"how long it may take"`
	Shops  []int64       `json:"shops"`
}

type Report struct {
	Orders int   `json:"orders"`
	Cents  int64 `json:"cents"`
}

func ExampleHandle() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", func(ctx context.Context, in CloseDay) (Report, error) {
		return Report{Orders: 42, Cents: 99_900}, nil
	}, executor.Description("closes the books of a day"))

	admin.run(ex, "close-day", `{"day": "2026-11-20", "budget": "1h30m"}`)
	// Output: succeeded {"orders":42,"cents":99900}
}

// An input that does not fit fails the run before the handler is called, and
// says where.
func ExampleHandle_badInput() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", func(ctx context.Context, in CloseDay) (Report, error) {
		return Report{}, nil
	})

	admin.run(ex, "close-day", `{"day": "2026-11-20", "mod": "full"}`)
	// Output: failed bad_input input: unknown field "mod"; did you mean "mode"?
}

func ExampleHandleFunc() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "clean-up", func(ctx context.Context) error {
		return nil
	})

	admin.run(ex, "clean-up", "")
	// Output: succeeded
}

func ExampleHandleIn() {
	admin, ex := newDemo()
	executor.HandleIn(ex, "close-day", func(ctx context.Context, in CloseDay) error {
		fmt.Println("closing", in.Day)
		return nil
	})

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output:
	// closing 2026-11-20
	// succeeded
}

func ExampleHandleOut() {
	admin, ex := newDemo()
	executor.HandleOut(ex, "count-orders", func(ctx context.Context) (Report, error) {
		return Report{Orders: 42}, nil
	})

	admin.run(ex, "count-orders", "")
	// Output: succeeded {"orders":42,"cents":0}
}

func closeDay(ctx context.Context, in CloseDay) (Report, error) {
	return Report{Orders: len(in.Shops)}, nil
}

func ExampleJob() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Job("close-all-shops",
			executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"),
			executor.Input(CloseDay{Day: "yesterday", Mode: "full"}),
			executor.Retries(2), executor.RetryDelay(time.Minute), executor.Timeout(time.Hour),
			executor.Misfire(executor.OnceNowMisfire), executor.Owner("books@example.com")),
		executor.Job("totals",
			executor.Every(10*time.Minute),
			executor.Input(CloseDay{Day: "today", Mode: "totals"}),
			executor.Blocking(executor.DiscardLater)))

	admin.run(ex, "close-day", `{"day": "2026-11-20", "shops": [1, 2]}`)
	// Output: succeeded {"orders":2,"cents":0}
}

// The code owns the job: the console refuses to edit it, and it is deleted
// when no running version declares it any more.
func ExampleOwnedBy() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Cron("0 0 2 * * *"), executor.OwnedBy(executor.ByCode), executor.WhenRemoved(executor.DeleteRemoved))

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output: succeeded {"orders":0,"cents":0}
}

// How often and how soon a failed run is tried again, what becomes of one whose
// instance died, how it is found, and who is told.
func ExampleRetryBackoff() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Cron("0 0 2 * * *"),
		executor.Retries(5), executor.RetryDelay(time.Second), executor.RetryBackoff(2), executor.MaxRetryDelay(time.Minute),
		executor.DispatchTimeout(30*time.Minute), executor.OnLost(executor.RetryLost),
		executor.JobLabel("team", "books"),
		executor.Owner("books@example.com"), executor.AlertEmails("ops@example.com"), executor.AlertNoExecutor(false))

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output: succeeded {"orders":0,"cents":0}
}

// The job option beside a handler declares one job, named like the handler.
func ExampleCron() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"),
		executor.Input(CloseDay{Day: "yesterday"}), executor.Retries(2))

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output: succeeded {"orders":0,"cents":0}
}

// All runs of one day go to the same instance in Europe, and to the next one
// when that does not take them.
func ExampleRouting() {
	admin, ex := newDemo()
	executor.Handle(ex, "close-day", closeDay,
		executor.Routing(executor.ConsistentHash), executor.HashBy("/day"),
		executor.RequireLabels("zone=eu, !spot"), executor.PreferLabels("cache"),
		executor.SendRetries(5), executor.SendDelay(time.Second))

	admin.run(ex, "close-day", `{"day": "2026-11-20", "shops": [1]}`)
	// Output: succeeded {"orders":1,"cents":0}
}

func ExampleIdempotent() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "refresh-prices", func(ctx context.Context) error {
		return nil // running it twice does no harm
	}, executor.Idempotent())

	admin.run(ex, "refresh-prices", "", granted)
	// Output: succeeded
}

func ExampleTaskFrom() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "charge", func(ctx context.Context) error {
		task := executor.TaskFrom(ctx)
		if task.ShardTotal > 0 {
			fmt.Println("slice", task.ShardIndex, "of", task.ShardTotal)
		}
		fmt.Println("attempt", task.Attempt, "of", task.MaxAttempts, "for", task.FireTime.Format(time.RFC3339))
		return pay(ctx, task.Key()) // the same key in every attempt: charged once
	})

	admin.run(ex, "charge", "")
	// Output:
	// attempt 1 of 3 for 2023-11-14T22:13:20Z
	// paying with key 4711
	// succeeded
}

func ExampleShards() {
	admin, ex := newDemo()
	executor.HandleOut(ex, "count-orders", func(ctx context.Context) (int, error) {
		mine := executor.TaskFrom(ctx).Shard()
		orders := 0
		for id := range uint64(100) {
			if mine.Mine(id) { // every order belongs to exactly one shard
				orders++
			}
		}
		return orders, nil
	}, executor.Cron("0 0 3 * * *"), executor.Shards(4), executor.AfterShards("add-up"))
	executor.HandleFunc(ex, "clear-cache", func(ctx context.Context) error {
		return nil // once on every instance
	}, executor.Every(time.Hour), executor.Broadcast())
	executor.HandleIn(ex, "add-up", func(ctx context.Context, all executor.ShardResults) error {
		fmt.Println(all.Succeeded, "of", all.Total)
		return nil
	})

	admin.run(ex, "count-orders", "", func(o *proto.Offer) { o.Part, o.ShardIndex, o.ShardTotal = "shard", 3, 4 })
	// Output: succeeded 25
}

func pay(_ context.Context, key string) error {
	fmt.Println("paying with key", key)
	return nil
}

func ExampleLogger() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "import", func(ctx context.Context) error {
		log := executor.Logger(ctx).With("file", "orders.csv")
		log.Info("reading", "rows", 1200)
		log.Warn("row skipped", "row", 17, "reason", "no customer")
		return nil
	})

	admin.run(ex, "import", "")
	// Output:
	// log: INFO reading {"file":"orders.csv","rows":1200}
	// log: WARN row skipped {"file":"orders.csv","row":17,"reason":"no customer"}
	// succeeded
}

func ExampleLogHandler() {
	admin, ex := newDemo()
	// Usually in main: slog.SetDefault(logger).
	logger := slog.New(executor.LogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	executor.HandleFunc(ex, "import", func(ctx context.Context) error {
		logger.InfoContext(ctx, "goes to the application's log and to the run's")
		return nil
	})

	admin.run(ex, "import", "")
	// Output:
	// log: INFO goes to the application's log and to the run's
	// succeeded
}

var errNoOrder = errors.New("order 17 does not exist")

func ExamplePermanent() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "cancel-order", func(ctx context.Context) error {
		return executor.Permanent(errNoOrder) // no retry can mend this
	})

	admin.run(ex, "cancel-order", "")
	// Output: failed permanent order 17 does not exist
}

func ExampleRetryAfter() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "sync-stock", func(ctx context.Context) error {
		return executor.RetryAfter(errors.New("the warehouse is closed"), 2*time.Hour)
	})

	admin.run(ex, "sync-stock", "")
	// Output: failed retryable the warehouse is closed
}

func ExampleExecutor_Use() {
	admin, ex := newDemo()
	ex.Use(func(ctx context.Context, next executor.Next) error {
		err := next(ctx)
		executor.Logger(ctx).Info("ended", "handler", executor.TaskFrom(ctx).Handler, "kind", executor.KindOf(err))
		return err
	})
	executor.HandleFunc(ex, "clean-up", func(ctx context.Context) error {
		return nil
	})

	admin.run(ex, "clean-up", "")
	// Output:
	// log: INFO ended {"handler":"clean-up","kind":"succeeded"}
	// succeeded
}

// A cancelled context says why in context.Cause.
func Example_cancel() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "import", func(ctx context.Context) error {
		for row := 0; ; row++ {
			select {
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), executor.ErrTimeout) {
					fmt.Println("out of time, keeping what is done")
				}
				return context.Cause(ctx)
			case <-time.After(time.Millisecond): // work on one row
			}
		}
	})

	admin.run(ex, "import", "", func(o *proto.Offer) { o.TimeoutMs = 20 })
	// Output:
	// out of time, keeping what is done
	// timed_out timeout timed out
}

func ExampleExecutor_Stats() {
	admin, ex := newDemo()
	defer admin.close()
	mux := http.NewServeMux()
	mux.Handle("/metrics/carillon", metrics.Handler(ex))
	fmt.Println(ex.Stats().Running, "handlers run")
	// Output: 0 handlers run
}

func ExampleExecutor_Health() {
	admin, ex := newDemo()
	defer admin.close()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ex.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
	fmt.Print(answer.Code, " ", answer.Body)
	// Output: 503 executor: not running
}

func ExampleNew() {
	_, err := executor.New(executor.Config{
		Name:      "shop",
		Addresses: []string{"admin-1.internal:7070", "admin-2.internal:7070"},
		Token:     "cjt_…", // better from CARILLON_EXECUTOR_TOKEN
		TLS:       &executor.TLS{CAFile: "/etc/carillon/ca.pem"},
		Labels:    map[string]string{"zone": "eu-1"},
		Slots:     32,
	})
	fmt.Println(err)
	// Output: executor config: read TLS authorities: open /etc/carillon/ca.pem: no such file or directory
}

func ExampleExecutor_Ready() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "clean-up", func(context.Context) error { return nil })
	registered := make(chan struct{})
	go func() {
		defer close(registered)
		<-ex.Ready()
	}()

	admin.run(ex, "clean-up", "")
	<-registered
	fmt.Println("was registered")
	// Output:
	// succeeded
	// was registered
}
