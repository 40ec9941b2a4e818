package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const (
	// pendingTimers are those that rest in the table meanwhile, in all and with
	// --quick.
	pendingTimers      = 20_000_000
	pendingTimersQuick = 1_000_000
	// pendingFrom and pendingFor say when they are due: not while it is measured.
	pendingFrom = 24 * time.Hour
	pendingFor  = 30 * 24 * time.Hour
	// pendingRow is about how long it takes to store one of them.
	pendingRow = 30 * time.Microsecond
)

// timersPending measures what is done with timers beside many that are pending, in
// turn with a node of its own that has none, on the same server.
func (b *bench) timersPending() []part {
	kind, n := b.o.databases(true)[0], pendingTimers
	if b.o.Quick {
		n = pendingTimersQuick
	}
	variant := fmt.Sprintf("%d pending", n)
	works := []pendingWork{
		// First: it waits until no timer of the handler is pending.
		{timersEvenly, firesTimers, p99Of},
		{"set in batches of 1,000", setsTimers("/api/v1/timers/batch"), rateOf},
		{timersCancelled, setsTimers("/api/v1/timers/cancel"), rateOf},
	}
	return []part{{
		result: Result{Scenario: "timers-pending", Variant: variant + ", " + timersCancelled, Database: kind, Admins: 1},
		usual:  time.Duration(n)*pendingRow + 2*turns*3*(b.window(8*time.Second)+15*time.Second),
		run: func(ctx context.Context, r *Result) error {
			return b.withFleet(ctx, kind, 1, func(empty *fleet) error {
				return b.withFleet(ctx, kind, 1, func(full *fleet) error {
					if err := full.rest(ctx, n, r); err != nil {
						return err
					}
					return b.besidePending(ctx, empty, full, variant, works, r)
				})
			})
		},
	}}
}

// pendingWork is measured in turn; of its turns the middle one counts, by figure.
type pendingWork struct {
	said   string
	do     func(ctx context.Context, f *fleet, one *Result) error
	figure func(Result) float64
}

func rateOf(r Result) float64 { return r.Throughput.PerSecond }
func p99Of(r Result) float64  { return r.Lateness.P99 }

func setsTimers(path string) func(context.Context, *fleet, *Result) error {
	return func(ctx context.Context, f *fleet, one *Result) error {
		return f.timersCreate(ctx, timerWork{size: timerBatch, path: path}, one)
	}
}

func firesTimers(ctx context.Context, f *fleet, one *Result) error {
	return f.timersFire(ctx, timersSteady*int(f.b.window(8*time.Second)/time.Second), evenly(timersSteady), one)
}

// rest stores timers of another handler that are pending all the time.
func (f *fleet) rest(ctx context.Context, n int, r *Result) error {
	to := timerTarget{"bench", handlerOnce, func(int64) any { return struct{}{} }}
	due := func(int64) time.Time { return time.Now().Add(pendingFrom + rand.N(pendingFor)) }
	set, err := f.timerSetter(ctx, to, due)
	if err != nil {
		return err
	}
	if err := set.batch(ctx, 1); err != nil {
		return err
	}
	began := time.Now()
	var left, done atomic.Int64
	left.Store(int64(n))
	more := func() bool { return left.Add(-timerBatch) >= 0 }
	if err := f.storeTimers(ctx, handlerOnce, due, more, func() { done.Add(timerBatch) }); err != nil {
		return err
	}
	r.note(f.b, "storing %d timers took %.0f s", done.Load(), time.Since(began).Seconds())
	began = time.Now()
	count, err := f.countTimers(ctx, handlerOnce)
	if err != nil {
		return err
	}
	r.note(f.b, "counting them took %.1f ms: %d", float64(time.Since(began).Microseconds())/1000, count.Pending)
	return nil
}

func (b *bench) besidePending(ctx context.Context, empty, full *fleet, variant string, works []pendingWork, r *Result) error {
	for i, w := range works {
		lists, err := takeTurns(ctx, empty, full, func(f *fleet) (func(context.Context) (Result, error), error) {
			said := "none pending, "
			if f == full {
				said = variant + ", "
			}
			return func(ctx context.Context) (Result, error) {
				one := Result{Scenario: r.Scenario, Variant: said + w.said, Database: r.Database, Admins: r.Admins}
				return one, w.do(ctx, f, &one)
			}, nil
		})
		if err != nil {
			return err
		}
		for side, list := range lists {
			middle := middleOf(list, w.figure)
			middle.note(b, "the middle of %d turns: %s", turns, figures(list, w.figure))
			if last := i == len(works)-1 && side == len(lists)-1; last {
				middle.Notes = append(r.Notes, middle.Notes...)
				*r = middle
			} else {
				b.add(middle, nil)
			}
		}
	}
	return nil
}
