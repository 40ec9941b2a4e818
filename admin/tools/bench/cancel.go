package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// cancelTrials is how many handlers are stopped in each way, by
	// cancelWorkers at once.
	cancelTrials      = 300
	cancelTrialsQuick = 60
	cancelWorkers     = 4
	// cancelTimeout is the timeout of the job whose handlers are to meet it.
	cancelTimeout = 300 * time.Millisecond
	// cancelWithin bounds the wait for each step of a trial.
	cancelWithin = time.Minute
	// cancelPoll is how often a run is looked at; what is measured are its stamps.
	cancelPoll = 10 * time.Millisecond
)

// stopping is a way to stop a handler that listens: how its job is made, and
// what makes it stop.
type stopping struct {
	variant, state, reason string
	job                    apiclient.JobWrite
	// stop asks for the end, and returns since when it was due; nil: the end is
	// due cancelTimeout after the start.
	stop func(ctx context.Context, api *lab.API, job string, r *apiclient.RunDetail) (time.Time, error)
	// again says that another run of the job is there, which has to be killed.
	again bool
}

var stoppings = []stopping{
	{variant: "kill", state: "cancelled", reason: "killed", job: apiclient.JobWrite{Blocking: "parallel"}, stop: killRun},
	{
		variant: "timeout", state: "timed_out", reason: "timeout", job: apiclient.JobWrite{Blocking: "parallel", Timeout: cancelTimeout.String()},
	},
	{
		variant: "cover early", state: "cancelled", reason: "covered", job: apiclient.JobWrite{Blocking: "cover_early"}, again: true,
		stop: func(ctx context.Context, api *lab.API, job string, r *apiclient.RunDetail) (began time.Time, err error) {
			began = time.Now()
			next, err := api.RunNow(ctx, job)
			r.ID = next
			return began, err
		},
	},
}

func killRun(ctx context.Context, api *lab.API, _ string, r *apiclient.RunDetail) (time.Time, error) {
	began := time.Now()
	_, err := api.CancelRun(ctx, r.ID, apiclient.CancelRunInputBody{Reason: "bench"})
	return began, err
}

// cancel measures how long it takes from the wish that a handler ends until the
// row says that it has. With a server there are two nodes, asked in turn.
func (b *bench) cancel() (parts []part) {
	usual := 20 * time.Second
	if b.o.Quick {
		usual = 15 * time.Second
	}
	for _, kind := range b.o.databases(b.o.Quick) {
		admins := 2
		if kind == SQLite {
			admins = 1
		}
		for _, s := range stoppings {
			parts = append(parts, part{
				result: Result{Scenario: "cancel", Variant: s.variant, Database: kind, Admins: admins},
				usual:  usual,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, admins, func(f *fleet) error { return f.cancel(ctx, s, r) })
				},
			})
		}
	}
	return parts
}

// cancel stops handlers in one way.
func (f *fleet) cancel(ctx context.Context, s stopping, r *Result) error {
	trials := cancelTrials
	if f.b.o.Quick {
		trials = cancelTrialsQuick
	}
	var mu sync.Mutex
	var took []float64 // guarded by mu; ms
	group, ctx := errgroup.WithContext(ctx)
	for w := range cancelWorkers {
		group.Go(func() error {
			api := f.lab.Admins[w%len(f.lab.Admins)].API
			job, err := f.stoppedJob(ctx, api, s, w)
			if err != nil {
				return err
			}
			for range trials / cancelWorkers {
				ms, err := s.trial(ctx, api, job)
				if err != nil {
					return err
				}
				mu.Lock()
				took = append(took, ms)
				mu.Unlock()
			}
			return nil
		})
	}
	err := group.Wait()
	r.Elapsed = spreadOf(took)
	return err
}

func (f *fleet) stoppedJob(ctx context.Context, api *lab.API, s stopping, worker int) (string, error) {
	job := s.job
	job.Name, job.Handler = fmt.Sprintf("%s %d", s.variant, worker), handlerListens
	job.Executor.ID, job.Schedule = f.executor.String(), apiclient.ScheduleWrite{Kind: "none", Zone: "UTC"}
	return api.MakeJob(ctx, job)
}

// trial starts a run, has it stopped once its handler runs, and returns after
// how many milliseconds the row said so.
func (s *stopping) trial(ctx context.Context, api *lab.API, job string) (float64, error) {
	id, err := api.RunNow(ctx, job)
	if err != nil {
		return 0, err
	}
	r, err := awaitRun(ctx, api, id, func(r *apiclient.RunDetail) bool { return r.State == "running" })
	if err != nil {
		return 0, err
	}
	var began time.Time
	if s.stop != nil {
		if began, err = s.stop(ctx, api, job, &r); err != nil {
			return 0, err
		}
	}
	ended, err := awaitRun(ctx, api, id, func(r *apiclient.RunDetail) bool { return r.FinishedAt != nil })
	if err != nil {
		return 0, err
	}
	if ended.State != s.state || ended.Reason != s.reason || ended.Lingers {
		return 0, fmt.Errorf("run %s ended as %s (%s), lingers: %t", id, ended.State, ended.Reason, ended.Lingers)
	}
	if s.stop == nil && ended.StartedAt != nil {
		began = ended.StartedAt.Add(cancelTimeout)
	}
	if s.again {
		if _, err := killRun(ctx, api, job, &r); err != nil {
			return 0, err
		}
		if _, err := awaitRun(ctx, api, r.ID, func(r *apiclient.RunDetail) bool { return r.FinishedAt != nil }); err != nil {
			return 0, err
		}
	}
	return millisOf(ended.FinishedAt.Sub(began)), nil
}

// awaitRun polls a run until it is as wanted.
func awaitRun(ctx context.Context, api *lab.API, id string, as func(*apiclient.RunDetail) bool) (r apiclient.RunDetail, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cancelWithin, fmt.Errorf("run %s has not moved for %s", id, cancelWithin))
	defer cancel()
	for {
		d, err := api.GetRun(ctx, id)
		if err != nil {
			return r, err
		}
		if r = d.Value; as(&r) {
			return r, nil
		}
		if err := pause(ctx, cancelPoll); err != nil {
			return r, fmt.Errorf("%w; it is %s", err, r.State)
		}
	}
}
