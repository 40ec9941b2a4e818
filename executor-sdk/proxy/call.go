package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/proto"
)

// Option shapes one call.
type Option func(*request)

// Key is the call's idempotency key: calls of one handler with the same key and
// the same API key are one run. Default: random, so that each call is one.
func Key(key string) Option { return func(r *request) { r.key = key } }

// Attempts lets the run be tried up to n times when it fails. Where the handler
// declares how often (executor.Retries), n may be less and is bounded by it, and
// the default is what it declares. Elsewhere the default is 1.
func Attempts(n int) Option { return func(r *request) { r.MaxAttempts = int64(n) } }

// Timeout bounds each attempt: the handler is cancelled with executor.ErrTimeout
// when it runs longer than d, which is at least 1 ms. Where the handler declares a
// timeout (executor.Timeout), the shorter one of the two counts. Default: what the
// handler declares, or none.
func Timeout(d time.Duration) Option { return func(r *request) { r.Timeout = d.String() } }

// StartWithin is how long the call may take to start, counted from when it is
// made: until an admin node has taken it, and an instance that has room begins.
// When no node takes it in time, Call and Start return an *UnconfirmedError; a run that
// then finds no instance ends as missed, which Call and Wait say as a *RunError,
// not later than 5 s after d.
//
// Default 5 minutes; and while no node has taken the call, one minute if the
// context has no deadline.
func StartWithin(d time.Duration) Option {
	return func(r *request) { r.StartWithin, r.within = d.String(), d }
}

// Note is shown beside the run.
func Note(text string) Option { return func(r *request) { r.Note = text } }

// KeepRunning lets the run go on when the context of Call ends.
func KeepRunning() Option { return func(r *request) { r.keep = true } }

// request is what is asked, and how.
type request struct {
	callapi.CallRequest
	key    string
	keep   bool
	within time.Duration // StartWithin; 0 = the default
}

// None stands for no input, and no output.
type None = struct{}

// Call runs a handler of an executor with in and returns its output. A failed
// run is a *RunError. When ctx ends first, Call cancels the run and returns the
// cause. (Should ctx end before an admin node has confirmed the run, which takes
// milliseconds, the error is an *UnconfirmedError that wraps the cause.)
func Call[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts ...Option) (Out, error) {
	run, keep, err := start[Out](ctx, c, executor, handler, in, opts)
	if err != nil {
		var none Out
		return none, err
	}
	out, err := run.Wait(ctx)
	var late *UnconfirmedError
	if !keep && (ctx.Err() != nil || errors.As(err, &late) && late.answered) {
		run.abandon(ctx)
	}
	return out, err
}

// Start runs a handler and returns without waiting for its end: an admin node
// has taken the call then, and it will run or end as missed.
func Start[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts ...Option) (*Run[Out], error) {
	run, _, err := start[Out](ctx, c, executor, handler, in, opts)
	return run, err
}

const (
	// longPoll is how long one request waits for the end of a run.
	longPoll = 30 * time.Second
	// startWithin is how long a call may take to start that does not say it; the
	// admin's default, too.
	startWithin = 5 * time.Minute
	// startGrace is how long the admin's word about a run is waited for that was to
	// have started: the admin sees about once a second what is too late.
	startGrace = 5 * time.Second
	// answerTime is what of it is left to an answer on its way.
	answerTime = time.Second
)

var (
	errLate      = errors.New("StartWithin is over")
	errStillIdle = errors.New("StartWithin is over, and the run still waits")
)

