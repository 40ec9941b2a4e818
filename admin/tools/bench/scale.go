package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// scale measures steady load and throughput while one thing at a time grows.
// The first variant, one node and nothing else in the tables, is what the
// others are to be compared with.
func (b *bench) scale() (parts []part) {
	nodes, jobs, rows := b.scaleSizes()
	for _, n := range nodes {
		variant := fmt.Sprintf("admin nodes: %d", n)
		parts = append(parts, b.scaleOf(variant, n, 0, nil))
	}
	parts = slices.Insert(parts, 1, b.finishedRuns(rows))
	for _, n := range jobs {
		parts = append(parts, b.scaleOf(fmt.Sprintf("%d enabled jobs", n), 1, time.Duration(n)*loadJob, func(ctx context.Context, f *fleet, r *Result) error {
			if err := f.loadIdle(ctx, n, r); err != nil {
				return err
			}
			return f.settle(ctx, r)
		}))
	}
	return parts
}

// What loading one job, and one finished run, usually takes.
const (
	loadJob = 90 * time.Microsecond
	loadRow = 28 * time.Microsecond
)

// scaleSizes are what options and the database leave of the usual sizes.
func (b *bench) scaleSizes() (nodes, jobs []int, rows int) {
	nodes, jobs, rows = b.o.Admins, b.o.Jobs, b.o.Rows
	if len(nodes) == 0 {
		nodes = []int{1, 2, 4}
	}
	if b.o.Databases[0] == SQLite {
		nodes = nodes[:1] // one node is all that a file of its own can serve
	}
	if len(jobs) == 0 {
		jobs = []int{10_000, 100_000, 1_000_000}
	}
	if rows == 0 {
		rows = 10_000_000
	}
	if b.o.Quick {
		nodes, jobs = nodes[:min(2, len(nodes))], jobs[:1]
		if b.o.Rows == 0 {
			rows = 200_000
		}
	}
	return nodes, jobs, rows
}

// scaleOf measures both on one fleet: two results.
func (b *bench) scaleOf(variant string, admins int, filling time.Duration, fill func(context.Context, *fleet, *Result) error) part {
	kind := b.o.Databases[0]
	run := func(ctx context.Context, r *Result) error {
		return b.withFleet(ctx, kind, admins, func(f *fleet) error {
			if fill != nil {
				if err := fill(ctx, f, r); err != nil {
					return err
				}
			}
			steady := *r
			steady.Variant = variant + ", steady"
			began := time.Now()
			err := f.steady(ctx, scaleWindow, &steady)
			steady.Took = seconds(time.Since(began))
			b.add(steady, err)
			r.Notes = nil // told with the first
			return f.throughput(ctx, handlerOnce, r)
		})
	}
	return part{
		result: Result{Scenario: "scale", Variant: variant + ", throughput", Database: kind, Admins: admins},
		usual:  filling + b.quickOr(60*time.Second, 95*time.Second),
		run:    run,
	}
}

// scaleWindow is shorter than steady's own: there are seven of them.
const scaleWindow = 20 * time.Second

// loadIdle fills in enabled jobs that fire once a day, the first of them in an
// hour.
func (f *fleet) loadIdle(ctx context.Context, n int, r *Result) error {
	began := time.Now()
	anchor := began.Truncate(time.Second).UTC().Add(time.Hour)
	at := func(i int) time.Time { return anchor.Add(time.Duration(i%82_000) * time.Second) }
	_, err := f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		return ticking(number("daily", i), handlerOnce, 24*time.Hour, at(i))
	}, at)
	r.Jobs += n
	r.note(f.b, "loading %d enabled jobs took %.0f s", n, time.Since(began).Seconds())
	return err
}

// note keeps a remark and tells it.
func (r *Result) note(b *bench, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.Notes = append(r.Notes, text)
	b.o.Say("  %s", text)
}
