package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// steadyRate is what a busy installation fires all day.
const steadyRate = 1000

// steady measures lateness and price of a load that is no effort.
func (b *bench) steady() (parts []part) {
	for _, kind := range b.o.databases(b.o.Quick) {
		parts = append(parts, part{
			result: Result{Scenario: "steady", Variant: fmt.Sprintf("%d fires/s", steadyRate), Database: kind, Admins: 1},
			usual:  b.window(time.Minute) + 25*time.Second,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.steady(ctx, time.Minute, r) })
			},
		})
	}
	return parts
}

// steady measures the rate on a fleet, for a window that options may change.
func (f *fleet) steady(ctx context.Context, window time.Duration, r *Result) error {
	l, err := newLoad(ctx, f, handlerOnce, steadyRate)
	if err != nil {
		return err
	}
	r.Jobs += len(l.jobs)
	return l.steady(ctx, window, r)
}

// steady may be measured several times with the same load.
func (l *load) steady(ctx context.Context, window time.Duration, r *Result) (err error) {
	f := l.f
	if r.FloorLateness, err = f.b.steadyFloor(ctx, f.db.kind); err != nil {
		return err
	}
	first, err := l.begin(ctx, steadyRate)
	if err != nil {
		return err
	}
	from := first.Add(warmUp)
	to := from.Add(f.b.window(window))
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
	r.Fires, r.Lateness = seen.judge(grid{every: time.Second, from: from, to: to, exact: steadyRate * int(to.Sub(from)/time.Second)})
	perFire(r.Processes, r.Fires.Started)
	if err := r.Fires.broken(); err != nil {
		r.Failed = err.Error()
		f.keep = true
	}
	return nil
}

// steadyFloor is how long the statements of an offer and its grant take for
// the few runs that are due within the same milliseconds, one after the other.
func (b *bench) steadyFloor(ctx context.Context, kind string) (*Spread, error) {
	if known := b.steadyFloors[kind]; known != nil {
		return known, nil
	}
	const few = 5
	s := shape{claim: few, offer: few, finish: few, workers: map[string]int{}}
	f, err := b.measureFloor(ctx, floorPlan{kind: kind, handler: handlerOnce, shape: s, lives: 2000})
	if err != nil {
		return nil, err
	}
	var ms []float64
	spent := map[int]time.Duration{} // by offer
	for i, step := range f.steps {
		switch step.stage {
		case stageOffer:
			spent[i] = f.result.busy[i]
		case stageGrant:
			total := f.result.busy[i]
			for _, before := range step.after {
				total += spent[before]
			}
			for range step.lives {
				ms = append(ms, float64(total.Microseconds())/1000)
			}
		}
	}
	b.steadyFloors[kind] = spreadOf(ms)
	return b.steadyFloors[kind], nil
}

// profileName begins the names of a result's profiles.
func (r *Result) profileName() string {
	name := r.Scenario + "-" + r.Variant + "-" + r.Database
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '/' || c == ',' {
			return '_'
		}
		return c
	}, name)
}
