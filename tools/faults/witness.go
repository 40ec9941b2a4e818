package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// workInput says what the work handlers do.
type workInput struct {
	Ms       int64 `json:"ms"`                 // how long it works
	Stubborn bool  `json:"stubborn,omitempty"` // it does not listen to its context
	Deadlock bool  `json:"deadlock,omitempty"` // it waits for itself for Ms, holding nothing of the SDK's
}

// witness is an executor whose handlers write down that they ran: one line
// before they do anything else, one before they return.
func witness(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("executor", flag.ContinueOnError)
	name := flags.String("name", "witness", "executor name")
	instance := flags.String("instance", "", "instance name")
	addresses := flags.String("addr", "", "admin addresses, comma-separated")
	journal := flags.String("journal", "", "journal directory")
	history := flags.String("history", "", "history folder")
	slots := flags.Int("slots", 500, "handlers at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out, err := verify.CreateFile(*history, "witness-"+*instance)
	if err != nil {
		return err
	}
	ex, err := witnessExecutor(out, executor.Config{
		Name: *name, Addresses: strings.Split(*addresses, ","), Token: executor.Secret(os.Getenv("CARILLON_EXECUTOR_TOKEN")),
		JournalDir: *journal, Slots: *slots, InstanceName: *instance, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	return ex.Run(ctx)
}

// swept is many witnesses in one process, whose connections are reset all the
// time. Each is given up after a while and begins again, as a restarted
// process does, because the pauses between its tries have grown.
func swept(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("swept", flag.ContinueOnError)
	addresses := flags.String("addr", "", "admin addresses, comma-separated")
	journal := flags.String("journal", "", "journal directory")
	history := flags.String("history", "", "history folder")
	n := flags.Int("n", 10, "executors")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out, err := verify.CreateFile(*history, "witness-swept")
	if err != nil {
		return err
	}
	return everyOne(*n, func(i int) error {
		name := fmt.Sprintf("swept-%02d", i)
		for ctx.Err() == nil {
			ex, err := witnessExecutor(out, executor.Config{
				Name: "witness", Addresses: strings.Split(*addresses, ","), Token: executor.Secret(os.Getenv("CARILLON_EXECUTOR_TOKEN")),
				JournalDir: filepath.Join(*journal, name), Slots: 100, InstanceName: name, Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				return err
			}
			life, cancel := context.WithTimeout(ctx, 3*time.Second)
			err = ex.Run(life)
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func witnessExecutor(out *verify.Writer, config executor.Config) (*executor.Executor, error) {
	ex, err := executor.New(config)
	if err != nil {
		return nil, err
	}
	w := &witnessed{out: out, boot: config.InstanceName + "." + rand.Text()}
	tick := func(ctx context.Context) error {
		return w.record(ctx, func() bool { return false })
	}
	work := func(ctx context.Context, in workInput) error {
		return w.record(ctx, func() bool { return in.do(ctx) })
	}
	say := func(ctx context.Context) error {
		return w.record(ctx, func() bool {
			executor.Logger(ctx).Info("the run says so", "key", executor.TaskFrom(ctx).Key())
			return false
		})
	}
	flood := func(ctx context.Context, in workInput) error {
		return w.record(ctx, func() bool { return in.flood(ctx) })
	}
	executor.HandleFunc(ex, handlerSay, say)
	executor.HandleIn(ex, handlerFlood, flood)
	executor.HandleFunc(ex, handlerTick, tick)
	executor.HandleFunc(ex, handlerTickIdem, tick, executor.Idempotent())
	executor.HandleIn(ex, handlerWork, work)
	executor.HandleIn(ex, handlerWorkIdem, work, executor.Idempotent())
	return ex, nil
}

// workStep is one piece of work: what a frozen process does not get done.
const workStep = 20 * time.Millisecond

// do works and tells whether it was cancelled.
func (in workInput) do(ctx context.Context) bool {
	if in.Stubborn || in.Deadlock {
		<-time.After(time.Duration(in.Ms) * time.Millisecond)
		return false
	}
	step := time.NewTicker(workStep)
	defer step.Stop()
	for range in.Ms / workStep.Milliseconds() {
		select {
		case <-step.C:
		case <-ctx.Done():
			return true
		}
	}
	return ctx.Err() != nil
}

// flood logs floodRate for Ms, as far as the logger lets it.
func (in workInput) flood(ctx context.Context) bool {
	log := executor.Logger(ctx)
	began := time.Now()
	for lines := 0; ctx.Err() == nil; lines++ {
		if lines%100 == 0 {
			spent := time.Since(began)
			if spent >= time.Duration(in.Ms)*time.Millisecond {
				return false
			}
			ahead := time.Duration(float64(lines*floodLine)/floodRate*float64(time.Second)) - spent
			if ahead > time.Millisecond {
				<-time.After(ahead)
			}
		}
		log.Info("flood", "text", floodText)
	}
	return true
}

type witnessed struct {
	out  *verify.Writer
	boot string
}

func (w *witnessed) record(ctx context.Context, do func() (cancelled bool)) error {
	t := executor.TaskFrom(ctx)
	run := &verify.Run{
		Job: strconv.FormatInt(t.JobID, 10), Key: t.Key(), Fence: t.Fence, Boot: w.boot,
		Tenant: strconv.FormatInt(t.TenantID, 10), Shard: t.ShardIndex, Start: verify.At(time.Now()),
		Attempt: t.Attempt, FireAt: verify.At(t.FireTime),
	}
	if err := w.out.Append(run); err != nil {
		return err
	}
	run.Cancelled = do()
	run.Failed = run.Cancelled // it returns its cause
	cause := context.Cause(ctx)
	run.Stopped = run.Cancelled && (errors.Is(cause, executor.ErrStopping) || errors.Is(cause, executor.ErrLeaseLost))
	run.End = verify.At(time.Now())
	if err := w.out.Append(run); err != nil {
		return err
	}
	if run.Cancelled {
		return context.Cause(ctx)
	}
	return nil
}
