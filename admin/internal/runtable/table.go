// Package runtable answers: which runs does this node hold in memory, and where?
//
// A run has one place at a time, however often it is read from the database or
// handed on. A place decides whether it gives the run away; what it consists of
// is its owner's, and is guarded by the table's lock. Nothing else is decided here.
package runtable

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Stage is how far a run is on its way.
type Stage int

const (
	// Timed: in the timer, until it is handed to dispatch.
	Timed Stage = iota
	// Queued: in a due queue, until a batch takes it, or it is over.
	Queued
	// Offering: in a batch of offers, until the batch is over or sends it on.
	Offering
	// Waiting: in a line, until an instance has room or it waits no more.
	Waiting
	// Early: offered before its time, until then.
	Early
)

// Place is where a run is. Its methods are called with the table's lock held.
type Place interface {
	Stage() Stage
	// Removed takes the run out of what the place consists of: it moves on, or
	// leaves this node.
	Removed()
	// Yields reports whether a copy of the run may take it to another place.
	Yields(to *domain.Execution) bool
	// Attended reports whether the run is looked after here, so that the sweep can
	// leave it alone.
	Attended(now time.Time) bool
}

// Most is how many runs an owner handles before it lets others have the lock, but
// for those of one line that are let go at once.
const Most = 200

// Table has the place of each run. The zero Table is ready for use. No other lock
// is taken while its own is held.
type Table struct {
	sync.Mutex
	runs    map[domain.ExecutionID]entry // guarded by the Mutex
	pending map[domain.TenantID]int      // guarded by the Mutex; see Load
	queued  map[domain.TenantID]int      // guarded by the Mutex; see Load
	offered int                          // guarded by the Mutex; see Load
	waits   int                          // guarded by the Mutex; see Waits
}

type entry struct {
	place  Place
	tenant domain.TenantID
	size   int // see SizeOf
}

// SizeOf is how much a run counts in a bound of memory: as one, and as one more for each KiB
// of its input.
func SizeOf(run *domain.Execution) int { return 1 + len(run.Input)>>10 }

// At returns where a run is; nil: it is not here. The lock is held.
func (t *Table) At(id domain.ExecutionID) Place { return t.runs[id].place }

// Move takes a run to a place, from where it is or from outside; false: it stays
// where it is. The lock is held.
func (t *Table) Move(run *domain.Execution, to Place) bool {
	if from := t.At(run.ID); from != nil {
		if !from.Yields(run) {
			return false
		}
		t.leave(run.ID)
	}
	t.enter(run.ID, entry{to, run.TenantID, SizeOf(run)})
	return true
}

// Pass hands a run on from the place that it is in to another; nil: it leaves this
// node. false: it is not there any more. The lock is held.
func (t *Table) Pass(id domain.ExecutionID, from, to Place) bool {
	e := t.runs[id]
	if e.place != from {
		return false
	}
	t.leave(id)
	if to != nil {
		t.enter(id, entry{to, e.tenant, e.size})
	}
	return true
}

func (t *Table) enter(id domain.ExecutionID, e entry) {
	if t.runs == nil {
		t.runs, t.pending, t.queued = map[domain.ExecutionID]entry{}, map[domain.TenantID]int{}, map[domain.TenantID]int{}
	}
	t.runs[id] = e
	switch e.place.Stage() {
	case Queued:
		t.queued[e.tenant]++
	case Offering:
		t.offered++
	}
	if e.place.Stage() <= Queued {
		t.pending[e.tenant] += e.size
		t.waits++
	}
}

// leave is the only way out of a place.
func (t *Table) leave(id domain.ExecutionID) {
	e := t.runs[id]
	e.place.Removed()
	delete(t.runs, id)
	if e.place.Stage() > Queued {
		return
	}
	t.waits--
	if e.place.Stage() == Queued {
		if t.queued[e.tenant]--; t.queued[e.tenant] == 0 {
			delete(t.queued, e.tenant)
		}
	}
	if t.pending[e.tenant] -= e.size; t.pending[e.tenant] == 0 {
		delete(t.pending, e.tenant)
	}
}

// Waits is how many runs wait for their time or for a batch.
func (t *Table) Waits() int {
	t.Lock()
	defer t.Unlock()
	return t.waits
}

// Load is how many runs wait before their offer, by tenant.
type Load struct {
	// Pending are those that wait for their time or for their offer, as SizeOf counts them.
	Pending map[domain.TenantID]int
	// Queued are those of them that are due.
	Queued map[domain.TenantID]int
	// Offered counts the begun offers since the table was made.
	Offered int
}

// Load returns the present load.
func (t *Table) Load() Load {
	t.Lock()
	defer t.Unlock()
	return Load{maps.Clone(t.pending), maps.Clone(t.queued), t.offered}
}

// Unattended leaves out the runs that are looked after here, and returns the rest
// in its order.
func (t *Table) Unattended(ids []domain.ExecutionID, now time.Time) []domain.ExecutionID {
	t.Lock()
	defer t.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool {
		at := t.At(id)
		return at != nil && at.Attended(now)
	})
}

// Absent leaves out the runs that are here, and returns the rest in its order.
func (t *Table) Absent(ids []domain.ExecutionID) []domain.ExecutionID {
	t.Lock()
	defer t.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool { return t.At(id) != nil })
}

// Len returns how many runs are here.
func (t *Table) Len() int {
	t.Lock()
	defer t.Unlock()
	return len(t.runs)
}
