package timers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/proto"
)

// Handler sets timers for one handler. It is safe for concurrent use.
type Handler[In any] struct{ Keys }

// New returns the timers of a handler that executor has registered, or will have.
// In is the type of its input; any takes all.
func New[In any](client *proxy.Client, executor, handler string) Handler[In] {
	return Handler[In]{Keys{client, executor, handler}}
}

// After sets a timer for d from now. Errors are *RefusedError and *UnconfirmedError, and
// others where nothing was asked for (an input that is no JSON, with Tx the database).
func (h Handler[In]) After(ctx context.Context, d time.Duration, in In, opts ...Option) (*Timer, error) {
	return h.set(ctx, Item[In]{When: After(d), Input: in, Options: opts})
}

// At sets a timer for the instant t.
func (h Handler[In]) At(ctx context.Context, t time.Time, in In, opts ...Option) (*Timer, error) {
	return h.set(ctx, Item[In]{When: At(t), Input: in, Options: opts})
}

func (h Handler[In]) set(ctx context.Context, item Item[In]) (*Timer, error) {
	r, err := h.request(item.When, item.Input, item.Options)
	if err != nil {
		return nil, err
	}
	return h.Keys.set(ctx, r)
}

// Item is one of many timers.
type Item[In any] struct {
	Key     string // empty: that of the options, or random
	When    When
	Input   In
	Options []Option
}

