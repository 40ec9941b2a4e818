package executortest

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

// timer is one that package timers has set.
type timer struct {
	// Fixed after construction, but for fireAt.
	id        int64
	request   callapi.TimerRequest
	fireAt    time.Time
	createdAt time.Time

	// Guarded by admin.mu.
	clock     *time.Timer
	run       *Run // nil while it is pending
	cancelled bool // while it was pending
}

// timerTable has the timers of one admin, and answers the requests of package timers
// as the API does.
type timerTable struct {
	admin *Admin

	// Guarded by admin.mu.
	byKey         map[string]*timer                    // the newest by handler and key
	cancellations map[string]callapi.TimerCancellation // by id
}

func newTimerTable(a *Admin) *timerTable {
	return &timerTable{admin: a, byKey: map[string]*timer{}, cancellations: map[string]callapi.TimerCancellation{}}
}

// timerKey is the place of a timer in the table.
func timerKey(handler, key string) string { return handler + "\x00" + key }

// Timers lists the pending timers of a handler, or of all with "", by their fire
// times. They fire as time passes (Sleep), are set, moved and cancelled with
// package timers and Proxy, and their runs are among Runs.
func (a *Admin) Timers(handler string) []timers.Timer {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []timers.Timer
	for _, t := range a.timers.byKey {
		if t.pending() && (handler == "" || t.request.Handler == handler) {
			out = append(out, timers.Timer{
				Executor: t.request.Executor, Handler: t.request.Handler, Key: t.request.Key, FireAt: t.fireAt, State: t.state(),
				Input: t.request.Input, Labels: t.request.Labels, CreatedAt: t.createdAt,
			})
		}
	}
	slices.SortFunc(out, func(x, y timers.Timer) int { return cmp.Or(x.FireAt.Compare(y.FireAt), cmp.Compare(x.Key, y.Key)) })
	return out
}

func (t *timer) pending() bool { return t.run == nil && !t.cancelled }

// state is where it stands, in the API's words.
func (t *timer) state() string {
	switch {
	case t.cancelled:
		return string(Cancelled)
	case t.run == nil:
		return "pending"
	default:
		return string(t.run.state)
	}
}

// ended reports whether nothing will become of it any more.
func (t *timer) ended() bool { return t.cancelled || t.run != nil && t.run.state.Ended() }

// started reports whether its run has begun.
func (t *timer) started() bool { return t.run != nil && t.run.attempt > 0 }

// shown is the timer as the API shows it.
func (t *timer) shown(outcome string) callapi.Timer {
	out := callapi.Timer{
		Executor: t.request.Executor, Handler: t.request.Handler, Key: t.request.Key, State: t.state(), FireAt: t.fireAt, Outcome: outcome,
		Input: t.request.Input, Labels: t.request.Labels, CreatedAt: t.createdAt,
	}
	if t.run != nil {
		id := strconv.FormatInt(t.run.id, 10)
		out.Run = &id
	}
	return out
}

// problem is why something is refused.
type problem struct {
	status int
	code   callapi.ProblemCode
	detail string
}

func invalid(err error) *problem {
	return &problem{http.StatusUnprocessableEntity, callapi.ProblemCodeValidationFailed, err.Error()}
}

func (tt *timerTable) setAll(all []callapi.TimerRequest) callapi.TimerBatch {
	var out callapi.TimerBatch
	for _, request := range all {
		t, outcome, p := tt.set(request)
		item := callapi.TimerBatchItem{Key: request.Key, Outcome: outcome}
		if p == nil {
			item.Key, item.FireAt = t.request.Key, &t.fireAt
		} else {
			item.Outcome, item.Problem = "rejected", &callapi.TimerProblem{Code: string(p.code), Detail: p.detail}
		}
		out.Items = append(out.Items, item)
	}
	return out
}

