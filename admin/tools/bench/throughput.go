package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// throughput measures what is sustained when a little more is due than can be
// done: first it looks for about how much that is, then it measures. The
// embedded database has one figure, of the handlers that cost it more.
func (b *bench) throughput() (parts []part) {
	for _, kind := range b.o.Databases {
		handlers := []string{handlerOnce, handlerIdempotent}
		if b.o.Quick || kind == SQLite {
			handlers = handlers[:1]
		}
		for _, handler := range handlers {
			parts = append(parts, part{
				result: Result{Scenario: "throughput", Variant: variantOf(handler), Database: kind, Admins: 1},
				usual:  b.quickOr(70*time.Second, 160*time.Second),
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.throughput(ctx, handler, r) })
				},
			})
		}
	}
	return parts
}

func variantOf(handler string) string {
	if handler == handlerIdempotent {
		return "idempotent"
	}
	return "at most once"
}

const (
	// lead is how long before the first fire everything is told: more than the
	// planner looks ahead.
	lead = 5 * time.Second
	// warmUp is left out of every window.
	warmUp = 4 * time.Second
	// probeFor is how long a rate is tried.
	probeFor = 4 * time.Second
	// overload is what is due beyond what was found possible.
	overload = 1.10
	// sustainTries bounds how often more is offered.
	sustainTries = 2
)

// throughput measures one kind of handler on a fleet.
func (f *fleet) throughput(ctx context.Context, handler string, r *Result) error {
	floor, err := f.b.floorOf(ctx, f.db.kind, handler)
	if err != nil {
		return err
	}
	l, err := newLoad(ctx, f, handler, floor.possible())
	if err != nil {
		return err
	}
	r.Jobs += len(l.jobs)
	return l.throughput(ctx, handler, floor, r)
}

// possible is how many fires in a second a load has to make possible: more than
// the floor, which may have been measured in a bad moment, and must not bound
// what is compared with it.
func (f *floor) possible() int { return max(10_000, int(2*f.perSecond())) }

// throughput may be measured several times with the same load.
func (l *load) throughput(ctx context.Context, handler string, floor *floor, r *Result) (err error) {
	f := l.f
	key := floorKey{f.db.kind, handler}
	rate := min(len(l.jobs), int(f.b.carried[key]*overload))
	if rate == 0 {
		if rate, err = l.search(ctx, floor.perSecond()*0.3); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		if err := l.sustain(ctx, rate, r); err != nil {
			return err
		}
		t := r.Throughput
		t.Floor, t.FloorPercent, t.FloorStages = floor.perSecond(), 100*t.PerSecond/floor.perSecond(), floor.stages()
		f.b.carried[key] = max(f.b.carried[key], t.PerSecond)
		if t.PerSecond < 0.97*t.Offered || t.Offered >= float64(len(l.jobs)) {
			break
		}
		// Everything that was due was done: it could have been more.
		if try == sustainTries {
			r.note(f.b, "all that was offered was done: it carries more than this")
			break
		}
		rate = min(len(l.jobs), int(t.Offered*1.25))
	}
	if r.Throughput.FloorPercent > 100 {
		r.note(f.b, "above its floor: the machine was busier with other work when that was measured; measure again when it is quiet")
	}
	return nil
}

// load is jobs that fire once a second, of which any number can be active.
type load struct {
	f      *fleet
	jobs   []domain.JobID
	anchor time.Time
}

// newLoad makes at most n fires per second possible.
func newLoad(ctx context.Context, f *fleet, handler string, n int) (*load, error) {
	l := &load{f: f, anchor: time.Now().Add(-time.Hour).Truncate(time.Second).UTC()}
	var err error
	prefix := "every-second-" + handler + "-" + strconv.Itoa(n)
	l.jobs, err = f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		return ticking(number(prefix, i), handler, time.Second, l.anchor.Add(l.offset(i)))
	}, notYet)
	return l, err
}

// offset spreads the jobs over the second, whatever number of them is active.
func (l *load) offset(i int) time.Duration { return time.Duration(fraction(i)*1000) * time.Millisecond }

// fraction is the i-th of many that fill the interval from 0 to 1 evenly, however
// many there are: multiples of the golden ratio.
func fraction(i int) float64 {
	_, part := math.Modf(float64(i) * 0.6180339887498949)
	return part
}

// begin activates n jobs and returns their first second.
func (l *load) begin(ctx context.Context, n int) (time.Time, error) {
	from := time.Now().Add(lead).Truncate(time.Second).Add(time.Second)
	err := l.f.start(ctx, l.jobs[:n], func(i int) time.Time { return from.Add(l.offset(i)) })
	if err == nil && time.Until(from) <= 0 {
		err = fmt.Errorf("activating %d jobs took longer than %s", n, lead)
	}
	return from, err
}

// end stops all jobs and waits until what they had planned has run.
func (l *load) end(ctx context.Context) error {
	if err := l.f.stop(ctx, l.jobs); err != nil {
		return err
	}
	return l.f.drain(ctx, 2*time.Minute)
}

// search raises the rate until it is not carried any more, and returns a
// little more than what was.
func (l *load) search(ctx context.Context, from float64) (int, error) {
	n := min(len(l.jobs), max(500, int(from)))
	for {
		got, err := l.probe(ctx, n)
		if err != nil {
			return 0, err
		}
		l.f.b.o.Say("  %d fires/s offered: %.0f done", n, got)
		if got < 0.95*float64(n) {
			return min(len(l.jobs), int(got*overload)+1), nil
		}
		if n == len(l.jobs) {
			return n, nil
		}
		n = min(len(l.jobs), n*3/2)
		if l.f.b.o.Quick {
			n = min(len(l.jobs), n*4/3) // twice as much: fewer steps
		}
	}
}

// probe offers n fires per second for a short while and returns what was done.
func (l *load) probe(ctx context.Context, n int) (float64, error) {
	from, err := l.begin(ctx, n)
	if err != nil {
		return 0, err
	}
	if err := pauseUntil(ctx, from.Add(warmUp)); err != nil {
		return 0, err
	}
	began := time.Now()
	before, err := l.f.succeeded(ctx)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, probeFor); err != nil {
		return 0, err
	}
	after, err := l.f.succeeded(ctx)
	if err != nil {
		return 0, err
	}
	rate := (after - before) / time.Since(began).Seconds()
	return rate, l.end(ctx)
}

// sustain offers n fires per second and measures the window.
func (l *load) sustain(ctx context.Context, n int, r *Result) error {
	f := l.f
	first, err := l.begin(ctx, n)
	if err != nil {
		return err
	}
	from := first.Add(warmUp)
	to := from.Add(f.b.window(20 * time.Second))
	if err := pauseUntil(ctx, from); err != nil {
		return err
	}
	if err := f.measure(ctx, to, r); err != nil {
		return err
	}
	if err := l.end(ctx); err != nil {
		return err
	}
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return err
	}
	r.Window = seconds(to.Sub(from))
	r.Fires, r.Lateness = seen.judge(grid{every: time.Second, from: first, to: to.Add(time.Minute)})
	done := seen.finishedIn(from, to)
	r.Throughput = &Throughput{PerSecond: float64(done) / to.Sub(from).Seconds(), Offered: float64(n)}
	perFire(r.Processes, done)
	if err := r.Fires.broken(); err != nil {
		r.Failed = err.Error()
		f.keep = true
	}
	return nil
}
