package executortest

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/declaration"
	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/schedule"
)

// job is a declared job, or a handler that is called without one.
type job struct {
	admin   *Admin
	name    string
	handler string
	decl    *proto.JobDeclaration
	when    *schedule.Schedule // nil: never by itself
	timer   *time.Timer        // to the next fire; guarded by admin.mu
	told    bool               // that labels are not judged; guarded by admin.mu
	callers bool               // its callers say how often a run may be tried
	// doublesTo: the delay of retries doubles until it is so long; 0 = it does not.
	doublesTo time.Duration
	shown     string // its name as handlers see it; empty = name
}

func (j *job) stop() {
	if j.timer != nil {
		j.timer.Stop()
	}
}

// declare makes the job of a declaration and starts its schedule. mu is held.
func (a *Admin) declare(h *proto.Handler, d *proto.JobDeclaration) {
	j := &job{admin: a, name: d.GetName(), handler: h.GetName(), decl: d}
	a.jobs[j.name] = j
	spec := declaration.Schedule(d, time.Now())
	spec.JitterSeed = j.name
	var err error
	if j.when, err = schedule.Compile(spec); err != nil { // its calendars are looked up when it fires (job.excluded): the test may make and replace them
		var fault *schedule.ParseError
		if errors.As(err, &fault) {
			err = errors.New(fault.Detail())
		}
		a.t.Errorf("executortest: job %q: %v", j.name, err)
		return
	}
	j.plan(time.Now())
}

// plan sets the timer to the first fire after t. mu is held.
func (j *job) plan(t time.Time) {
	if j.when == nil || j.admin.stopped {
		return
	}
	if at, ok := j.when.Next(t); ok {
		j.planAt(at)
	}
}

func (j *job) planAt(at time.Time) {
	j.timer = time.AfterFunc(time.Until(at), func() {
		j.admin.mu.Lock()
		defer j.admin.mu.Unlock()
		if !j.admin.stopped {
			j.fire(at)
		}
	})
}

// fire makes the run of a fire time that has come, unless a calendar excludes it,
// and plans the next one. mu is held.
func (j *job) fire(at time.Time) {
	a, delayed := j.admin, j.decl.GetDelayMs() > 0
	why, until, known := j.excluded(at)
	switch {
	case !known:
		a.t.Errorf("executortest: %s", why)
		return
	case why != "":
		r := a.newRun(j, at, "schedule", "", nil)
		r.state, r.result = Excluded, &proto.Result{ErrorKind: "calendar", Error: why}
		close(r.ended)
		a.runs = append(a.runs, r)
		if delayed {
			j.planAt(until)
		}
	default:
		a.addLater(j, at)
	}
	if !delayed { // else the end of the run plans the next one
		j.plan(at)
	}
}

// addLater makes the run of a fire time, which starts after its jitter. mu is held.
func (a *Admin) addLater(j *job, at time.Time) {
	wait := j.when.RunAt(at).Sub(at)
	if wait == 0 {
		a.add(j, at, "schedule", "", nil)
		return
	}
	r := a.newRun(j, at, "schedule", "", j.decl.GetInput())
	r.state, r.notBefore = RetryWait, at.Add(wait)
	a.runs = append(a.runs, r)
	time.AfterFunc(wait, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.block(r)
		a.dispatchLocked()
	})
}

// add makes a run. mu is held.
func (a *Admin) add(j *job, at time.Time, cause, who string, input []byte) *Run {
	if input == nil {
		input = j.decl.GetInput()
	}
	r := a.newRun(j, at, cause, who, input)
	a.enter(r)
	return r
}

// enter takes a new run in. mu is held.
func (a *Admin) enter(r *Run) {
	a.runs = append(a.runs, r)
	a.block(r)
	a.dispatchLocked()
}

func (a *Admin) newRun(j *job, at time.Time, cause, who string, input []byte) *Run {
	return &Run{
		admin: a, id: a.newIDLocked(), job: j, fireAt: at, cause: cause, who: who, input: input,
		ended: make(chan struct{}), state: Waiting, steps: map[string][]byte{},
		last: map[int64]int64{}, logged: make(chan struct{}),
	}
}

// block applies the strategies that act on arrival.
func (a *Admin) block(r *Run) {
	for _, other := range a.runs {
		if other == r || other.job != r.job || other.state.Ended() {
			continue
		}
		switch executor.BlockingStrategy(r.job.decl.GetBlocking()) {
		case executor.DiscardLater:
			r.end(Discarded)
			return
		case executor.CoverEarly:
			other.cancel("superseded", "a newer run replaces it")
		}
	}
}

// room reports whether the job's blocking strategy lets r begin.
func (a *Admin) room(r *Run) bool {
	limit := 1
	if r.job.decl.GetBlocking() == string(executor.Parallel) {
		limit = int(r.job.decl.GetParallelism())
	}
	busy := 0
	for _, other := range a.runs {
		if other != r && other.job == r.job && (other.state == Offered || other.state == Running) {
			busy++
		}
	}
	return limit == 0 || busy < limit
}

// dispatchLocked offers what may begin now. mu is held.
func (a *Admin) dispatchLocked() { a.dispatchAvoiding(nil) }

func (a *Admin) dispatchAvoiding(avoid *instance) {
	for n := 0; n < len(a.runs); n++ { // a fire with shards adds runs
		r := a.runs[n]
		if r.state == RetryWait && !time.Now().Before(r.notBefore) {
			r.state = Waiting
		}
		if r.state != Waiting || !a.room(r) {
			continue
		}
		a.askLabels(r.job)
		if r.isFamily() {
			r.spread()
		} else if i := a.choose(r, avoid); i != nil {
			i.offer(r)
		}
	}
}