// Many sets many timers, as many requests of at most 10,000 as they need. The
// answers are in the order of items; one that cannot be set keeps no other out.
// The error is nil when all were set or kept; else the answers tell which were not.
// Without answers nothing was asked for: an input is no JSON, or with Tx the database or
// an option was refused. opts come before the options of the items.
func (h Handler[In]) Many(ctx context.Context, items []Item[In], opts ...Option) ([]Answer, error) {
	requests := make([]*request, len(items))
	for i, item := range items {
		all := append(slices.Clip(opts), item.Options...)
		if item.Key != "" {
			all = append(all, Key(item.Key))
		}
		var err error
		if requests[i], err = h.request(item.When, item.Input, all); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return h.many(ctx, requests)
}

// Plain sets timers for one handler that takes no input. It is safe for concurrent use.
type Plain struct{ Keys }

// NewPlain is New for a handler without input.
func NewPlain(client *proxy.Client, executor, handler string) Plain {
	return Plain{Keys{client, executor, handler}}
}

// After sets a timer for d from now. Errors are *RefusedError and *UnconfirmedError, and
// others where nothing was asked for (an input that is no JSON, with Tx the database).
func (p Plain) After(ctx context.Context, d time.Duration, opts ...Option) (*Timer, error) {
	return p.handler().After(ctx, d, None{}, opts...)
}

// At sets a timer for the instant t.
func (p Plain) At(ctx context.Context, t time.Time, opts ...Option) (*Timer, error) {
	return p.handler().At(ctx, t, None{}, opts...)
}

// Many sets many timers; see Handler.
func (p Plain) Many(ctx context.Context, items []Item[None], opts ...Option) ([]Answer, error) {
	return p.handler().Many(ctx, items, opts...)
}

func (p Plain) handler() Handler[None] { return Handler[None](p) }

// Keys are the timers of one handler by their keys: what Handler and Plain have in
// common.
type Keys struct {
	client            *proxy.Client
	executor, handler string
}

func (k Keys) name() string { return k.executor + "/" + k.handler }

// request is what opts ask for.
func (k Keys) request(when When, in any, opts []Option) (*request, error) {
	if err := when.check(); err != nil {
		return nil, fmt.Errorf("timer of %s: %w", k.name(), err)
	}
	r := &request{TimerRequest: callapi.TimerRequest{Executor: k.executor, Handler: k.handler}, when: when}
	for _, o := range opts {
		o.shape(r)
	}
	if r.Key == "" {
		r.Key, r.own = rand.Text(), true
	}
	r.TimerRequest.At, r.TimerRequest.After = when.read()
	if _, none := in.(None); !none && in != nil {
		var err error
		if r.Input, err = proto.EncodeJSON(in); err != nil {
			return nil, fmt.Errorf("timer of %s: encode input: %w", k.name(), err)
		}
	}
	return r, nil
}

func (k Keys) set(ctx context.Context, r *request) (*Timer, error) {
	if r.tx.execer != nil {
		answers := make([]Answer, 1)
		if _, err := k.write(ctx, []*request{r}, answers); err != nil {
			return nil, err
		}
		return &Timer{
			Executor: r.Executor, Handler: r.Handler, Key: r.Key, FireAt: answers[0].FireAt, Outcome: Written, Input: r.Input, Labels: r.Labels,
		}, nil
	}
	t, err := k.ask(ctx, r.Key, "", r.TimerRequest, r.repeatUntil(time.Now()))
	if err != nil {
		return nil, err
	}
	if r.own && t.Outcome == Kept { // by the answer that was lost
		t.Outcome = Created
	}
	return t, nil
}

// Get returns the timer of the key: the pending one, or else the one whose run is the newest.
func (k Keys) Get(ctx context.Context, key string) (*Timer, error) {
	return k.ask(ctx, key, k.path(key), nil, time.Time{})
}

// Cancel ends the timer of the key; one whose run exists already is cancelled as a
// run is, which asks a running handler to stop. It is no error when it was cancelled
// before. One that has ended otherwise is ErrEnded, with the timer if it could be read,
// else nil. With Tx the cancellation is written instead (Outbox).
func (k Keys) Cancel(ctx context.Context, key string, tx ...Transaction) (*Timer, error) {
	if len(tx) > 0 {
		return k.writeChange(ctx, tx[0], key, cancelAction, time.Time{})
	}
	t, err := k.ask(ctx, key, k.path(key)+"/cancel", struct{}{}, time.Time{})
	if !errors.Is(err, ErrEnded) {
		return t, err
	}
	ended, failed := k.Get(ctx, key)
	if failed == nil && ended.State == "cancelled" {
		return ended, nil
	}
	return ended, err
}

// Reschedule moves the timer of the key to another instant. One that has started
// is ErrStarted, one that has ended ErrEnded. A request that may have been heard is not
// repeated when the instant is near: that is an *UnconfirmedError. With Tx the move is
// written instead (Outbox), and its instant counts from now on.
func (k Keys) Reschedule(ctx context.Context, key string, when When, tx ...Transaction) (*Timer, error) {
	if err := when.check(); err != nil {
		return nil, fmt.Errorf("timer %s of %s: %w", key, k.name(), err)
	}
	if len(tx) > 0 {
		return k.writeChange(ctx, tx[0], key, rescheduleAction, when.instant(time.Now()))
	}
	var body callapi.RescheduleTimerInputBody
	body.At, body.After = when.read()
	return k.ask(ctx, key, k.path(key)+"/reschedule", body, when.instant(time.Now()).Add(-landTime))
}

func (k Keys) path(key string) string {
	return "/" + url.PathEscape(k.executor) + "/" + url.PathEscape(k.handler) + "/" + url.PathEscape(key)
}

// ask sends a request about one timer; without a body it only reads.
func (k Keys) ask(ctx context.Context, key, path string, body any, repeatUntil time.Time) (*Timer, error) {
	a := callapi.Ask{Method: http.MethodGet, Path: "/timers" + path, RepeatUntil: repeatUntil}
	if body != nil {
		a.Method = http.MethodPost
		var err error
		if a.Body, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("timer of %s: encode input: %w", k.name(), err)
		}
	}
	var t callapi.Timer
	if reached, err := callapi.Do(ctx, k.client, a, &t); err != nil {
		return nil, failure(k.name(), key, reached, err)
	}
	return timerOf(t), nil
}

// landTime is longer than a request is on its way that its caller has given up.
const landTime = 15 * time.Second

// repeatUntil is until when the request may be repeated that a node may have
// heard: with Replace until its timer may have fired, because a second one would
// fire again; with Reject never, because it would be refused for its own timer.
// Zero = always.
func (r *request) repeatUntil(now time.Time) time.Time {
	switch Policy(r.Policy) {
	case Replace:
		return r.when.instant(now).Add(-landTime)
	case Reject:
		return now
	default:
		return time.Time{}
	}
}
