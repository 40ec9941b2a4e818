package proxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Option shapes one call.
type Option func(*request)

// Key is the call's idempotency key: calls of one handler with the same key and
// the same API key are one run. Default: random, so that each call is one.
func Key(key string) Option { return func(r *request) { r.key = key } }

// Attempts lets the run be tried up to n times when it fails. Where the handler
// declares how often (executor.Retries), n may be less and is bounded by it, and
// the default is what it declares. Elsewhere the default is 1.
func Attempts(n int) Option { return func(r *request) { r.MaxAttempts = n } }

// Timeout bounds each attempt: the handler is cancelled with executor.ErrTimeout
// when it runs longer than d, which is at least 1 ms. Where the handler declares a
// timeout (executor.Timeout), the shorter one of the two counts. Default: what the
// handler declares, or none.
func Timeout(d time.Duration) Option { return func(r *request) { r.Timeout = d.String() } }

// StartWithin is how long the run may wait for an instance that has room,
// before it ends as missed. Default 5 minutes.
func StartWithin(d time.Duration) Option { return func(r *request) { r.StartWithin = d.String() } }

// Note is shown beside the run.
func Note(text string) Option { return func(r *request) { r.Note = text } }

// KeepRunning lets the run go on when the context of Call ends.
func KeepRunning() Option { return func(r *request) { r.keep = true } }

// request is the API's CallRequest.
type request struct {
	Executor    string          `json:"executor"`
	Handler     string          `json:"handler"`
	Input       json.RawMessage `json:"input,omitempty"`
	MaxAttempts int             `json:"maxAttempts,omitempty"`
	Timeout     string          `json:"timeout,omitempty"`
	StartWithin string          `json:"startWithin,omitempty"`
	Note        string          `json:"note,omitempty"`

	key  string
	keep bool
}

// None stands for no input, and no output.
type None = struct{}

// Call runs a handler of an executor with in and returns its output. A failed
// run is a *RunError. When ctx ends first, Call cancels the run and returns the
// cause. (Should ctx end before the admin has confirmed the run, which takes
// milliseconds, the run may exist and go on.)
func Call[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts ...Option) (Out, error) {
	run, keep, err := start[Out](ctx, c, executor, handler, in, opts)
	if err != nil {
		var none Out
		return none, err
	}
	out, err := run.Wait(ctx)
	if ctx.Err() != nil && !keep {
		run.abandon(ctx)
	}
	return out, err
}

// Start runs a handler and returns without waiting for its end.
func Start[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts ...Option) (*Run[Out], error) {
	run, _, err := start[Out](ctx, c, executor, handler, in, opts)
	return run, err
}

// longPoll is how long one request waits for the end of a run.
const longPoll = 30 * time.Second

func start[Out any](ctx context.Context, c *Client, executor, handler string, in any, opts []Option) (_ *Run[Out], keep bool, err error) {
	r := request{Executor: executor, Handler: handler, key: rand.Text()}
	for _, o := range opts {
		o(&r)
	}
	if _, none := in.(None); !none && in != nil {
		if r.Input, err = json.Marshal(in); err != nil {
			return nil, false, fmt.Errorf("call %s/%s: encode input: %w", executor, handler, err)
		}
	}
	first, err := c.do(ctx, http.MethodPost, "/calls", r.key, r)
	if err != nil {
		return nil, false, fmt.Errorf("call %s/%s: %w", executor, handler, err)
	}
	return &Run[Out]{client: c, id: first.ID}, r.keep, nil
}

// Run is a call that goes on. It is safe for concurrent use.
type Run[Out any] struct {
	client *Client
	id     string
}

// Attach returns the handle of a call that was started before, here or in
// another process with the same API key.
func Attach[Out any](c *Client, id string) *Run[Out] { return &Run[Out]{client: c, id: id} }

// ID is the run's id, as in the web UI.
func (r *Run[Out]) ID() string { return r.id }

// leastPoll is the least time between two questions about one run.
const leastPoll = 500 * time.Millisecond

// Wait returns the run's output when it has ended. A failed run is a *RunError.
// When ctx ends first, Wait returns its cause and the run goes on.
func (r *Run[Out]) Wait(ctx context.Context) (out Out, err error) {
	var a *answer
	for a == nil || !a.Done {
		asked := time.Now()
		if a, err = r.client.do(ctx, http.MethodGet, "/calls/"+url.PathEscape(r.id)+"?wait="+longPoll.String(), "", nil); err != nil {
			return out, fmt.Errorf("wait for run %s: %w", r.id, err)
		}
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

func decode[Out any](a *answer) (out Out, err error) {
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
	a, err := r.client.do(ctx, http.MethodGet, "/calls/"+url.PathEscape(r.id), "", nil)
	if err != nil {
		return Status{}, fmt.Errorf("status of run %s: %w", r.id, err)
	}
	s := Status{State: a.State, Done: a.Done, Attempt: a.Attempt}
	if a.Progress != nil {
		s.Percent, s.Message = a.Progress.Percent, a.Progress.Message
	}
	return s, nil
}

// Cancel asks for the end of the run, and does not wait for it. One that has
// ended already is no error.
func (r *Run[Out]) Cancel(ctx context.Context) error {
	_, err := r.client.do(ctx, http.MethodPost, "/calls/"+url.PathEscape(r.id)+"/cancel", "", nil)
	if refused, ok := errors.AsType[*RefusedError](err); ok && refused.Code == "already_finished" {
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
