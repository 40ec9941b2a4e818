package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

const (
	// readsEach is how many pages of each list are asked for.
	readsEach      = 200
	readsEachQuick = 40
	// readSize is the API's own default.
	readSize = 50
)

// list is one way to ask for a list.
type list struct {
	what string
	jobs bool // else runs
	// page asks; without another filter the pages are turned, from the first on.
	page     func(ctx context.Context, cursor string) (ids []string, next *string, err error)
	filtered bool
}

// reads measures pages of lists through the API, asked for one after the other,
// while nothing else goes on: two results. r tells what was filled in before.
func (f *fleet) reads(ctx context.Context, r *Result) error {
	api, random := f.lab.Admins[0].API, rand.New(rand.NewPCG(1, 1)) // the same questions in each run
	var ids []string
	jobs := func(what string, filter func(*apiclient.ListJobsParams)) list {
		return list{what, true, func(ctx context.Context, cursor string) ([]string, *string, error) {
			params := apiclient.ListJobsParams{Limit: readSize, Cursor: cursor}
			if filter != nil {
				filter(&params)
			}
			d, err := api.ListJobs(ctx, params)
			return idsOf(d.Value.Items, func(j apiclient.Job) string { return j.ID }), d.Value.NextCursor, err
		}, filter != nil}
	}
	runs := func(what string, filter func(*apiclient.ListRunsParams)) list {
		return list{what, false, func(ctx context.Context, cursor string) ([]string, *string, error) {
			params := apiclient.ListRunsParams{Limit: readSize, Cursor: cursor}
			if filter != nil {
				filter(&params)
			}
			d, err := api.ListRuns(ctx, params)
			return idsOf(d.Value.Items, func(r apiclient.Run) string { return r.ID }), d.Value.NextCursor, err
		}, filter != nil}
	}
	groups := []struct {
		what  string
		lists []list
	}{
		{fmt.Sprintf("%d of %d jobs", readSize, r.Jobs), []list{
			jobs("page by page", nil),
			jobs("by a part of the name", func(p *apiclient.ListJobsParams) { p.Q = fmt.Sprintf("ive-%05d", random.IntN(max(1, r.Jobs/100))) }),
			jobs("in another order", func(p *apiclient.ListJobsParams) { p.Sort = []string{"nextFireAt", "updatedAt"}[random.IntN(2)] }),
		}},
		{fmt.Sprintf("%d of %d runs", readSize, r.Rows), []list{
			runs("page by page", nil),
			runs("of a job", func(p *apiclient.ListRunsParams) { p.JobID = ids[random.IntN(len(ids))] }),
			runs("in a state", func(p *apiclient.ListRunsParams) {
				p.State = []string{"failed", "succeeded", "failed,lost,timed_out"}[random.IntN(3)]
			}),
			runs("before a time", func(p *apiclient.ListRunsParams) {
				p.To = time.Now().Add(-time.Duration(random.Int64N(int64(archiveSpan)))).Format(time.RFC3339)
			}),
		}},
	}
	for _, g := range groups {
		one := Result{
			Scenario: r.Scenario, Variant: fmt.Sprintf("%d finished runs, %s", r.Rows, g.what),
			Database: r.Database, Admins: r.Admins, Jobs: r.Jobs, Rows: r.Rows,
		}
		began := time.Now()
		var all []float64
		for _, l := range g.lists {
			took, seen, err := f.read(ctx, l)
			if err != nil {
				return fmt.Errorf("read %s, %s: %w", g.what, l.what, err)
			}
			if l.jobs {
				ids = append(ids, seen...)
			}
			all = append(all, took...)
			one.note(f.b, "%s: p99 %.1f ms", l.what, spreadOf(took).P99)
		}
		one.Elapsed, one.Took = spreadOf(all), seconds(time.Since(began))
		f.b.add(one, nil)
	}
	return nil
}

// read asks for pages, and returns how many milliseconds each took, and what
// stood on them.
func (f *fleet) read(ctx context.Context, l list) (took []float64, ids []string, err error) {
	cursor := ""
	for range f.b.readsEach() {
		began := time.Now()
		seen, next, err := l.page(ctx, cursor)
		if err != nil {
			return nil, nil, err
		}
		took = append(took, millisOf(time.Since(began)))
		if len(seen) == 0 {
			return nil, nil, errors.New("nothing is found")
		}
		ids = append(ids, seen...)
		if cursor = ""; next != nil && !l.filtered {
			cursor = *next
		}
	}
	return took, ids, nil
}

func idsOf[T any](items []T, id func(T) string) (ids []string) {
	for _, i := range items {
		ids = append(ids, id(i))
	}
	return ids
}

func (b *bench) readsEach() int {
	if b.o.Quick {
		return readsEachQuick
	}
	return readsEach
}
