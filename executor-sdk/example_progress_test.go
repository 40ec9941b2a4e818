package executor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

type Receipt struct {
	Number string `json:"number"`
}

func charge(context.Context) (Receipt, error) { return Receipt{"R-17"}, nil }

func sendMail(_ context.Context, r Receipt) error {
	fmt.Println("mail with receipt", r.Number)
	return nil
}

// A step is done once per run: a retry, or an instance that takes the run over,
// gets its result instead of doing it again.
func ExampleStep() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "order", func(ctx context.Context) error {
		receipt, err := executor.Step(ctx, "charge", charge)
		if err != nil {
			return err
		}
		return sendMail(ctx, receipt) // fails and is tried again: the card is not charged twice
	})

	admin.run(ex, "order", "")
	// Output:
	// mail with receipt R-17
	// succeeded
}

func ExampleProgress() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "import", func(ctx context.Context) error {
		files := []string{"a.csv", "b.csv"}
		for i, file := range files {
			executor.Progress(ctx, 100*float64(i)/float64(len(files)), "reading "+file)
		}
		executor.Progress(ctx, 100, "done")
		return nil
	})

	admin.run(ex, "import", "")
	// Output: succeeded
}

// Guard is asked right before an effect that must not happen twice.
func ExampleGuard() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "pay-out", func(ctx context.Context) error {
		if err := executor.Guard(ctx); err != nil {
			return err // killed, out of time, or given to another instance
		}
		return pay(ctx, executor.TaskFrom(ctx).Key())
	})

	admin.run(ex, "pay-out", "")
	// Output:
	// paying with key 4711
	// succeeded
}

func ExampleGuardStrict() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "pay-out", func(ctx context.Context) error {
		if err := executor.GuardStrict(ctx); err != nil { // asks an admin node
			return err
		}
		return pay(ctx, executor.TaskFrom(ctx).Key())
	})

	admin.run(ex, "pay-out", "")
	// Output:
	// paying with key 4711
	// succeeded
}

func ExampleSnooze() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "import", func(ctx context.Context) error {
		return executor.Snooze(10 * time.Minute) // the file is not there yet
	})

	admin.run(ex, "import", "")
	// Output: failed snoozed snoozed for 10m0s
}

func ExampleCancelled() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "remind", func(ctx context.Context) error {
		return executor.Cancelled(errors.New("the customer has paid"))
	})

	admin.run(ex, "remind", "")
	// Output: cancelled cancelled the customer has paid
}

func ExampleWeight() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "render-video", func(ctx context.Context) error {
		return nil
	}, executor.Weight(3)) // of Config.Slots

	admin.run(ex, "render-video", "")
	// Output: succeeded
}

// The callbacks of a job are handlers that run after its runs have ended.
func ExampleHandleEnd() {
	admin, ex := newDemo()
	executor.HandleEnd(ex, "books-closed", func(ctx context.Context, run executor.Ended) error {
		var report Report
		if err := run.DecodeOutput(&report); err != nil {
			return err
		}
		fmt.Println("run", run.RunID, "of", run.Job, "found", report.Orders, "orders")
		return nil
	})
	executor.HandleEnd(ex, "books-open", executor.FailureFunc(func(ctx context.Context, cause error) error {
		return nil // tell somebody
	}))
	executor.Handle(ex, "close-day", closeDay, executor.OnSuccess("books-closed"), executor.OnFailure("books-open"))

	admin.run(ex, "books-closed", `{"runId": "17", "job": "close-day", "state": "succeeded", "output": {"orders": 3}}`)
	// Output:
	// run 17 of close-day found 3 orders
	// succeeded
}

func ExampleInputFrom() {
	admin, ex := newDemo()
	ex.Use(func(ctx context.Context, next executor.Next) error {
		fmt.Println("called with", string(executor.InputFrom(ctx)))
		return next(ctx)
	})
	executor.Handle(ex, "close-day", closeDay)

	admin.run(ex, "close-day", `{"day": "2026-11-20"}`)
	// Output:
	// called with {"day": "2026-11-20"}
	// succeeded {"orders":0,"cents":0}
}

// A result that is too large fails the run instead of filling the database.
func ExampleMaxResult() {
	admin, ex := newDemo()
	executor.HandleOut(ex, "export", func(ctx context.Context) ([]string, error) {
		return []string{"one.csv", "two.csv"}, nil
	}, executor.MaxResult(16))

	admin.run(ex, "export", "")
	// Output: failed output_too_large output has 21 bytes, the limit is 16
}

// A handler that calls a library which knows no context: a run that goes on
// beyond its timeout is reported after a second, and the process ends
// for its supervisor to start it anew, since nothing else frees the slot.
func ExampleStuck() {
	admin, ex := newDemo()
	executor.HandleFunc(ex, "scan", func(ctx context.Context) error {
		return nil
	}, executor.Timeout(time.Minute), executor.KillGrace(time.Second), executor.Stuck(executor.RestartProcess))

	admin.run(ex, "scan", "")
	// Output: succeeded
}
