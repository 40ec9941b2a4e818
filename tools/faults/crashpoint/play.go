package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// mode is what the job and its handler promise.
type mode struct{ name, handler, onLost string }

var (
	modeFail       = mode{"fail", "work", "fail"}
	modeRetry      = mode{"retry", "work", "retry"}
	modeIdempotent = mode{"idempotent", "work-idempotent", "auto"}
)

// maxAttempts of every job.
const maxAttempts = 3

// input mirrors the worker's.
type input struct {
	Ms       int64 `json:"ms"`
	First    int64 `json:"first,omitempty"`
	Fail     int   `json:"fail,omitempty"`
	Stubborn bool  `json:"stubborn,omitempty"`
}

// scenario is one cell: how to play it.
type scenario struct {
	arrow, point string
	mode         mode
	goal         time.Duration
	slow         bool // waits for a lease to run out
	play         func(ctx context.Context, p *play) error
}

// want is how a run has to end.
type want struct {
	state   string
	attempt int
	starts  int
	// orStart allows one start more: nobody can tell whether the process died
	// before or after it called the handler.
	orStart bool
}

// play is one cell being played.
type play struct {
	*stage
	scenario
	cell Cell
	job  string

	mu      sync.Mutex
	dead    bool      // guarded by mu: nobody starts admins again meanwhile
	crashes int       // guarded by mu: admin processes that ended
	crashed time.Time // guarded by mu: when the last one did
	outages []outage  // guarded by mu: when no admin node was ready
}

type outage struct{ from, to time.Time }

// cellLimit bounds one cell.
const cellLimit = 2 * time.Minute

func (s *stage) play(ctx context.Context, c scenario) Cell {
	p := &play{stage: s, scenario: c, cell: Cell{
		Database: s.database, Arrow: c.arrow, Point: c.point, Mode: c.mode.name, Goal: c.goal,
	}}
	if len(s.fleet.Admins) == 1 {
		p.cell.Goal += reconnect // the executor has to find the only node again
	}
	ctx, cancel := context.WithTimeout(ctx, cellLimit)
	defer cancel()
	guarded, stopGuard := context.WithCancel(ctx)
	var guard sync.WaitGroup
	guard.Go(func() { p.guard(guarded) })
	err := c.play(ctx, p)
	stopGuard()
	guard.Wait()
	if err == nil {
		err = s.heal(ctx)
	}
	p.cell.Late = err == nil && p.cell.Delay > p.cell.Goal+tolerance
	if p.cell.Late {
		err = fmt.Errorf("%s late, the goal is %s", p.cell.Delay.Round(time.Millisecond), p.cell.Goal)
	}
	p.cell.Passed = err == nil
	if err != nil {
		p.cell.Reason = err.Error()
	}
	return p.cell
}

