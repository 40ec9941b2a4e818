package completer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Result is one reported attempt.
type Result struct {
	store.AttemptReport
	From Acker
}

// Acker takes the acknowledgements of one session.
type Acker interface {
	SendAcks(acks []Ack)
	// Unacked is told how many results will not be acknowledged.
	Unacked(n int)
	// Closed reports whether the session has ended.
	Closed() bool
}

// Ack tells the executor what became of a result.
type Ack struct {
	ID    domain.ExecutionID
	Fence int64
	Code  store.FinishCode
	// StillRunning is as reported: an attempt may have two results.
	StillRunning bool
}

// Runs reads runs for those who wait for their end.
type Runs interface {
	EndedAmong(ctx context.Context, tenant domain.TenantID, ids []domain.ExecutionID) ([]domain.ExecutionID, error)
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error)
}

// Options configures a Completer.
type Options struct {
	Store store.Executions
	// Runs is asked while somebody waits; nil: nobody does.
	Runs Runs
	// Progress keeps what handlers tell while they run; nil: they are not heard.
	Progress store.Progress
	// Later takes executions that may be offered (again) at their NotBefore.
	Later  func(...domain.Execution)
	Logger *slog.Logger
	// FlushLimit bounds the transactions under way for tenants with a backlog,
	// while others come too; nil: not.
	FlushLimit *batch.FlushLimit
	// Backpressure counts the results that wait; may be nil.
	Backpressure *batch.Backpressure
	// Ended is called for executions that a report moved on; may be nil.
	Ended func([]domain.Execution)
	// Returned is called for executions that had ended before, and whose handler
	// runs no more only now; may be nil.
	Returned func([]domain.Execution)
	// After calls f in d, from anywhere; nil: by a timer of the runtime.
	After func(d time.Duration, f func())
}

// Completer stores results. Create it with New, run it with Run.
type Completer struct {
	opt     Options
	log     *slog.Logger
	results *batch.Queue[Result]
	arrived arrived
	starts  starts
	hub     hub

	steps    *batch.Queue[Step]
	progress progress
}

// resultPace is how far apart results are written while many come: nothing but
// the next run of the same job waits for them (docs/adr/0031).
const resultPace = 8 * time.Millisecond

// New returns a Completer; it starts nothing.
func New(opt Options) *Completer {
	if opt.Ended == nil {
		opt.Ended = func([]domain.Execution) {}
	}
	if opt.Returned == nil {
		opt.Returned = func([]domain.Execution) {}
	}
	if opt.After == nil {
		opt.After = func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	}
	c := &Completer{opt: opt, log: opt.Logger.With("component", "completer")}
	c.results = batch.NewFair(ResultWorkers, ResultBatch, inTurn, c.finish)
	c.steps = batch.NewFair(1, StepBatch, func(s *Step) batch.Place { return batch.Place{Owner: int64(s.Tenant)} }, c.answer)
	c.results.Pace(resultPace)
	c.results.Guards(func(r Result, err error) {
		c.setAside(r.Report.ExecutionID, err)
		r.From.Unacked(1)
	})
	c.steps.Guards(func(s Step, err error) {
		c.log.Error("a question of a handler cannot be answered", "execution_id", s.ID, "err", err)
		s.From.Unanswered(1)
	})
	if opt.FlushLimit != nil {
		c.results.LimitFlushes(opt.FlushLimit)
	}
	if opt.Backpressure != nil {
		c.results.CountsInto(opt.Backpressure)
	}
	return c
}

// inTurn lets tenants share the queue in equal parts (docs/adr/0009).
func inTurn(r *Result) batch.Place { return batch.Place{Owner: int64(r.Tenant)} }

// Run works until ctx ends; results that are queued then are still stored.
func (c *Completer) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { c.results.Run(ctx) })
	wg.Go(func() { every(ctx, StartEvery, c.WriteStarts) })
	wg.Go(func() { c.steps.Run(ctx) })
	wg.Go(func() { every(ctx, progressEvery, c.writeProgress) })
	wg.Go(func() { every(ctx, pollEvery, c.poll) })
	wg.Wait()
}

// Results is the queue that Run works off.
func (c *Completer) Results() batch.Worker { return c.results }

// Finished takes results. It never blocks.
func (c *Completer) Finished(results ...Result) {
	for i := range results {
		r := &results[i]
		c.starts.forget(startKey{r.Tenant, r.Report.ExecutionID, r.Report.Fence}) // the result tells it
	}
	c.arrived.enter(results)
	c.results.Add(results...)
}

// Reported names those of the runs whose result is here and not written yet, by
// who sent it.
func (c *Completer) Reported(ids []domain.ExecutionID) []store.ReportedRun {
	return c.arrived.among(ids)
}

// retryAfter is the pause before results are tried again that the database
// did not take.
const retryAfter = 500 * time.Millisecond

// setAside ends a run whose result this node cannot handle.
func (c *Completer) setAside(id domain.ExecutionID, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), setAsideTime)
	defer cancel()
	if err := c.opt.Store.SetAside(ctx, map[domain.ExecutionID]error{id: why}); err != nil {
		c.log.Error("an execution cannot be set aside", "execution_id", id, "err", err)
	}
}

// setAsideTime bounds how long that may take; the executor reports again.
const setAsideTime = 5 * time.Second

// finish is the flush of the results.
func (c *Completer) finish(ctx context.Context, results []Result) {
	reports := make([]store.AttemptReport, len(results))
	for i, r := range results {
		reports[i] = r.AttemptReport
	}
	// Stopping does not break off a transaction: its outcome would be unknown.
	finished, err := c.opt.Store.FinishAttempts(context.WithoutCancel(ctx), reports)
	c.arrived.leave(results)
	if err != nil {
		c.log.Warn("results could not be stored", "count", len(results), "err", err)
		c.again(results)
		return
	}
	var acks batch.Groups[Acker, Ack]
	ended := make([]domain.Execution, 0, len(finished))
	var later, returned []domain.Execution
	for i, f := range finished {
		r := results[i]
		acks.Add(r.From, Ack{ID: r.Report.ExecutionID, Fence: r.Report.Fence, Code: f.Code, StillRunning: r.Report.StillRunning})
		later = append(later, f.Woken...)
		ended = append(ended, f.Ended...)
		if f.Code == store.FinishReturned {
			returned = append(returned, f.Execution)
		}
		if f.Code != store.FinishStored {
			continue
		}
		ended = append(ended, f.Execution)
		if !f.Execution.State.Terminal() {
			later = append(later, f.Execution) // a retry
		}
	}
	for _, g := range acks {
		g.Key.SendAcks(g.Items)
	}
	c.opt.Later(later...)
	c.Ended(ended)
	c.opt.Returned(returned)
}

// Ended tells waiters and observers about executions that ended or moved to a
// retry, whoever moved them.
func (c *Completer) Ended(executions []domain.Execution) {
	if len(executions) == 0 {
		return
	}
	c.hub.publish(executions)
	c.opt.Ended(executions)
}

// every calls round after each interval, until ctx ends.
func every(ctx context.Context, interval time.Duration, round func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		round(ctx)
	}
}

// again queues results once more after a pause, those of live sessions only:
// an executor that has gone sends them again by itself.
func (c *Completer) again(results []Result) {
	live := results[:0]
	for _, r := range results {
		if r.From.Closed() {
			r.From.Unacked(1)
		} else {
			live = append(live, r)
		}
	}
	if len(live) > 0 {
		c.opt.After(retryAfter, func() { c.Finished(live...) })
	}
}
