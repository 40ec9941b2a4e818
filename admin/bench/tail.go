package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/internal/lab"
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
	job, err := api.CreateJob(ctx, map[string]any{
		"name": "tail", "executor": map[string]string{"id": f.executor.String()}, "handler": handlerTalks, "blocking": "parallel",
		"schedule": map[string]any{"kind": "none", "zone": "UTC"},
	})
	if err != nil {
		return err
	}
	id, err := startRun(ctx, api, job)
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
	_, err = killRun(ctx, api, job, &stoppedRun{ID: id})
	return err
}

// follow reads lines as they come, and returns how many milliseconds old each
// was when its answer had arrived.
func follow(ctx context.Context, api *lab.API, run string, lines int) (took []float64, err error) {
	after := int64(0)
	for len(took) < lines {
		var page struct {
			Lines []struct {
				N  int64
				At time.Time
			}
			Next     int64
			Complete bool
		}
		if err := api.Call(ctx, http.MethodGet, fmt.Sprintf("/api/v1/runs/%s/log?after=%d&wait=10s", run, after), nil, &page); err != nil {
			return took, err
		}
		now := time.Now()
		for _, l := range page.Lines {
			if after++; l.N != after {
				return took, fmt.Errorf("line %d came where %d was expected", l.N, after)
			}
			took = append(took, millisOf(now.Sub(l.At)))
		}
		after = page.Next
		if page.Complete {
			return took, errors.New("the log has ended")
		}
	}
	return took, nil
}
