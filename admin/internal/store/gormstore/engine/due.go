package engine

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// foundDue is what one search for due triggers, or timers, found beyond the claim
// it was made for: with thousands due at once, searching again for each claim would
// read all of them each time. The claim judges each one again under its lock, so
// what became of them meanwhile does no harm.
type foundDue[T ~int64] struct {
	mu    sync.Mutex
	key   dueKey                 // guarded by mu
	parts []domain.PartitionTerm // guarded by mu
	but   []domain.TenantID      // guarded by mu: whose triggers were left out
	butOf []domain.ExecutorID    // guarded by mu: likewise
	ids   []T                    // guarded by mu: oldest first
	full  bool                   // guarded by mu: the search was bounded, there may be more
}

// dueKey tells for which search, and when, the ids were found.
type dueKey struct {
	at      time.Time // local clock; zero = nothing is kept
	horizon time.Duration
}

// maxDueAge is how long a search serves the claims after it: a tick of the
// planner. Triggers that became due meanwhile wait for the next one.
const maxDueAge = 500 * time.Millisecond

// dueBatches is how many claims one search may serve.
const dueBatches = 16

// take returns up to limit ids of an earlier search, how many it has left, and
// whether there may be more.
func (f *foundDue[T]) take(p store.ClaimDueTriggersParams) (ids []T, left int, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fresh := f.key.horizon == p.Horizon && time.Since(f.key.at) < maxDueAge && slices.Equal(f.parts, p.Partitions) && slices.Equal(f.but, p.Except) &&
		slices.Equal(f.butOf, p.ExceptExecutors)
	if !fresh {
		f.ids = nil
	}
	n := min(len(f.ids), p.Limit)
	ids, f.ids = f.ids[:n:n], f.ids[n:]
	return ids, len(f.ids), len(f.ids) > 0 || n > 0 && f.full
}

// next returns what is tried in one claim, and how many of them at once: ids of an earlier
// search, or of a new one. more: there may be others.
func (f *foundDue[T]) next(p store.ClaimDueTriggersParams, atOnce int, search func() ([]T, error)) (due []T, part int, more bool, err error) {
	due, left, more := f.take(p)
	if len(due) == 0 {
		began := time.Now()
		found, err := search()
		if err != nil {
			return nil, 0, false, err
		}
		due = found[:min(len(found), p.Limit)]
		left = len(found) - len(due)
		more = left > 0
		f.put(p, began, slices.Clone(found[len(due):]))
	}
	part = max(len(due), 1)
	if left < p.Limit { // none is late
		part = min(part, atOnce)
	}
	return due, part, more, nil
}

// put keeps what a search at the instant at found beyond its own claim.
func (f *foundDue[T]) put(p store.ClaimDueTriggersParams, at time.Time, ids []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key, f.parts, f.ids, f.full = dueKey{at, p.Horizon}, slices.Clone(p.Partitions), ids, len(ids) > 0
	f.but, f.butOf = slices.Clone(p.Except), slices.Clone(p.ExceptExecutors)
}

// back keeps ids that a claim took and has not tried. They come before the others.
func (f *foundDue[T]) back(ids []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(slices.Clone(ids), f.ids...)
}

// dueAt is an id with the instant that it is due at.
type dueAt[T ~int64] struct {
	id T
	at int64
}

// searchDue joins bounded searches, each of ids with the instants that they are
// ordered by. The first search gives the clock instead, under the id 0.
func searchDue[T ~int64](ctx context.Context, q db.Querier, searches []string) (now time.Time, all []dueAt[T], err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var f dueAt[T]
		if err := rows.Scan(&f.id, &f.at); err != nil {
			return err
		}
		if f.id == 0 {
			now = db.Instant(f.at)
		} else {
			all = append(all, f)
		}
		return nil
	}, strings.Join(searches, " UNION ALL "))
	return now, all, err
}

// oldest returns at most limit ids, the oldest first.
func oldest[T ~int64](all []dueAt[T], limit int) (ids []T) {
	slices.SortStableFunc(all, func(a, b dueAt[T]) int { return cmp.Compare(a.at, b.at) })
	for _, f := range all[:min(len(all), limit)] {
		ids = append(ids, f.id)
	}
	return ids
}
