package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// load starts the steady load: n jobs that fire every second, and returns when
// the first fire time is there. Half of them fire together on the full second,
// the others are spread over it. Every third handler is registered idempotent
// and its job repeats what was lost; the others never repeat. A fire time
// counts as on time for half an hour: each of them has to be run.
func (s *stage) load(ctx context.Context, n int) error {
	start := time.Now().Truncate(time.Second)
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = steadyJob(i, n, start)
	}
	return s.begin(ctx, jobs)
}

// loadWithShards is load with every tenth job cut into shards, each of which is
// a target by itself.
func (s *stage) loadWithShards(ctx context.Context, n int) error {
	start := time.Now().Truncate(time.Second)
	jobs := make([]job, n)
	for i := range jobs {
		if jobs[i] = steadyJob(i, n, start); i%10 == 1 {
			jobs[i].shards = 3
		}
	}
	return s.begin(ctx, jobs)
}

// mixedJobs are n jobs of the steady load, and beside them handlers that are
// always under way.
func mixedJobs(n int) []job {
	start := time.Now().Truncate(time.Second)
	jobs := workJobs(20, time.Second, 2500, start)
	for i := range n {
		jobs = append(jobs, steadyJob(i, n, start))
	}
	return jobs
}

// begin makes jobs that fire from their creation on. Fire times are judged
// from the moment at which all of them are there.
func (s *stage) begin(ctx context.Context, jobs []job) error {
	if _, err := s.create(ctx, s.tenant, jobs); err != nil {
		return err
	}
	s.from = time.Now().Truncate(time.Second).Add(2 * time.Second)
	if err := waitUntil(ctx, s.from.Add(2*time.Second)); err != nil {
		return err
	}
	return s.rest(ctx)
}

func steadyJob(i, n int, from time.Time) job {
	j := job{name: fmt.Sprintf("steady-%04d", i), startAt: from}
	if i%2 == 0 {
		j.kind, j.expr = "cron", "* * * * * *"
	} else {
		j.kind, j.every = "fixed_rate", time.Second
		j.startAt = from.Add(time.Duration(i) * time.Second / time.Duration(n)).Truncate(time.Millisecond)
	}
	if i%3 == 0 {
		j.handler, j.onLost, j.maxAttempts = handlerTickIdem, "retry", 5
	}
	return j
}

// rest notes what admin nodes hold under the load before anything breaks.
func (s *stage) rest(ctx context.Context) error {
	s.atRest = nil
	for _, a := range s.fleet.Admins {
		m, err := a.API.Metrics(ctx)
		if err != nil {
			return err
		}
		s.atRest = append(s.atRest, m)
	}
	return nil
}

// Room for what breathes with the load: connections of the database pool and
// of clients, and the goroutines that serve them.
const (
	moreFiles      = 40
	moreGoroutines = 120
)

// healthy checks the promise of every row: all nodes serve, all executors are
// there, a run through each node succeeds, and nothing has leaked.
func (s *stage) healthy(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("not healthy after heal: %w", err)
	}
	for _, a := range s.fleet.Admins {
		state, err := s.trigger(ctx, a.API, s.tenant, s.canary, 20*time.Second)
		if err != nil || state != "succeeded" {
			return errors.Join(fmt.Errorf("not healthy after heal: a run through %s is %q", a.Name, state), err, s.showLeft(ctx))
		}
	}
	return s.leaks(ctx)
}

func (s *stage) leaks(ctx context.Context) error {
	for i, a := range s.fleet.Admins {
		before := s.atRest[i]
		err := lab.Until(ctx, 30*time.Second, "nothing leaked", func(ctx context.Context) error {
			now, err := a.API.Metrics(ctx)
			if err != nil {
				return err
			}
			files := now["process_open_fds"] - before["process_open_fds"]
			routines := now["go_goroutines"] - before["go_goroutines"]
			if files > moreFiles || routines > moreGoroutines {
				return fmt.Errorf("%s has %.0f open files and %.0f goroutines more than before the faults", a.Name, files, routines)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
