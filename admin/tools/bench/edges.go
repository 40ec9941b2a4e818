package main

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// edges has many cron jobs due on the edge of each second, with the slots that
// an executor has by default and with more than are needed.
func (b *bench) edges() (parts []part) {
	sizes := []int{1000, 5000, 10_000}
	if b.o.Quick {
		sizes = sizes[:1]
	}
	window := 30 * time.Second
	if b.o.Window > 0 {
		window = b.o.Window
	}
	for _, n := range sizes {
		for _, slots := range []int{0, loadSlots} {
			said := "default slots"
			if slots > 0 {
				said = fmt.Sprintf("%d slots", executorsPerFleet*slots)
			}
			plan := fleetPlan{kind: b.o.databases(true)[0], admins: 1, slots: slots}
			parts = append(parts, part{
				result: Result{Scenario: "edges", Variant: fmt.Sprintf("%d each second, %s", n, said), Database: plan.kind, Admins: plan.admins, Jobs: n},
				usual:  window + 25*time.Second,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleetOf(ctx, plan, func(f *fleet) error { return f.edges(ctx, n, window, r) })
				},
			})
		}
	}
	return parts
}

// edges measures n jobs. The first seconds are the warm-up. What is not done
// some seconds after the last fire time counts as late as it is then.
func (f *fleet) edges(ctx context.Context, n int, window time.Duration, r *Result) error {
	first := time.Now().Add(lead + time.Duration(n)*time.Millisecond).Truncate(time.Second).UTC()
	from := first.Add(warmUp)
	to := from.Add(window)
	_, err := f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		s := ticking(number("edge", i), handlerOnce, 0, time.Time{})
		s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "* * * * * *", Dialect: "seconds", Zone: "UTC", EndAt: to.Add(-time.Millisecond)}
		return s
	}, func(int) time.Time { return first })
	if err != nil {
		return err
	}
	if err := pauseUntil(ctx, from.Add(-time.Second/2)); err != nil {
		return err
	}
	if err := f.measure(ctx, to.Add(-time.Second/2), r); err != nil {
		return err
	}
	g := grid{every: time.Second, from: from, to: to, exact: n * int(window/time.Second)}
	if err := f.drain(ctx, 10*time.Second); err != nil {
		if ctx.Err() != nil {
			return err
		}
		g.exact = 0 // planning may be behind, too
	}
	f.lab.Close()
	stopped := time.Now()
	seen, err := f.observe(ctx, f.executor)
	if err != nil {
		return err
	}
	var told, waiting int
	r.Window = seconds(window)
	r.Fires, r.Lateness, told, waiting = seen.unfinished(g, stopped)
	if g.exact == 0 {
		r.note(f.b, "it does not keep up: %d of %d had a row when it was stopped, of which %d waited and %d had been missed with a reason",
			r.Fires.Rows, n*int(window/time.Second), waiting, told)
	}
	perFire(r.Processes, seen.finishedIn(from, to))
	if err := r.Fires.broken(); err != nil {
		r.Failed = err.Error()
		f.keep = true
	}
	return nil
}