// set takes a new timer. mu is held.
func (tt *timerTable) set(request callapi.TimerRequest) (t *timer, outcome string, p *problem) {
	fireAt, err1 := fireTime(request.At, request.After)
	_, err2 := readDuration(request.Timeout, 0)
	_, err3 := readDuration(request.StartWithin, 0)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, "", invalid(err)
	}
	if tt.admin.handlerLocked(request.Handler) == nil {
		return nil, "", &problem{
			http.StatusUnprocessableEntity, callapi.ProblemCodeUnknownHandler, "no instance has registered a handler " + strconv.Quote(request.Handler),
		}
	}
	if request.Key == "" {
		request.Key = strconv.FormatInt(tt.admin.newIDLocked(), 10)
	}
	outcome = "created"
	id := timerKey(request.Handler, request.Key)
	if old := tt.byKey[id]; old != nil && !old.cancelled && (old.run == nil || old.run.state != Cancelled) {
		switch timers.Policy(request.Policy) {
		case timers.Reject:
			return nil, "", &problem{http.StatusConflict, callapi.ProblemCodeTimerExists, "there is a timer with the key " + strconv.Quote(request.Key)}
		case timers.Replace:
			if old.started() && !old.ended() {
				return nil, "", &problem{http.StatusConflict, callapi.ProblemCodeTimerStarted, "it has started"}
			}
			if !old.ended() {
				outcome = "replaced"
				old.cancel()
			}
		default:
			return old, "kept", nil
		}
	}
	t = &timer{id: tt.admin.newIDLocked(), request: request, createdAt: time.Now()}
	tt.byKey[id] = t
	tt.plan(t, fireAt)
	return t, outcome, nil
}

// fireTime reads at or after.
func fireTime(at, after string) (time.Time, error) {
	if (at == "") == (after == "") {
		return time.Time{}, errors.New("either at or after has to be given")
	}
	if at != "" {
		return time.Parse(time.RFC3339, at)
	}
	d, err := time.ParseDuration(after)
	if err == nil && d < 0 {
		err = errors.New("after is negative")
	}
	return time.Now().Add(d), err
}

// plan has t fire at an instant. mu is held.
func (tt *timerTable) plan(t *timer, at time.Time) {
	a := tt.admin
	t.fireAt = at
	t.clock = time.AfterFunc(time.Until(at), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.stopped || !t.pending() {
			return
		}
		t.run = a.newRun(a.callJob("timer", a.handlerLocked(t.request.Handler)), t.fireAt, "timer", "key:test", t.request.Input)
		t.run.timeout, _ = readDuration(t.request.Timeout, 0)
		t.run.maxAttempts = int(t.request.MaxAttempts)
		within, _ := readDuration(t.request.StartWithin, defaultStartWithin)
		a.enter(t.run)
		t.run.expireIn(within)
	})
}

// cancel ends it. mu is held.
func (t *timer) cancel() {
	if t.run != nil {
		t.run.cancel("killed", "cancelled by package timers")
		return
	}
	t.clock.Stop()
	t.cancelled = true
}

// cancel ends a timer, and dispatches the runs that may begin then. mu is held.
func (tt *timerTable) cancel(t *timer) {
	t.cancel()
	tt.admin.dispatchLocked()
}

// change reads, cancels or moves the timer of a key. mu is held.
func (tt *timerTable) change(handler, key, action string, body callapi.TimerRequest) (*timer, *problem) {
	handler, err1 := url.PathUnescape(handler)
	key, err2 := url.PathUnescape(key)
	t := tt.byKey[timerKey(handler, key)]
	if errors.Join(err1, err2) != nil || t == nil {
		return nil, &problem{http.StatusNotFound, callapi.ProblemCodeNotFound, "there is no timer with this key"}
	}
	if action != "" && t.ended() {
		return nil, &problem{http.StatusConflict, callapi.ProblemCodeAlreadyFinished, "it has ended"}
	}
	switch action {
	case "cancel":
		tt.cancel(t)
	case "reschedule":
		at, err := fireTime(body.At, body.After)
		switch {
		case err != nil:
			return nil, invalid(err)
		case t.started():
			return nil, &problem{http.StatusConflict, callapi.ProblemCodeTimerStarted, "it has started"}
		}
		moved := *t
		t.cancel()
		t = &moved
		t.run = nil
		tt.byKey[timerKey(handler, key)] = t
		tt.plan(t, at)
	}
	return t, nil
}
