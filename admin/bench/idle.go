package bench

import (
	"context"
	"fmt"
	"time"
)

// idle measures what it costs to have many enabled jobs that do not fire.
func (b *bench) idle(ctx context.Context) error {
	sizes := b.o.Jobs
	switch {
	case len(sizes) > 0:
	case b.o.Quick:
		sizes = []int{10_000}
	default:
		sizes = []int{100_000}
	}
	for _, kind := range b.o.databases(b.o.Quick) {
		for _, n := range sizes {
			r := Result{Scenario: "idle", Variant: fmt.Sprintf("%d enabled jobs", n), Database: kind, Admins: 1}
			err := b.withFleet(ctx, kind, 1, func(f *fleet) error { return f.idle(ctx, n, &r) })
			if err := b.add(r, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fleet) idle(ctx context.Context, n int, r *Result) (err error) {
	if err := f.loadIdle(ctx, n, r); err != nil {
		return err
	}
	if err := pause(ctx, warmUp); err != nil {
		return err
	}
	window := f.b.window(time.Minute)
	r.Window = seconds(window)
	r.Processes, err = f.measure(ctx, time.Now().Add(window), r.profileName())
	return err
}
