package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// failoverWithin is how late a timer may be whose node was killed.
const failoverWithin = 5 * time.Second

// failoverNoticed is from when on timers count as late because of the kill.
const failoverNoticed = 100 * time.Millisecond

// timersFailover measures how late timers fire when one of two nodes is killed
// while they do. It has executors on both, and half of the timers.
func (b *bench) timersFailover() (parts []part) {
	kind, window := b.o.databases(true)[0], b.window(30*time.Second)
	if kind == SQLite { // it has one node
		return nil
	}
	rates := []int64{timersSteady}
	if b.o.Quick {
		rates = append(rates, timersSteady/5)
	}
	for _, rate := range rates {
		parts = append(parts, part{
			result: Result{Scenario: "timers-failover", Variant: fmt.Sprintf("%d/s, one of two nodes killed", rate), Database: kind, Admins: 2},
			usual:  2*window + 40*time.Second,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleet(ctx, kind, 2, func(f *fleet) error { return f.timersFailover(ctx, rate, int(window/time.Second), r) })
			},
		})
	}
	return parts
}

func (f *fleet) timersFailover(ctx context.Context, rate int64, window int, r *Result) error {
	victim := f.lab.Admins[1]
	err := lab.Until(ctx, time.Minute, "half of the partitions held by "+victim.Name, func(ctx context.Context) error {
		m, err := victim.API.Metrics(ctx)
		if held := m["carillon_partitions_held"]; err == nil && held < domain.Partitions/2 {
			err = fmt.Errorf("%g are", held)
		}
		return err
	})
	if err != nil {
		return err
	}
	// It is not measured: it does not live as long as the window.
	f.processes = slices.DeleteFunc(f.processes, func(p watched) bool { return p.name == victim.Name })
	f.profiles = slices.DeleteFunc(f.profiles, func(p profiled) bool { return p.name == victim.Name })
	var killed time.Time
	seen, err := f.fireTimers(ctx, int(rate)*window, evenly(rate), func(ctx context.Context, first, last time.Time) error {
		if err := pauseUntil(ctx, first.Add(last.Sub(first)/2)); err != nil {
			return err
		}
		victim.Process().Kill()
		killed = time.Now()
		return nil
	}, r)
	if err != nil {
		return err
	}
	late, until := seen.late(failoverNoticed)
	note := fmt.Sprintf("killed in the middle; %d started more than %v late", late, failoverNoticed)
	if late > 0 {
		note += fmt.Sprintf(", the last of them %.1f s after the kill", until.Sub(killed).Seconds())
	}
	r.Notes = append(r.Notes, note)
	return nil
}

// late counts the runs that started later than they may, and says when the last of
// them did.
func (o *observed) late(limit time.Duration) (n int, last time.Time) {
	for _, r := range o.rows {
		if starts := o.starts[r.ID]; len(starts) > 0 && starts[0].Std().Sub(r.FireAt) > limit {
			n++
			last = later(last, starts[0].Std())
		}
	}
	return n, last
}
