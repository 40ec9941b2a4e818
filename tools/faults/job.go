package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// job is what rows ask for: one definition, for the API and for the judge.
type job struct {
	name, handler string
	input         any
	kind          string // cron, fixed_rate, once, none
	expr          string // cron with seconds
	every         time.Duration
	at            time.Time
	startAt       time.Time
	endAt         time.Time
	misfire       string
	threshold     time.Duration
	blocking      string
	onLost        string
	maxAttempts   int
	timeout       time.Duration
	wait          time.Duration // dispatch timeout
	shards        int           // fixed; 0 = none
}

// Handlers of the witness.
const (
	handlerTick     = "tick"
	handlerTickIdem = "tick-idempotent"
	handlerWork     = "work"
	handlerWorkIdem = "work-idempotent"
	handlerSay      = "say"
	handlerFlood    = "flood"
)

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// body is the job as the API takes it.
func (j job) body(executorID string) apiclient.JobWrite {
	schedule := apiclient.ScheduleWrite{Kind: j.kind}
	switch j.kind {
	case "cron":
		schedule.Expr, schedule.Dialect, schedule.Zone = j.expr, "seconds", "UTC"
	case "fixed_rate":
		schedule.Every = j.every.String()
	case "once":
		schedule.At = stamp(j.at)
	}
	if !j.startAt.IsZero() {
		schedule.StartAt = stamp(j.startAt)
	}
	if !j.endAt.IsZero() {
		schedule.EndAt = stamp(j.endAt)
	}
	body := apiclient.JobWrite{
		Name: j.name, Executor: apiclient.ExecutorChoice{ID: executorID}, Handler: j.handler, Schedule: schedule,
		Misfire: &apiclient.MisfireWrite{Policy: j.misfire, Threshold: j.threshold.String()}, Blocking: j.blocking,
		OnLost: j.onLost, Retry: &apiclient.RetryWrite{MaxAttempts: int64(max(1, j.maxAttempts)), Delay: "100ms"},
		Timeout: j.timeout.String(), DispatchTimeout: j.wait.String(),
	}
	if j.shards > 0 {
		body.Sharding = &apiclient.Sharding{Mode: "fixed", Shards: int64(j.shards)}
	}
	if j.input != nil {
		body.Input = lab.JSON(j.input)
	}
	return body
}

// spec is the job as the judge takes it.
func (j job) spec() *verify.Spec {
	s := &verify.Spec{
		Kind: j.kind, At: verify.At(j.at), StartAt: verify.At(j.startAt), EndAt: verify.At(j.endAt),
		Misfire: j.misfire, Threshold: verify.Span(j.threshold), Blocking: j.blocking,
		MaxAttempts: max(1, j.maxAttempts), OnLost: j.onLost, Wait: verify.Span(j.wait), Shards: j.shards,
	}
	switch j.kind {
	case "cron":
		s.Expr, s.Dialect, s.Zone = j.expr, "seconds", "UTC"
	case "fixed_rate":
		// A fixed rate counts from the begin of its validity.
		s.Every, s.Anchor = verify.Span(j.every), verify.At(j.startAt)
	}
	return s
}

func (j job) withDefaults() job {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&j.kind, "none")
	set(&j.handler, handlerTick)
	set(&j.misfire, "once_now")
	set(&j.blocking, "parallel")
	set(&j.onLost, "fail")
	if j.threshold == 0 {
		j.threshold = 30 * time.Minute
	}
	if j.wait == 0 {
		j.wait = 30 * time.Minute
	}
	return j
}

// tenant is who owns jobs: a stage has one or two.
type tenant struct {
	id         string
	executorID string
	token      string // join token
	api        func(i int) *lab.API
}

// create makes the jobs, eight at a time over all nodes, and writes down each
// call. It returns their ids in order.
func (s *stage) create(ctx context.Context, t *tenant, jobs []job) ([]string, error) {
	ids := make([]string, len(jobs))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, j := range jobs {
		group.Go(func() error {
			j = j.withDefaults()
			invoke := time.Now()
			id, err := t.api(i).MakeJob(ctx, j.body(t.executorID))
			if err != nil {
				return fmt.Errorf("create job %s: %w", j.name, err)
			}
			mu.Lock()
			ids[i] = id
			mu.Unlock()
			if j.kind != "none" {
				s.firing.Store(id, t)
			}
			return s.history.Append(&verify.Call{
				Op: verify.OpCreate, Tenant: t.id, Job: id, Revision: 1,
				Invoke: verify.At(invoke), Ack: verify.At(time.Now()), Spec: j.spec(),
			})
		})
	}
	return ids, group.Wait()
}

// pauseAll ends the load: every job that fires is paused.
func (s *stage) pauseAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	i := 0
	s.firing.Range(func(id, of any) bool {
		i++
		n, t, jobID := i, of.(*tenant), id.(string)
		group.Go(func() error {
			call := &verify.Call{Op: verify.OpPause, Tenant: t.id, Job: jobID, Invoke: verify.At(time.Now())}
			err := lab.Until(ctx, time.Minute, "pause job "+jobID, func(ctx context.Context) error {
				// Under more load than can be carried a node says to try again.
				_, err := t.api(n).PauseJob(ctx, jobID, apiclient.PauseInputBody{})
				return err
			})
			if err != nil {
				return err
			}
			call.Ack = verify.At(time.Now())
			return s.history.Append(call)
		})
		return true
	})
	return group.Wait()
}

// trigger runs a job now and waits for its end at most wait; it returns the
// run's state.
func (s *stage) trigger(ctx context.Context, api *lab.API, t *tenant, jobID string, wait time.Duration) (state string, err error) {
	invoke := time.Now()
	run, err := api.RunJob(ctx, jobID, apiclient.RunJobParams{Wait: wait.String()}, apiclient.RunRequest{})
	call := &verify.Call{Op: verify.OpTrigger, Tenant: t.id, Job: jobID, Invoke: verify.At(invoke), Key: run.Value.ID}
	if err == nil {
		call.Ack = verify.At(time.Now())
	}
	if werr := s.history.Append(call); werr != nil {
		return "", werr
	}
	return run.Value.State, err
}
