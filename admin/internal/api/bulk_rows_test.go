package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/bulk"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

func init() {
	bounded["create-bulk"] = "computes"
	smallLists["/bulk"] = "a tenant has 200, of 200 ids and 2 KiB of text each"
	smallLists["/bulk/{id}/items"] = "201 rows of 1 KiB of text"
	auditedOperations["create-bulk"] = audited{body: as(map[string]any{"action": "pause", "filter": map[string]any{"name": "none"}, "expected": 0})}
	orders["cancel-bulk"] = "an end"
	addOns = append(addOns, addOn{
		name: "bulk", lists: []string{"/bulk"},
		routes: func(s *web.Server, d *Deps, actions *Actions) {
			bulk.Routes(s, bulk.Deps{Selection: bulkSelection(d, actions), NewID: d.NewID, Made: func() {}, Log: d.Logger})
		},
		objects: func(w *world, admin string) objects {
			o := into[bulk.BulkOperation](w.call(admin, "POST", "/bulk", map[string]any{"action": "pause", "filter": map[string]any{"name": "none"}, "expected": 0}).is(202))
			return objects{"/bulk/{id}": o.ID}
		},
		body: func(method, path string) any {
			if method == http.MethodPost && strings.HasSuffix(path, "/bulk") {
				return map[string]any{"action": "pause", "dryRun": true}
			}
			return nil
		},
	})
}

// bulkSelections are those of the worlds, by their Deps.
var bulkSelections sync.Map

// bulkSelection has the seams that a node has. There are none without a store.
func bulkSelection(d *Deps, actions *Actions) bulk.Selection {
	s, is := d.Store.(*gormstore.Store)
	if !is {
		return bulk.Selection{}
	}
	options := func(w addon.Asked) (ActionKey, ActionOptions) {
		return ActionKey{Unique: w.Key, By: w.By}, ActionOptions{Note: w.Note, During: w.During}
	}
	out := bulk.Selection{Table: bulk.Table{DB: s.DB}, Jobs: addon.Jobs{
		ListIDs: s.ListJobIDs, Count: s.CountJobIDs, Match: s.MatchJobs, Lock: s.LockJobs, Pause: s.PauseLocked,
		Next:    timing.Next,
		Changed: d.JobsChanged,
	}, Runs: addon.Runs{
		List: s.ListBareExecutions,
		Begin: func(ctx context.Context, w addon.Asked, job domain.JobID) (domain.ExecutionID, string, error) {
			key, o := options(w)
			return actions.RunJob(ctx, w.ID, job, key, o)
		},
		Retry: func(ctx context.Context, w addon.Asked, run domain.ExecutionID) (domain.ExecutionID, string, error) {
			key, o := options(w)
			return actions.RetryRun(ctx, w.ID, run, key, o)
		},
		Cancel: func(ctx context.Context, id auth.Identity, run domain.ExecutionID, reason string) error {
			return actions.CancelRun(ctx, id, run, reason)
		},
	}}
	bulkSelections.Store(d, out)
	return out
}

// worked lets a worker work on bulk operations until nothing is left, and returns this one.
func (w *world) worked(o bulk.BulkOperation) bulk.BulkOperation {
	w.t.Helper()
	s, _ := bulkSelections.Load(&w.deps)
	worker := bulk.NewWorker(s.(bulk.Selection), slog.New(slog.DiscardHandler))
	for more := true; more; {
		var err error
		more, err = worker.Work(w.t.Context())
		require.NoError(w.t, err)
	}
	return into[bulk.BulkOperation](w.call("acme/viewer", "GET", "/bulk/"+o.ID, nil).is(200))
}