// guard counts admin processes that end, and starts one again when none is left.
func (p *play) guard(ctx context.Context) {
	known := map[*lab.Process]bool{}
	for {
		for _, a := range p.fleet.Admins {
			if a.Process().Ended() && !known[a.Process()] {
				known[a.Process()] = true
				p.mu.Lock()
				p.crashes++
				p.crashed = time.Now()
				p.mu.Unlock()
			}
		}
		p.mu.Lock()
		restart := !p.dead && len(p.living()) == 0
		p.mu.Unlock()
		if restart && p.restart(ctx) != nil {
			return // the cell fails by itself
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// restart brings one node back and notes how long there was none.
func (p *play) restart(ctx context.Context) error {
	p.mu.Lock()
	from := p.crashed
	p.mu.Unlock()
	if err := p.fleet.Admins[0].Start(ctx); err != nil && !errors.Is(err, lab.ErrEnded) { // it may die once more before it is ready
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outages = append(p.outages, outage{from, time.Now()})
	return nil
}

// fall waits until n admin processes have ended since the cell began.
func (p *play) fall(ctx context.Context, n int) (time.Time, error) {
	err := lab.Until(ctx, 45*time.Second, fmt.Sprintf("%d admin processes die at %s", n, p.point), func(context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.crashes < n {
			return fmt.Errorf("%d have", p.crashes)
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crashed, err
}

// workerFalls waits until the executor has died.
func (p *play) workerFalls(ctx context.Context) error {
	select {
	case <-p.current.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Second):
		return fmt.Errorf("the worker does not die at %s", p.point)
	}
}

// dieAt arms the cell's own point for admins.
func (p *play) dieAt() error { return p.arm("admin", p.point+"=exit") }

// first arms a point that has to act before the cell's own does.
func (p *play) first(setting string) error {
	if err := os.WriteFile(p.points("admin")+".next", []byte(p.point+"=exit"), 0o600); err != nil {
		return err
	}
	return p.arm("admin", setting)
}

// newJob creates the cell's job. change may be nil.
func (p *play) newJob(ctx context.Context, change func(*apiclient.JobWrite)) error {
	p.jobs++
	job := apiclient.JobWrite{
		Name: fmt.Sprintf("%s %d", p.database, p.jobs), Executor: apiclient.ExecutorChoice{ID: p.executor}, Handler: p.mode.handler,
		Schedule: apiclient.ScheduleWrite{Kind: "none", Zone: "UTC"}, OnLost: p.mode.onLost, Blocking: "parallel",
		Retry: &apiclient.RetryWrite{MaxAttempts: maxAttempts, Delay: "100ms"},
	}
	if change != nil {
		change(&job)
	}
	made, err := ask(ctx, p.stage, "create job "+job.Name, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.Job], error) {
		return api.CreateJob(ctx, apiclient.CreateJobParams{}, job)
	})
	p.job = made.Value.ID
	return err
}

// trigger asks for a run until a node has answered.
func (p *play) trigger(ctx context.Context, in input) (string, error) {
	params := apiclient.RunJobParams{IdempotencyKey: fmt.Sprintf("%s-%d", p.job, time.Now().UnixNano())}
	r, err := ask(ctx, p.stage, "run job "+p.job, func(ctx context.Context, api *lab.API) (apiclient.Doc[apiclient.StartedRun], error) {
		return api.RunJob(ctx, p.job, params, apiclient.RunRequest{Input: lab.JSON(in)})
	})
	p.cell.Targets++
	return r.Value.ID, err
}

// begin makes the job and a run of it.
func (p *play) begin(ctx context.Context, in input) (string, error) {
	if err := p.newJob(ctx, nil); err != nil {
		return "", err
	}
	return p.trigger(ctx, in)
}

// started waits until the handler was called n times.
func (p *play) started(ctx context.Context, id string, n int) (at time.Time, err error) {
	err = lab.Until(ctx, 45*time.Second, fmt.Sprintf("start %d of run %s", n, id), func(context.Context) error {
		starts, _, err := p.seen(id)
		if err != nil {
			return err
		}
		if len(starts) < n {
			return fmt.Errorf("%d starts", len(starts))
		}
		at = starts[n-1].at()
		return nil
	})
	return at, err
}

// reaches waits until the run is in one of the states.
func (p *play) reaches(ctx context.Context, id string, states ...string) (r run, err error) {
	err = lab.Until(ctx, 60*time.Second, fmt.Sprintf("run %s is %v", id, states), func(ctx context.Context) (err error) {
		if r, err = p.find(ctx, id); err != nil {
			return err
		}
		for _, s := range states {
			if r.State == s {
				return nil
			}
		}
		return fmt.Errorf("it is %s (%s %s)", r.State, r.Reason, r.Message)
	})
	return r, err
}

// ends waits for the run's end and compares it. or is another end that is as
// good: which one comes is a matter of who was quicker.
func (p *play) ends(ctx context.Context, id string, w want, or ...want) (run, error) {
	r, err := p.reaches(ctx, id, "succeeded", "failed", "timed_out", "cancelled", "lost", "missed", "discarded", "excluded")
	if err != nil {
		p.cell.Missed++
		return r, err
	}
	starts, _, err := p.seen(id)
	if err != nil {
		return r, err
	}
	p.cell.Outcome += fmt.Sprintf("%s, attempt %d, %d starts; ", r.State, r.Attempt, len(starts))
	for _, other := range or {
		if r.State == other.state && r.Attempt == other.attempt && len(starts) == other.starts {
			w = other
		}
	}
	most := w.starts
	if w.orStart {
		most++
	}
	if len(starts) > most {
		p.cell.Double += len(starts) - most
	}
	fences := map[int64]bool{}
	for _, s := range starts {
		if fences[s.Fence] {
			return r, fmt.Errorf("fence %d was started twice", s.Fence)
		}
		fences[s.Fence] = true
	}
	if r.State != w.state || r.Attempt != w.attempt || len(starts) < w.starts || len(starts) > most {
		return r, fmt.Errorf("want %s, attempt %d, %d starts (reason %s: %s %s)", w.state, w.attempt, w.starts, r.Reason, r.Message, r.Error)
	}
	return r, nil
}

// delayed notes the added delay.
func (p *play) delayed(from, to time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := to.Sub(from)
	for _, o := range p.outages {
		begin, end := o.from, o.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if end.After(begin) {
			d -= end.Sub(begin)
		}
	}
	p.cell.Delay = max(p.cell.Delay, d)
}

// endOf returns when the last call of the handler returned.
func (p *play) endOf(id string) (time.Time, error) {
	_, ends, err := p.seen(id)
	if err != nil || len(ends) == 0 {
		return time.Time{}, errors.Join(err, errors.New("no call of the handler has ended"))
	}
	return ends[len(ends)-1].at(), nil
}