func start[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts []Option) (_ *Run[Out], keep bool, err error) {
	r := request{CallRequest: callapi.CallRequest{Executor: executor, Handler: handler}, key: rand.Text()}
	for _, o := range opts {
		o(&r)
	}
	if _, none := in.(None); !none && in != nil {
		if r.Input, err = proto.EncodeJSON(in); err != nil {
			return nil, false, fmt.Errorf("call %s/%s: encode input: %w", executor, handler, err)
		}
	}
	body, err := json.Marshal(r.CallRequest)
	if err != nil {
		return nil, false, fmt.Errorf("call %s/%s: encode input: %w", executor, handler, err)
	}
	began, within := time.Now(), cmp.Or(max(r.within, 0), startWithin)
	limit, why := within, errLate
	if _, bounded := ctx.Deadline(); r.within <= 0 && !bounded {
		limit, why = giveUp, errNobody
	}
	taking, cancel := context.WithTimeoutCause(ctx, limit, why)
	defer cancel()
	var first callapi.Call
	reached, err := c.do(taking, callapi.Ask{Method: http.MethodPost, Path: "/calls", Body: body, Key: r.key, Began: began}, &first)
	var gone *callapi.Unanswered
	var refused *RefusedError
	switch {
	case err == nil:
		return &Run[Out]{client: c, id: first.ID, name: executor + "/" + handler, key: r.key, startBy: began.Add(within)}, r.keep, nil
	case !errors.As(err, &gone) && errors.As(err, &refused):
		return nil, false, fmt.Errorf("call %s/%s: %w", executor, handler, err)
	default:
		return nil, false, &UnconfirmedError{Handler: executor + "/" + handler, Key: r.key, MayExist: reached, Err: err}
	}
}

// Run is a call that goes on. It is safe for concurrent use.
type Run[Out any] struct {
	client *Client
	id     string
	// Of a call that this process has made; else zero.
	name, key string
	startBy   time.Time
}

// Attach returns the handle of a call that was started before, here or in
// another process with the same API key.
func Attach[Out any](c *Client, id string) *Run[Out] { return &Run[Out]{client: c, id: id} }

// ID is the run's id, as in the web UI.
func (r *Run[Out]) ID() string { return r.id }

// leastPoll is the least time between two questions about one run.
const leastPoll = 500 * time.Millisecond

// Wait returns the run's output when it has ended. A failed run is a *RunError.
// When ctx ends first, Wait returns its cause and the run goes on. When no admin
// node answers for a minute and ctx has no deadline, or none says that the run has
// started when it was to (StartWithin), the error is an *UnconfirmedError.
func (r *Run[Out]) Wait(ctx context.Context) (out Out, err error) {
	var a *callapi.Call
	started, lastWord := r.startBy.IsZero(), later(r.startBy, time.Now()).Add(startGrace)
	for a == nil || !a.Done {
		asked := time.Now()
		if !started && !asked.Before(lastWord) {
			return out, &UnconfirmedError{Handler: r.name, Key: r.key, Run: r.id, MayExist: true, Err: errStillIdle, answered: true}
		}
		if a, err = r.poll(ctx, started, lastWord); err != nil {
			return out, err
		}
		started = started || hasStarted(a)
		if rest := leastPoll - time.Since(asked); !a.Done && rest > 0 { // a node that does not wait
			select {
			case <-ctx.Done():
				return out, fmt.Errorf("wait for run %s: %w", r.id, context.Cause(ctx))
			case <-time.After(rest):
			}
		}
	}
	return decode[Out](a)
}

