package timers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// CancelMany ends the timers of many keys as Cancel does, by as many requests of at most
// 10,000 as they need. The answers are in the order of keys: Cancelled, Cancelling, or an
// error, as ErrNotFound and ErrEnded. The error is nil when all were cancelled; else the
// answers tell which were not. With Tx the cancellations are written instead.
func (k Keys) CancelMany(ctx context.Context, keys []string, tx ...Transaction) ([]Answer, error) {
	answers := make([]Answer, len(keys))
	for i, key := range keys {
		answers[i].Key = key
	}
	return k.inBatches(answers, "cancelled", func(from int) (int, error) {
		if len(tx) > 0 {
			return k.writeCancels(ctx, tx[0], answers[from:])
		}
		return k.cancelBatch(ctx, answers[from:], false)
	})
}

// cancelBatch is batch for cancellations. freeEnded: also the keys of timers that have
// ended are free afterwards.
func (k Keys) cancelBatch(ctx context.Context, answers []Answer, freeEnded bool) (int, error) {
	head, err := json.Marshal(callapi.CancelTimersRequest{Executor: k.executor, Handler: k.handler, FreeEnded: freeEnded})
	if err != nil {
		return 0, fmt.Errorf("timers of %s: %w", k.name(), err)
	}
	head = append(head[:len(head)-1], `,"keys":[`...)
	body, size, err := fill(head, len(answers), func(i int) any { return answers[i].Key })
	if err != nil {
		return 0, fmt.Errorf("timers of %s: %w", k.name(), err)
	}
	var out callapi.TimerCancellation
	reached, err := callapi.Do(ctx, k.client, callapi.Ask{
		Method: http.MethodPost, Path: "/timers/cancel", Body: body, Wait: batchTime, Longest: maxAnswer,
	}, &out)
	if err == nil && len(out.Items) != size {
		err = fmt.Errorf("%d answers for %d timers", len(out.Items), size)
	}
	if err != nil {
		return size, k.noAnswer(answers[:size], reached, err)
	}
	for i, item := range out.Items {
		a := Answer{Key: answers[i].Key}
		switch p := k.problem(a.Key, item.Outcome, item.Problem); {
		case p != nil:
			a.Err = p
		case Outcome(item.Outcome) == Cancelled || Outcome(item.Outcome) == Cancelling:
			a.Outcome = Outcome(item.Outcome)
		default: // not_found, already_finished
			a.Err = &RefusedError{Handler: k.name(), Key: a.Key, Code: item.Outcome, Detail: "the timer was not cancelled"}
		}
		answers[i] = a
	}
	return size, nil
}

// Cancellation is how far a cancel of many timers is, as it was when it was last read.
type Cancellation struct {
	// ID is for Keys.Cancellation.
	ID string
	// Prefix or Label are what was asked for.
	Prefix, Label string
	// Found is how many had not ended, so far; Cancelled how many of those were
	// cancelled.
	Found, Cancelled int64
	// Done: nothing is left.
	Done bool

	keys Keys
}

// CancelPrefix begins to cancel all timers of the handler whose key begins with prefix,
// which must not be empty. An admin node does it in steps, also when the caller is gone:
// Wait waits for the end, Refresh tells how far it is. Timers that are set later are not
// cancelled.
func (k Keys) CancelPrefix(ctx context.Context, prefix string) (*Cancellation, error) {
	return k.cancelAll(ctx, callapi.CancelTimersRequest{KeyPrefix: prefix})
}

// CancelLabel is CancelPrefix for all timers of the handler that have the label.
func (k Keys) CancelLabel(ctx context.Context, label string) (*Cancellation, error) {
	return k.cancelAll(ctx, callapi.CancelTimersRequest{Label: label})
}

func (k Keys) cancelAll(ctx context.Context, body callapi.CancelTimersRequest) (*Cancellation, error) {
	body.Executor, body.Handler = k.executor, k.handler
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("timers of %s: %w", k.name(), err)
	}
	return k.cancellation(ctx, callapi.Ask{Method: http.MethodPost, Path: "/timers/cancel", Body: raw})
}

// Cancellation reads how far one is, by its ID.
func (k Keys) Cancellation(ctx context.Context, id string) (*Cancellation, error) {
	return k.cancellation(ctx, callapi.Ask{Method: http.MethodGet, Path: "/timer-cancellations/" + url.PathEscape(id)})
}

func (k Keys) cancellation(ctx context.Context, a callapi.Ask) (*Cancellation, error) {
	var c callapi.TimerCancellation
	if reached, err := callapi.Do(ctx, k.client, a, &c); err != nil {
		return nil, failure(k.name(), "", reached, err)
	}
	return &Cancellation{ID: c.ID, Prefix: c.KeyPrefix, Label: c.Label, Found: c.Found, Cancelled: c.Cancelled, Done: c.Done, keys: k}, nil
}

// Refresh reads how far it is.
func (c *Cancellation) Refresh(ctx context.Context) error {
	now, err := c.keys.Cancellation(ctx, c.ID)
	if err == nil {
		*c = *now
	}
	return err
}

const (
	// askFirst and askMost are between two looks at a cancellation.
	askFirst = 50 * time.Millisecond
	askMost  = 2 * time.Second
)

// Wait returns when it is done. It may be given up, with ctx, and called again.
func (c *Cancellation) Wait(ctx context.Context) error {
	for pause := askFirst; !c.Done; pause = min(2*pause, askMost) {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		if err := c.Refresh(ctx); err != nil {
			return err
		}
	}
	return nil
}
