package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/command/cli"
	"github.com/carillon-sched/carillon/cmd/carillon/internal/output"
	"github.com/carillon-sched/carillon/internal/apiclient"
)

// Pace of asking while a run goes on. The log is asked with a long poll, so
// the server sets the pace; states are asked in growing steps.
const (
	logWait      = "20s"
	firstPoll    = 200 * time.Millisecond
	slowestPoll  = 3 * time.Second
	brokenTries  = 5
	brokenPauses = 2 * time.Second
)

// await waits for a run's end, shows its log meanwhile if follow is set, and
// returns the run's result as the exit code.
func await(ctx context.Context, a *cli.App, s *cli.Session, id string, follow bool, timeout time.Duration) error {
	waitCtx := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		waitCtx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var err error
	if follow {
		err = followLog(waitCtx, a, s, id, &logQuery{GetRunLogParams: apiclient.GetRunLogParams{Wait: logWait}})
	}
	var run apiclient.Doc[apiclient.RunDetail]
	if err == nil {
		run, err = pollRun(waitCtx, a, s, id)
	}
	switch {
	case err == nil:
		return conclude(a, s, run, follow)
	case ctx.Err() != nil:
		a.Say("Interrupted; the run goes on. Stop it with: carillon run cancel %s", id)
		return cli.Fail(cli.ExitInterrupted, nil)
	case waitCtx.Err() != nil:
		a.Say("Waited %s; the run goes on. See: carillon run get %s", timeout, id)
		return cli.Fail(cli.ExitTimedOut, nil)
	default:
		return err
	}
}

// pollRun asks until the run has ended. A server that does not answer for a
// moment (a restart, a failover) does not end the wait.
func pollRun(ctx context.Context, a *cli.App, s *cli.Session, id string) (apiclient.Doc[apiclient.RunDetail], error) {
	pause := firstPoll
	for {
		run, err := retried(ctx, func() (apiclient.Doc[apiclient.RunDetail], error) { return s.GetRun(ctx, id) })
		if err != nil || finished(run.Value.State) {
			return run, err
		}
		if err := sleep(ctx, pause); err != nil {
			return run, err
		}
		pause = min(pause*3/2, slowestPoll)
	}
}

// retried asks again when no answer came or the server was not available.
func retried[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		value, err := ask()
		if err == nil || try == brokenTries || !transient(err) {
			return value, err
		}
		if sleepErr := sleep(ctx, brokenPauses); sleepErr != nil {
			return value, err
		}
	}
}

func transient(err error) bool {
	if p, ok := errors.AsType[*apiclient.Problem](err); ok {
		return p.Status == 429 || p.Status >= 500
	}
	_, ok := errors.AsType[*apiclient.TransportError](err)
	return ok
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// conclude prints the finished run. With follow standard output holds the log
// alone, so the end is talk.
func conclude(a *cli.App, s *cli.Session, run apiclient.Doc[apiclient.RunDetail], follow bool) error {
	r := run.Value
	text := fmt.Sprintf("Run %s %s", r.ID, r.State)
	if r.DurationMs != nil {
		text += " after " + output.Millis(r.DurationMs)
	}
	if r.State != succeeded && r.Message != "" {
		text += ": " + output.Clean(r.Message)
	}
	if r.State != succeeded && r.Error != "" && !strings.Contains(r.Message, r.Error) {
		text += ": " + output.Clean(r.Error)
	}
	a.Say("%s", text)
	if !follow {
		if err := describeRun(a, s, run); err != nil {
			return err
		}
	}
	if r.State == succeeded {
		return nil
	}
	return cli.Fail(cli.ExitFailed, nil)
}
