package timers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// Answer is what became of one of many timers, or of its cancellation.
type Answer struct {
	Key     string
	Outcome Outcome   // empty with Err
	FireAt  time.Time // zero with Err, and of a cancellation
	Err     error     // a *RefusedError or an *UnconfirmedError

	ended bool // Kept: the one that stays has ended
}

// Bounds of one request. The bytes are the admin's for a body, and of answers
// more than 10,000 long ones have.
const (
	maxBatch     = 10_000
	maxBatchBody = 8<<20 - 1<<10
	maxAnswer    = 16 << 20
	// batchTime is what an admin may take for a batch, beyond the time for any request.
	batchTime = 20 * time.Second
)

func (k Keys) many(ctx context.Context, requests []*request) ([]Answer, error) {
	answers := make([]Answer, len(requests))
	for i, r := range requests {
		answers[i].Key = r.Key
	}
	return k.inBatches(answers, "set", func(from int) (int, error) {
		if requests[from].tx.execer != nil {
			return k.write(ctx, requests[from:], answers[from:])
		}
		return k.batch(ctx, requests[from:], answers[from:])
	})
}

// inBatches has send answer all, which have their keys already: send answers some, from
// an index on, and returns their number. done is what is to become of them.
func (k Keys) inBatches(answers []Answer, done string, send func(from int) (int, error)) ([]Answer, error) {
	for begin := 0; begin < len(answers); {
		size, err := send(begin)
		begin += size
		var gone *UnconfirmedError
		switch {
		case errors.As(err, &gone): // the next request would fare no better
			for ; begin < len(answers); begin++ {
				answers[begin].Err = &UnconfirmedError{Handler: k.name(), Key: answers[begin].Key, Err: gone.Err}
			}
		case err != nil:
			return nil, err
		}
	}
	failed, first := 0, error(nil)
	for _, a := range answers {
		if a.Err != nil {
			failed, first = failed+1, cmp.Or(first, a.Err)
		}
	}
	if failed > 0 {
		return answers, fmt.Errorf("%d of %d timers were not %s; the first: %w", failed, len(answers), done, first)
	}
	return answers, nil
}

// fill appends elements to the list that body begins, as many of n as one request holds,
// and returns their number.
func fill(body []byte, n int, element func(i int) any) (full []byte, size int, err error) {
	for ; size < min(n, maxBatch); size++ {
		one, err := json.Marshal(element(size))
		if err != nil {
			return nil, 0, fmt.Errorf("encode: %w", err)
		}
		if size > 0 && len(body)+len(one)+len(",]}") > maxBatchBody {
			break
		}
		if size > 0 {
			body = append(body, ',')
		}
		body = append(body, one...)
	}
	return append(body, "]}"...), size, nil
}

// batch asks for as many timers, from the first on, as one request holds, and
// returns their number. When the request itself has failed, each answer says so; the error
// is that of an admin that nobody has heard.
func (k Keys) batch(ctx context.Context, requests []*request, answers []Answer) (int, error) {
	asked := slices.IndexFunc(requests, func(r *request) bool { return r.tx.execer != nil })
	if asked < 0 {
		asked = len(requests)
	}
	body, size, err := fill([]byte(`{"timers":[`), asked, func(i int) any { return requests[i].TimerRequest })
	if err != nil {
		return 0, fmt.Errorf("timers of %s: %w", k.name(), err)
	}
	until := time.Time{}
	for _, r := range requests[:size] {
		if t := r.repeatUntil(time.Now()); until.IsZero() || !t.IsZero() && t.Before(until) {
			until = t
		}
	}
	var out callapi.TimerBatch
	a := callapi.Ask{Method: http.MethodPost, Path: "/timers/batch", Body: body, Wait: batchTime, Longest: maxAnswer, RepeatUntil: until}
	reached, err := callapi.Do(ctx, k.client, a, &out)
	if err == nil && len(out.Items) != size {
		err = fmt.Errorf("%d answers for %d timers", len(out.Items), size)
	}
	if err != nil {
		return size, k.noAnswer(answers[:size], reached, err)
	}
	for i, r := range requests[:size] {
		answers[i] = k.answer(r, out.Items[i])
	}
	return size, nil
}

// noAnswer says of all that their request has failed. The error is that of an admin
// that nobody has heard, else nil.
func (k Keys) noAnswer(answers []Answer, reached bool, err error) error {
	for i := range answers {
		answers[i].Err = failure(k.name(), answers[i].Key, reached, err)
	}
	if gone := (&UnconfirmedError{}); errors.As(answers[0].Err, &gone) {
		return gone
	}
	return nil
}

func (k Keys) answer(r *request, item callapi.TimerBatchItem) Answer {
	a := Answer{Key: r.Key, Outcome: Outcome(item.Outcome), Err: k.problem(r.Key, item.Outcome, item.Problem)}
	switch {
	case a.Err != nil:
		a.Outcome = ""
		return a
	case a.Outcome == Kept && r.own: // by the answer that was lost
		a.Outcome = Created
	}
	if item.FireAt != nil {
		a.FireAt = *item.FireAt
	}
	// A cancelled one keeps no key. It is the answer to a request that was sent again.
	a.ended = a.Outcome == Kept && hasEnded(item.State) && item.State != "cancelled"
	return a
}

// problem is what is wrong with one of many, nil without.
func (k Keys) problem(key, outcome string, p *callapi.TimerProblem) error {
	switch {
	case p == nil:
		return nil
	case outcome == "failed":
		return &UnconfirmedError{Handler: k.name(), Key: key, MayBeDone: true, Err: errors.New(p.Detail)}
	default:
		return &RefusedError{Handler: k.name(), Key: key, Code: p.Code, Detail: p.Detail}
	}
}
