package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/carillon-sched/carillon/internal/lab"
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
	what, path string
	// filter of the next question; nil: the pages are turned, from the first on.
	filter func() url.Values
}

// reads measures pages of lists through the API, asked for one after the other,
// while nothing else goes on: two results. r tells what was filled in before.
func (f *fleet) reads(ctx context.Context, r *Result) error {
	const jobs, runs = "/api/v1/jobs", "/api/v1/runs"
	api, random := f.lab.Admins[0].API, rand.New(rand.NewPCG(1, 1)) // the same questions in each run
	var ids []string
	of := func(name string, value func() string) func() url.Values {
		return func() url.Values { return url.Values{name: {value()}} }
	}
	groups := []struct {
		what  string
		lists []list
	}{
		{fmt.Sprintf("%d of %d jobs", readSize, r.Jobs), []list{
			{"page by page", jobs, nil},
			{"by a part of the name", jobs, of("q", func() string { return fmt.Sprintf("ive-%05d", random.IntN(max(1, r.Jobs/100))) })},
			{"in another order", jobs, of("sort", func() string { return []string{"nextFireAt", "updatedAt"}[random.IntN(2)] })},
		}},
		{fmt.Sprintf("%d of %d runs", readSize, r.Rows), []list{
			{"page by page", runs, nil},
			{"of a job", runs, of("jobId", func() string { return ids[random.IntN(len(ids))] })},
			{"in a state", runs, of("state", func() string { return []string{"failed", "succeeded", "failed,lost,timed_out"}[random.IntN(3)] })},
			{"before a time", runs, of("to", func() string {
				return time.Now().Add(-time.Duration(random.Int64N(int64(archiveSpan)))).Format(time.RFC3339)
			})},
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
			took, seen, err := f.read(ctx, api, l)
			if err != nil {
				return fmt.Errorf("read %s: %w", l.path, err)
			}
			if l.path == jobs {
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
func (f *fleet) read(ctx context.Context, api *lab.API, l list) (took []float64, ids []string, err error) {
	cursor := ""
	for range f.b.readsEach() {
		values := url.Values{}
		if l.filter != nil {
			values = l.filter()
		} else if cursor != "" {
			values.Set("cursor", cursor)
		}
		values.Set("limit", fmt.Sprint(readSize))
		var page struct {
			Items      []struct{ ID string }
			NextCursor string
		}
		began := time.Now()
		if err := api.Call(ctx, http.MethodGet, l.path+"?"+values.Encode(), nil, &page); err != nil {
			return nil, nil, err
		}
		took = append(took, millisOf(time.Since(began)))
		if len(page.Items) == 0 {
			return nil, nil, fmt.Errorf("nothing is found by %s", values.Encode())
		}
		for _, i := range page.Items {
			ids = append(ids, i.ID)
		}
		cursor = page.NextCursor
	}
	return took, ids, nil
}

func (b *bench) readsEach() int {
	if b.o.Quick {
		return readsEachQuick
	}
	return readsEach
}