// askLabels fails the test when labels decide which instances get the job's runs:
// selectors are not read here.
func (a *Admin) askLabels(j *job) {
	if j.decl.GetRequireLabels() == "" || j.told {
		return
	}
	for _, i := range a.serving(j.handler) {
		if !maps.Equal(i.labels, a.instances[0].labels) {
			j.told = true
			a.t.Errorf("executortest: job %q goes to instances with %q, which tests cannot judge: give all instances of a test the same labels",
				j.name, j.decl.GetRequireLabels())
			return
		}
	}
}

// choose takes the instance that had the fewest runs so far, and avoid last.
func (a *Admin) choose(r *Run, avoid *instance) *instance {
	var best *instance
	least := 0
	if r.bound != nil && (r.bound == avoid || r.bound.draining) {
		r.gone()
		if r.state.Ended() {
			return nil
		}
	}
	for _, i := range a.serving(r.job.handler) {
		if r.bound != nil && i != r.bound {
			continue
		}
		had := 0
		for _, other := range a.runs {
			if other.instance == i {
				had++
			}
		}
		if i == avoid {
			had += len(a.runs)
		}
		if best == nil || had < least {
			best, least = i, had
		}
	}
	return best
}

func (i *instance) offer(r *Run) {
	h := i.handlers[r.job.handler]
	r.state, r.instance, r.oneStep = Offered, i, h.GetIdempotent()
	r.fence++
	r.attempt++
	i.deliver(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Offers{Offers: &proto.OfferBatch{Offers: []*proto.Offer{{
		ExecutionId: r.id, Fence: r.fence, JobId: 1, JobName: cmp.Or(r.job.shown, r.job.name), Handler: r.job.handler,
		FireAtMs: r.fireAt.UnixMilli(), Attempt: int32(r.attempt), MaxAttempts: int32(r.mayTry()), Input: r.input,
		TimeoutMs: r.attemptTimeout().Milliseconds(), Granted: r.oneStep, Cause: r.cause, RequestedBy: r.who, TenantId: 1,
		Part: r.part, ParentId: r.parentID(), ShardIndex: int32(r.index), ShardTotal: int32(r.total),
	}}}}})
}

// The admin's for a job that says nothing else.
const (
	defaultRetryDelay    = 10 * time.Second
	defaultMaxRetryDelay = 10 * time.Minute
)

// finish takes the result of the newest attempt. mu is held.
func (r *Run) finish(result *proto.Result) {
	if r.state.Ended() {
		return
	}
	r.result = result
	r.attempts = append(r.attempts, result)
	wait := r.job.retryDelay(r.attempt - r.uncounted)
	if ms := result.GetRetryAfterMs(); ms > 0 {
		wait = time.Duration(ms) * time.Millisecond
	}
	left := r.attempt < r.mayTry()
	switch kind := result.GetErrorKind(); {
	case result.GetOutcome() == proto.Outcome_OUTCOME_SUCCEEDED:
		r.end(Succeeded)
	case result.GetOutcome() == proto.Outcome_OUTCOME_CANCELLED:
		r.end(Cancelled)
	case result.GetOutcome() == proto.Outcome_OUTCOME_NEVER_STARTED:
		r.attempt--
		r.again(0)
	case kind == string(executor.KindSnoozed):
		r.uncounted++
		r.again(wait)
	case kind == "stopping" && r.repeatsLost():
		r.uncounted++
		r.again(time.Duration(result.GetRetryAfterMs()) * time.Millisecond)
	case left && kind != string(executor.KindPermanent) && kind != string(executor.KindBadInput) && kind != string(executor.KindOutputTooLarge):
		r.again(wait)
	case result.GetOutcome() == proto.Outcome_OUTCOME_TIMED_OUT:
		r.end(TimedOut)
	default:
		r.end(Failed)
	}
}

// again offers the run once more after d.
func (r *Run) again(d time.Duration) {
	r.state, r.instance, r.notBefore = RetryWait, nil, time.Now().Add(d)
	time.AfterFunc(d, func() {
		r.admin.mu.Lock()
		defer r.admin.mu.Unlock()
		r.admin.dispatchLocked()
	})
}

// end makes the run final, starts its callback, and plans a fixed delay.
func (r *Run) end(s State) {
	r.state, r.instance = s, nil
	close(r.ended)
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.parent != nil {
		r.parent.advance()
		return
	}
	a, d := r.admin, r.job.decl
	callback, elsewhere := d.GetOnFailure(), d.GetFailureTo()
	switch s {
	case Succeeded:
		callback, elsewhere = d.GetOnSuccess(), d.GetSuccessTo()
	case Cancelled, Discarded:
		callback, elsewhere = "", nil
	}
	if elsewhere != nil {
		a.t.Logf("executortest: the callback of the run %d goes to another executor, an address or a connection: nothing is started", r.id)
	} else if callback != "" {
		input, err := json.Marshal(executor.Ended{
			RunID: r.id, Job: cmp.Or(r.job.shown, r.job.name), Handler: r.job.handler, FireTime: r.fireAt.UTC(), Attempt: r.attempt, State: string(s),
			ErrorKind: r.result.GetErrorKind(), Error: r.result.GetError(), Input: r.input, Output: r.result.GetOutput(),
		})
		if err != nil {
			a.t.Errorf("executortest: input of callback %q: %v", callback, err)
			return
		}
		a.add(a.callbackJob(callback), time.Now(), "parent", "", input)
	}
	if d.GetDelayMs() > 0 && r.cause == "schedule" {
		r.job.plan(time.Now())
	}
}
