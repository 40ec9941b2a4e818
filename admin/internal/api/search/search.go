// Package search answers: which objects of a tenant does a text mean?
package search

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Store finds what the engine keeps. Each method reads a bounded number of rows.
type Store interface {
	// SearchJobs finds jobs by id, name and label. The hint is the executor.
	SearchJobs(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
	// SearchRuns finds a run by its id. The name is that of its job, and the hint its state.
	SearchRuns(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
	// SearchTimers finds timers by id and key. The hint is executor/handler.
	SearchTimers(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
	// SearchExecutors finds executors by id and name.
	SearchExecutors(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
}

// SearchHit is an object that a search has found.
type SearchHit struct {
	Kind string `json:"kind" doc:"Job, Run, Timer, Executor, or a kind of list-kinds"`
	ID   string `json:"id" doc:"Its id; of a timer that has a run, the id of the run"`
	Name string `json:"name" doc:"Its name; of a run the name of its job, of a timer its key"`
	Hint string `json:"hint" doc:"Of a job its executor, of a run its state, of a timer executor/handler, of an executor what it is; empty: nothing is said"`
}

// SearchHits is the answer to a search.
type SearchHits struct {
	Items []SearchHit `json:"items" doc:"At most 10 of each kind; exact ids first, then names, beginnings, parts of names and labels"`
	More  []string    `json:"more" doc:"Kinds of which there are others, or may be"`
}

type input struct {
	Q string `query:"q" required:"true" minLength:"2" maxLength:"128" doc:"An id, a name or a part of one, a label of jobs and documents such as team=pay, or the beginning of a timer's key"`
}

type api struct {
	server *web.Server
	store  Store
}

// Register adds the operation.
func Register(s *web.Server, store Store) {
	a := &api{s, store}
	web.Register(s, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/search", ID: "search", Tag: "search", Summary: "Search objects of all kinds",
		Description: "By id, name and label, in any case. Only kinds that the caller may read. Of very many names a search reads only so many, and more says so.",
	}, a.search)
}

// source finds objects of a kind.
type source struct {
	kind string
	find func(ctx context.Context, q domain.SearchQuery) (domain.FoundPage, error)
}

// sources are the kinds that a caller may read.
func (a *api) sources(id auth.Identity) []source {
	out := []source{{"Job", a.store.SearchJobs}, {"Run", a.store.SearchRuns}}
	if id.May(domain.PermTimer) {
		out = append(out, source{"Timer", a.store.SearchTimers})
	}
	out = append(out, source{"Executor", a.store.SearchExecutors})
	if id.Scope.Bounded() {
		return out // documents belong to the whole tenant
	}
	for _, k := range a.server.Kinds().List() {
		if k.Documents != nil && id.May(k.Read) {
			out = append(out, source{k.Name, k.Documents.Store().Search})
		}
	}
	return out
}

func (a *api) search(ctx context.Context, id auth.Identity, in *input) (*struct{ Body SearchHits }, error) {
	q := domain.SearchQuery{Tenant: id.Tenant, Within: id.Reach, Text: strings.TrimSpace(in.Q)}
	if utf8.RuneCountInString(q.Text) < 2 {
		return nil, domain.Invalid("query.q", "must have at least 2 characters")
	}
	type ranked struct {
		SearchHit
		match domain.Match
	}
	out := SearchHits{More: []string{}}
	var all []ranked
	for _, from := range a.sources(id) {
		page, err := from.find(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, f := range page.Items {
			all = append(all, ranked{SearchHit{from.kind, strconv.FormatInt(f.ID, 10), f.Name, f.Hint}, f.Match})
		}
		if page.More {
			out.More = append(out.More, from.kind)
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.match, b.match) })
	out.Items = domain.Collect(all, func(r *ranked) SearchHit { return r.SearchHit })
	return &struct{ Body SearchHits }{out}, nil
}
