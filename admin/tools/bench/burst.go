package main

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// burstRounds are three, so that one hiccup does not make the figure.
const burstRounds = 3

// burst makes many jobs due on the same second, again and again.
func (b *bench) burst() (parts []part) {
	sizes := []int{1000, 5000, 20_000}
	if b.o.Quick {
		sizes = sizes[:1]
	}
	for _, kind := range b.o.databases(b.o.Quick) {
		for _, n := range sizes {
			parts = append(parts, part{
				result: Result{Scenario: "burst", Variant: fmt.Sprintf("%d on one second", n), Database: kind, Admins: 1, Jobs: n},
				usual:  35*time.Second + time.Duration(n)*2500*time.Microsecond,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.burst(ctx, n, r) })
				},
			})
		}
	}
	return parts
}

// burst measures one size on a fleet.
func (f *fleet) burst(ctx context.Context, n int, r *Result) error {
	alone, err := f.b.measureFloor(ctx, floorPlan{kind: f.db.kind, handler: handlerOnce, shape: fullShape(), lives: n, ahead: true})
	if err != nil {
		return err
	}
	r.FloorLateness = alone.lateness()
	// Rounds must not meet each other.
	every := 5*time.Second + time.Duration(n)*500*time.Microsecond
	every = every.Truncate(time.Second)
	anchor := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	jobs, err := f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		return ticking(number("burst", i), handlerOnce, every, anchor)
	}, notYet)
	if err != nil {
		return err
	}
	// The first round is the warm-up.
	warm := onGrid(anchor, every, time.Now().Add(lead+time.Duration(n)*100*time.Microsecond))
	if err := f.start(ctx, jobs, func(int) time.Time { return warm }); err != nil {
		return err
	}
	first := warm.Add(every)
	to := first.Add(burstRounds * every)
	if err := pauseUntil(ctx, first.Add(-time.Second)); err != nil {
		return err
	}
	if err := f.measure(ctx, to.Add(-4*time.Second), r); err != nil {
		return err
	}
	if err := f.stop(ctx, jobs); err != nil {
		return err
	}
	if err := f.drain(ctx, time.Minute); err != nil {
		return err
	}
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return err
	}
	r.Window = seconds(to.Sub(first))
	r.Fires, r.Lateness = seen.judge(grid{every: every, from: first, to: to, exact: burstRounds * n})
	if err := r.Fires.broken(); err != nil {
		r.Failed = err.Error()
		f.keep = true
	}
	return nil
}

// onGrid is the first of anchor + n·every that is not before at.
func onGrid(anchor time.Time, every time.Duration, at time.Time) time.Time {
	return at.Add((every - at.Sub(anchor)%every) % every)
}
