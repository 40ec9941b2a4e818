package completer

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// StartEvery is the age at which a start is worth a write of its own. Most
// attempts end sooner, and the result brings the start time along.
const StartEvery = time.Second

// startKey names an attempt. Nobody knows yet whether it is its tenant's.
type startKey struct {
	tenant domain.TenantID
	id     domain.ExecutionID
	fence  int64
}

func keyOfStart(s store.Start) startKey { return startKey{s.Tenant, s.ID, s.Fence} }

// Bounds of a generation. The starts beyond them, the latest, are told by their results.
// A start takes about 150 bytes.
const (
	// maxStarts bounds the starts of one tenant.
	maxStarts = 50_000
	// maxAllStarts bounds the starts of all tenants. Above it, a tenant with less than an
	// equal share still adds its own. So at most twice as many are held.
	maxAllStarts = 100_000
)

// starts holds reported starts in two generations; what outlives a full
// generation is written.
type starts struct {
	mu    sync.Mutex
	young map[startKey]store.Start // guarded by mu
	of    map[domain.TenantID]int  // guarded by mu: how many came into young
	came  int                      // guarded by mu: how many in all
	old   map[startKey]store.Start // guarded by mu
}

// Started takes starts. It never blocks.
func (c *Completer) Started(list ...store.Start) {
	c.starts.mu.Lock()
	defer c.starts.mu.Unlock()
	if c.starts.young == nil {
		c.starts.young, c.starts.of, c.starts.came = map[startKey]store.Start{}, map[domain.TenantID]int{}, 0
	}
	for _, s := range list {
		if !c.starts.hasRoom(s.Tenant) {
			continue
		}
		c.starts.of[s.Tenant]++
		c.starts.came++
		c.starts.young[keyOfStart(s)] = s
	}
}

// hasRoom needs the lock.
func (s *starts) hasRoom(tenant domain.TenantID) bool {
	n := s.of[tenant]
	return n < maxStarts && (s.came < maxAllStarts || n < maxAllStarts/max(len(s.of), 1))
}

func (s *starts) forget(key startKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.young, key)
	delete(s.old, key)
}

// turn returns the old generation, by id, and makes the young one old.
func (s *starts) turn() []store.Start {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.SortedFunc(maps.Values(s.old), func(a, b store.Start) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Fence, b.Fence)) })
	s.old, s.young = s.young, nil
	return out
}

// keep takes back starts that could not be written; those of attempts that have
// ended meanwhile are refused by the database. Beyond the bounds the latest starts of a
// tenant go. Earlier ones belong to long runs, which are likely to last longest.
func (s *starts) keep(list []store.Start) {
	if len(list) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list = slices.AppendSeq(list, maps.Values(s.old))
	slices.SortFunc(list, func(a, b store.Start) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Fence, b.Fence))
	})
	s.old = map[startKey]store.Start{}
	of := map[domain.TenantID]int{}
	for _, start := range list {
		of[start.Tenant]++
	}
	most := share(slices.Sorted(maps.Values(of)))
	clear(of)
	for _, start := range list {
		if of[start.Tenant]++; of[start.Tenant] <= most {
			s.old[keyOfStart(start)] = start
		}
	}
}

// share is how many starts each tenant may keep, so that all have at most maxAllStarts.
// counts are the starts of each tenant, in ascending order. A tenant with less than an equal
// share leaves the rest of it to the others.
func share(counts []int) int {
	rest := maxAllStarts
	for i, n := range counts {
		equal := rest / (len(counts) - i)
		if n > equal {
			return min(equal, maxStarts)
		}
		rest -= n
	}
	return maxStarts
}

// WriteStarts is one round of Run: it writes the starts of attempts that have
// run for a while.
func (c *Completer) WriteStarts(ctx context.Context) {
	due := c.starts.turn()
	if len(due) == 0 {
		return
	}
	var failed []store.Start
	for part := range slices.Chunk(due, ResultBatch) {
		if err := c.opt.Store.RecordStarts(ctx, part); err != nil {
			failed = append(failed, part...)
			c.log.Debug("starts could not be written", "count", len(part), "err", err)
		}
	}
	c.starts.keep(failed)
}
