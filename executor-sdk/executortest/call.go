package executortest

import (
	"time"

	gproto "google.golang.org/protobuf/proto"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/proto"
)

// handlerLocked finds one that an instance serves.
func (a *Admin) handlerLocked(name string) *proto.Handler {
	for _, i := range a.instances {
		if h := i.handlers[name]; h != nil {
			return h
		}
	}
	return nil
}

// callJob is what calls of the handler belong to, or its timers: it has the settings
// that its declaration gives to them. mu is held.
func (a *Admin) callJob(kind string, h *proto.Handler) *job {
	name := kind + ":" + h.GetName()
	if j := a.called[name]; j != nil {
		return j
	}
	a.called[name] = a.jobLike(kind, h, 1, time.Second, time.Minute)
	return a.called[name]
}

// callbackJob is what the runs of a callback belong to. mu is held.
func (a *Admin) callbackJob(name string) *job {
	if j := a.callbacks[name]; j != nil {
		return j
	}
	h := a.handlerLocked(name)
	if h == nil {
		h = &proto.Handler{Name: name} // its runs wait for one
	}
	j := a.jobLike("callback", h, 10, 5*time.Second, 10*time.Minute)
	j.decl.OnSuccess, j.decl.OnFailure, j.decl.SuccessTo, j.decl.FailureTo = "", "", nil, nil // they would be followed for ever
	a.callbacks[name] = j
	return j
}

// jobLike makes a job of what the handler says of its calls, else with so many
// attempts and a delay that doubles.
func (a *Admin) jobLike(kind string, h *proto.Handler, attempts int32, delay, most time.Duration) *job {
	j := &job{admin: a, name: h.GetName(), handler: h.GetName(), decl: &proto.JobDeclaration{}}
	j.shown = kind + ":" + a.instances[0].name + "/" + j.handler
	if h.GetCalls() != nil {
		j.decl = gproto.CloneOf(h.GetCalls())
	}
	d := j.decl
	d.Name = h.GetName()
	if d.GetBlocking() == "" {
		d.Blocking = string(executor.Parallel)
	}
	j.callers = d.GetMaxAttempts() == 0
	if j.callers && d.GetRetryDelayMs() == 0 && d.GetRetryBackoffPermille() == 0 && d.GetMaxRetryDelayMs() == 0 {
		d.RetryDelayMs, j.doublesTo = delay.Milliseconds(), most
	}
	if j.callers {
		d.MaxAttempts = attempts
	}
	return j
}

// retryDelay is the pause after an attempt failed, counted from 1.
func (j *job) retryDelay(attempt int) time.Duration {
	wait := defaultRetryDelay
	if ms := j.decl.GetRetryDelayMs(); ms > 0 {
		wait = time.Duration(ms) * time.Millisecond
	}
	factor, most := float64(j.decl.GetRetryBackoffPermille())/1000, max(defaultMaxRetryDelay, wait)
	if ms := j.decl.GetMaxRetryDelayMs(); ms > 0 {
		most = time.Duration(ms) * time.Millisecond
	}
	if j.doublesTo > 0 {
		factor, most = 2, j.doublesTo
	}
	for ; attempt > 1 && factor > 1 && wait < most; attempt-- {
		wait = time.Duration(min(float64(wait)*factor, float64(most)))
	}
	return min(wait, most)
}

// mayTry is how many attempts the run has, those included that do not count: as
// its job says, of which a caller may ask for fewer.
func (r *Run) mayTry() int {
	n := int(r.job.decl.GetMaxAttempts())
	if r.maxAttempts > 0 && (r.maxAttempts < n || r.job.callers) {
		n = r.maxAttempts
	}
	return max(n, 1) + r.uncounted
}

// attemptTimeout bounds one attempt: the job's, or less where the caller asks for
// it. 0 = nothing does.
func (r *Run) attemptTimeout() time.Duration {
	d := time.Duration(r.job.decl.GetTimeoutMs()) * time.Millisecond
	if r.timeout > 0 && (d == 0 || r.timeout < d) {
		return r.timeout
	}
	return d
}
