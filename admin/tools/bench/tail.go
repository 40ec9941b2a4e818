package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

const (
	// tailLines is how many lines of a log are followed; the handler writes one
	// every tailEvery.
	tailLines      = 500
	tailLinesQuick = 200
	tailEvery      = 20 * time.Millisecond
)

// tail measures how long after a handler wrote a line somebody who follows the
// log has it: executor, gateway, database, the API of another node where there
// are two.
func (b *bench) tail() (parts []part) {
	for _, kind := range b.o.databases(b.o.Quick) {
		admins := 2
		if kind == SQLite {
			admins = 1
		}
		parts = append(parts, part{
			result: Result{Scenario: "tail", Variant: "a line every " + tailEvery.String(), Database: kind, Admins: admins},
			usual:  10 * time.Second,
			run: func(ctx context.Context, r *Result) error {
				return b.withFleet(ctx, kind, admins, func(f *fleet) error { return f.tail(ctx, r) })
			},
		})
	}
	return parts
}

// tail follows the log of one run, and then kills it.
func (f *fleet) tail(ctx context.Context, r *Result) error {
	api := f.lab.Admins[len(f.lab.Admins)-1].API
	job, err := api.MakeJob(ctx, apiclient.JobWrite{
		Name: "tail", Executor: apiclient.ExecutorChoice{ID: f.executor.String()}, Handler: handlerTalks, Blocking: "parallel",
		Schedule: apiclient.ScheduleWrite{Kind: "none", Zone: "UTC"},
	})
	if err != nil {
		return err
	}
	id, err := api.RunNow(ctx, job)
	if err != nil {
		return err
	}
	lines := tailLines
	if f.b.o.Quick {
		lines = tailLinesQuick
	}
	took, err := follow(ctx, api, id, lines)
	r.Elapsed = spreadOf(took)
	if err != nil {
		return err
	}
	_, err = killRun(ctx, api, job, &apiclient.RunDetail{ID: id})
	return err
}

// follow reads lines as they come, and returns how many milliseconds old each
// was when its answer had arrived.
func follow(ctx context.Context, api *lab.API, run string, lines int) (took []float64, err error) {
	after := int64(0)
	for len(took) < lines {
		page, err := api.GetRunLog(ctx, run, apiclient.GetRunLogParams{After: after, Wait: "10s"})
		if err != nil {
			return took, err
		}
		now := time.Now()
		for _, l := range page.Value.Lines {
			if after++; l.N != after {
				return took, fmt.Errorf("line %d came where %d was expected", l.N, after)
			}
			took = append(took, millisOf(now.Sub(l.At)))
		}
		after = page.Value.Next
		if page.Value.Complete {
			return took, errors.New("the log has ended")
		}
	}
	return took, nil
}
