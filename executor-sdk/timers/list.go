package timers

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// State is how far timers are, for lists.
type State string

// The states.
const (
	Pending State = "pending" // their time has not come
	Claimed State = "claimed" // their runs have not ended
	Ended   State = "ended"   // their runs have ended, or they were cancelled
)

// Filter says which timers of a handler are listed. What is empty leaves all.
type Filter struct {
	State    State // default: Pending
	Prefix   string
	Label    string
	From, To time.Time // set for From or later, and earlier than To
}

const (
	pageSize = 100
	// maxPage is more than the timers of a page have, of which each may bring 256 KiB,
	// escaped.
	maxPage = 256 << 20
)

// List returns the timers of the handler, pending ones by their keys and others from the
// newest, as an iterator that asks for a page when it is needed. An error is the last that
// it gives. What is set, fires or is cancelled meanwhile may be in the list or not.
func (k Keys) List(ctx context.Context, f Filter) iter.Seq2[*Timer, error] {
	return func(yield func(*Timer, error) bool) {
		q := url.Values{"executor": {k.executor}, "handler": {k.handler}, "limit": {strconv.Itoa(pageSize)}}
		for name, value := range map[string]string{"state": string(f.State), "keyPrefix": f.Prefix, "label": f.Label} {
			if value != "" {
				q.Set(name, value)
			}
		}
		for name, at := range map[string]time.Time{"from": f.From, "to": f.To} {
			if !at.IsZero() {
				q.Set(name, instantText(At(at).instant(at)))
			}
		}
		for {
			var page callapi.PageTimer
			a := callapi.Ask{Method: http.MethodGet, Path: "/timers?" + q.Encode(), Longest: maxPage}
			if reached, err := callapi.Do(ctx, k.client, a, &page); err != nil {
				yield(nil, failure(k.name(), "", reached, err))
				return
			}
			for _, t := range page.Items {
				if !yield(timerOf(t), nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			q.Set("cursor", *page.NextCursor)
		}
	}
}

// Count returns how many timers of the handler are pending, exactly.
func (k Keys) Count(ctx context.Context) (int64, error) {
	var c callapi.TimerCount
	q := url.Values{"executor": {k.executor}, "handler": {k.handler}}
	if reached, err := callapi.Do(ctx, k.client, callapi.Ask{Method: http.MethodGet, Path: "/timers/count?" + q.Encode()}, &c); err != nil {
		return 0, failure(k.name(), "", reached, err)
	}
	return c.Pending, nil
}
