package main

import (
	"context"
	"fmt"
	"time"
)

// idle measures what it costs to have many enabled jobs that do not fire. A
// million of them are measured on the first database only.
func (b *bench) idle() (parts []part) {
	sizes := b.o.Jobs
	switch {
	case len(sizes) > 0:
	case b.o.Quick:
		sizes = []int{10_000}
	default:
		sizes = []int{100_000, 1_000_000}
	}
	for i, kind := range b.o.databases(b.o.Quick) {
		for _, n := range sizes {
			if i > 0 && n >= 1_000_000 && len(b.o.Jobs) == 0 {
				continue
			}
			parts = append(parts, part{
				result: Result{Scenario: "idle", Variant: fmt.Sprintf("%d enabled jobs", n), Database: kind, Admins: 1},
				usual:  b.window(idleWindow) + 10*time.Second + time.Duration(n)*loadJob,
				run: func(ctx context.Context, r *Result) error {
					return b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.idle(ctx, n, r) })
				},
			})
		}
	}
	return parts
}

// idleWindow is shorter than steady's: nothing happens in it.
const idleWindow = 40 * time.Second

func (f *fleet) idle(ctx context.Context, n int, r *Result) (err error) {
	if err := f.loadIdle(ctx, n, r); err != nil {
		return err
	}
	if err := pause(ctx, warmUp); err != nil {
		return err
	}
	window := f.b.window(idleWindow)
	r.Window = seconds(window)
	return f.measure(ctx, time.Now().Add(window), r)
}