// poll asks for the run, and has the admin wait for its end; while it is not known
// to have started, only until that was to be, and for the admin's word only until lastWord.
func (r *Run[Out]) poll(ctx context.Context, started bool, lastWord time.Time) (*callapi.Call, error) {
	wait, polling := longPoll, ctx
	if !started {
		by := r.startBy
		if time.Until(by) <= 0 {
			by = lastWord.Add(-answerTime)
		}
		wait = min(wait, max(time.Until(by).Truncate(time.Millisecond), 0))
		var cancel context.CancelFunc
		polling, cancel = context.WithDeadlineCause(ctx, lastWord, errLate)
		defer cancel()
	}
	a := &callapi.Call{}
	_, err := r.client.do(polling, callapi.Ask{
		Method: http.MethodGet, Path: "/calls/" + url.PathEscape(r.id) + "?wait=" + wait.String(), Wait: wait,
	}, a)
	var gone *callapi.Unanswered
	switch {
	case err == nil:
		return a, nil
	case ctx.Err() == nil && errors.As(err, &gone):
		return nil, &UnconfirmedError{Handler: r.name, Key: r.key, Run: r.id, MayExist: true, Err: err}
	default:
		return nil, fmt.Errorf("wait for run %s: %w", r.id, err)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hasStarted reports whether the run has begun for the first time.
func hasStarted(a *callapi.Call) bool {
	return a.Done || a.Attempt > 1 || a.Attempt == 1 && a.State != "offered"
}

func decode[Out any](a *callapi.Call) (out Out, err error) {
	if a.State != "succeeded" {
		return out, &RunError{Run: a.ID, Executor: a.Executor, Handler: a.Handler, State: a.State, Reason: a.Reason, Kind: a.ErrorKind, Message: a.Error}
	}
	if len(a.Output) == 0 || string(a.Output) == "null" {
		return out, nil
	}
	if err := json.Unmarshal(a.Output, &out); err != nil {
		return out, fmt.Errorf("output of %s/%s (run %s): %w", a.Executor, a.Handler, a.ID, err)
	}
	return out, nil
}

// Status is where a run stands.
type Status struct {
	// State is the admin's word: due, offered, running, retry_wait, succeeded, failed, …
	State   string
	Done    bool
	Attempt int
	// Percent and Message are what the handler tells with executor.Progress.
	Percent float64
	Message string
}

// Status asks where the run stands, without waiting.
func (r *Run[Out]) Status(ctx context.Context) (Status, error) {
	var a callapi.Call
	if _, err := r.client.do(ctx, callapi.Ask{Method: http.MethodGet, Path: "/calls/" + url.PathEscape(r.id)}, &a); err != nil {
		return Status{}, fmt.Errorf("status of run %s: %w", r.id, err)
	}
	s := Status{State: a.State, Done: a.Done, Attempt: int(a.Attempt)}
	if a.Progress != nil {
		s.Percent, s.Message = a.Progress.Percent, a.Progress.Message
	}
	return s, nil
}

// Cancel asks for the end of the run, and does not wait for it. One that has
// ended already is no error.
func (r *Run[Out]) Cancel(ctx context.Context) error {
	_, err := r.client.do(ctx, callapi.Ask{Method: http.MethodPost, Path: "/calls/" + url.PathEscape(r.id) + "/cancel"}, &callapi.Call{})
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Code == string(callapi.ProblemCodeAlreadyFinished) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel run %s: %w", r.id, err)
	}
	return nil
}

// abandonTimeout bounds how long Call stays to cancel a run after its context
// has ended.
const abandonTimeout = 5 * time.Second

// abandon cancels the run of a caller whose context has ended.
func (r *Run[Out]) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	_ = r.Cancel(ctx) // the caller hears why it stopped; the run's state tells the rest
}

// RunError is a run that ended without success.
type RunError struct {
	Run, Executor, Handler string
	// State is how it ended: failed, timed_out, cancelled, lost, missed.
	State string
	// Reason and Kind are stable words: of the admin, and of what the handler
	// returned ("permanent", "retryable", "panic", …). Message is for people.
	Reason, Kind, Message string
}

func (e *RunError) Error() string {
	text := fmt.Sprintf("%s/%s %s (run %s)", e.Executor, e.Handler, e.State, e.Run)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// UnconfirmedError is a call of which no admin node has said in time that it was
// taken, or that it has started.
type UnconfirmedError struct {
	// Handler is that of the call, as EXECUTOR/HANDLER; empty for Attach.
	Handler string
	// MayExist: a node may have taken the call, and the run may be under way. Calling again with
	// Key(e.Key) and all else the same finds that run, or makes it. False: no node
	// has had the call. There is no run, and calling again is safe.
	MayExist bool
	// Key is the idempotency key of the call: the one that was given, or a random one.
	Key string
	// Run is the run's id when a node has taken the call, for Attach. Else empty.
	Run string
	// Err says why nobody waits any longer; it wraps the cause of a context.
	Err error

	answered bool // by a node, which said that the run still waits
}

func (e *UnconfirmedError) Error() string {
	switch {
	case e.Run != "":
		return fmt.Sprintf("call %s: run %s was taken, and it is not known how it goes: %v", e.Handler, e.Run, e.Err)
	case e.MayExist:
		return fmt.Sprintf("call %s: it is not known whether an admin node has taken it (calling again with the key %q makes no second run): %v", e.Handler, e.Key, e.Err)
	default:
		return fmt.Sprintf("call %s: no admin node has taken it, calling again is safe: %v", e.Handler, e.Err)
	}
}

func (e *UnconfirmedError) Unwrap() error { return e.Err }
