package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// turns is how often a full and an empty table are measured, one after the
	// other: a machine changes by more than the tenth that is looked for.
	turns = 3
	// variantEmpty is the empty one.
	variantEmpty = "no finished runs"
)

// finishedRuns measures what is done beside many finished runs, in turn with a
// node of its own whose tables are empty, on the same server.
func (b *bench) finishedRuns(rows int) part {
	kind, variant := b.o.Databases[0], fmt.Sprintf("%d finished runs", rows)
	run := func(ctx context.Context, r *Result) error {
		return b.withFleet(ctx, kind, 1, func(empty *fleet) error {
			return b.withFleet(ctx, kind, 1, func(full *fleet) error {
				if err := full.loadRows(ctx, rows, r); err != nil {
					return err
				}
				if err := full.settle(ctx, r); err != nil {
					return err
				}
				if err := full.reads(ctx, r); err != nil {
					return err
				}
				return inTurn(ctx, empty, full, variant, r)
			})
		})
	}
	return part{
		result: Result{Scenario: "scale", Variant: variant + ", throughput", Database: kind, Admins: 1},
		usual:  time.Duration(rows)*loadRow + 2*turns*b.quickOr(40*time.Second, 60*time.Second),
		run:    run,
	}
}

// inTurn measures steady load and throughput; of each the middle of its turns
// counts, by the figure that is compared. r becomes the throughput of full.
func inTurn(ctx context.Context, empty, full *fleet, variant string, r *Result) error {
	b := full.b
	of := func(f *fleet, what string) Result {
		one := Result{Scenario: r.Scenario, Variant: variantEmpty + what, Database: r.Database, Admins: r.Admins}
		if f == full {
			one.Variant, one.Rows, one.Jobs = variant+what, r.Rows, r.Jobs
		}
		return one
	}
	began := time.Now()
	slow, err := takeTurns(ctx, empty, full, func(f *fleet) (func(context.Context) (Result, error), error) {
		l, err := newLoad(ctx, f, handlerOnce, steadyRate)
		return func(ctx context.Context) (Result, error) {
			one := of(f, ", steady")
			one.Jobs += len(l.jobs)
			return one, l.steady(ctx, scaleWindow/2, &one)
		}, err
	})
	if err != nil {
		return err
	}
	for _, list := range slow {
		middle := middleOf(list, func(one Result) float64 { return one.Lateness.P99 })
		middle.Took = seconds(time.Since(began)) / 2
		middle.note(b, "the middle of %d turns, p99 %s ms", turns, figures(list, func(one Result) float64 { return one.Lateness.P99 }))
		b.add(middle, nil)
	}
	floor, err := b.floorOf(ctx, r.Database, handlerOnce)
	if err != nil {
		return err
	}
	fast, err := takeTurns(ctx, empty, full, func(f *fleet) (func(context.Context) (Result, error), error) {
		l, err := newLoad(ctx, f, handlerOnce, floor.possible())
		return func(ctx context.Context) (Result, error) {
			one := of(f, ", throughput")
			one.Jobs += len(l.jobs)
			return one, l.throughput(ctx, handlerOnce, floor, &one)
		}, err
	})
	if err != nil {
		return err
	}
	rate := func(one Result) float64 { return one.Throughput.PerSecond }
	for i, list := range fast {
		middle := middleOf(list, rate)
		middle.note(b, "the middle of %d turns, %s fires/s", turns, figures(list, rate))
		if i == 0 {
			b.add(middle, nil)
			continue
		}
		middle.Notes = append(r.Notes, middle.Notes...)
		*r = middle
	}
	return nil
}

// takeTurns measures empty, full, empty, full and so on; the results of empty
// come first.
func takeTurns(
	ctx context.Context, empty, full *fleet, prepare func(*fleet) (func(context.Context) (Result, error), error),
) (results [2][]Result, err error) {
	var measure [2]func(context.Context) (Result, error)
	for i, f := range []*fleet{empty, full} {
		if measure[i], err = prepare(f); err != nil {
			return results, err
		}
	}
	for range turns {
		for i := range measure {
			one, err := measure[i](ctx)
			if err != nil {
				return results, err
			}
			if one.Failed != "" {
				return results, fmt.Errorf("%s: %s", one.Variant, one.Failed)
			}
			results[i] = append(results[i], one)
		}
	}
	return results, nil
}

// middleOf is the result in the middle by that figure.
func middleOf(list []Result, figure func(Result) float64) Result {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b Result) int { return cmp.Compare(figure(a), figure(b)) })
	return sorted[len(sorted)/2]
}

// figures lists them in the order in which they were measured.
func figures(list []Result, figure func(Result) float64) (text string) {
	for i, one := range list {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%.1f", figure(one))
	}
	return text
}
