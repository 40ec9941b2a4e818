package dispatch

import (
	"cmp"
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// The database has all runs that wait for longer than recordAfter. Memory has the window
// of them that comes next. Each look asks the database for the lines with runs. It fills
// the window of a line if an instance of this node can take its runs. Nothing that a node
// knows replaces this question, so that no run is forgotten (docs/adr/0095).

const (
	// loadedRuns is how many runs of a line the next look loads up to.
	loadedRuns = maxWaiting / 2
	// linesMost bounds the lines of one look, and loadMost the runs that it loads, in equal
	// shares. The next look goes on with the lines that follow.
	linesMost = 64
	loadMost  = 2 * maxWaiting
	// othersLeast is how many runs of other nodes' partitions are looked at first, if slots
	// are free.
	othersLeast = 16
)

// refill is the question of one look. If a line cannot be read, it loads the others, and
// returns the first error.
func (lo *lookout) refill(ctx context.Context, now time.Time) error {
	if _, err := lo.store.Maintenances(ctx); err != nil {
		return err // no line of an executor under maintenance is loaded
	}
	lines, err := lo.store.WaitingLines(ctx, lo.after, linesMost)
	if err != nil {
		return err
	}
	defer lo.noteStalled(now)
	held, left := lo.held.allHeld(), loadMost
	for i, l := range lines {
		free, slots := lo.fleet.Room(l.Tenant, l.Executor)
		err = cmp.Or(err, lo.watch(ctx, l, free, now))
		share := max(left/(len(lines)-i), 1) // a long line takes nothing from the lines behind it
		n, failed := lo.refillLine(ctx, l, free, slots, held, share, now)
		err = cmp.Or(err, failed)
		left, lo.after = left-n, l.Line
	}
	if len(lines) < linesMost {
		lo.after = 0
	}
	return err
}

// refillLine loads up to most runs of a line that this node's instances may take: first
// those of this node's partitions, and of others if slots are free then. If no node has an
// instance, it loads those of this node's partitions.
func (lo *lookout) refillLine(ctx context.Context, l store.WaitingLine, free, slots int, held []int, most int, now time.Time) (loaded int, err error) {
	have, limit := lo.waits.queues.length(l.Line)
	most = min(most, loadedRuns, limit-have)
	if have >= min(loadedRuns, limit) || lo.underMaintenance(l.Tenant, l.Executor, now) {
		return 0, nil
	}
	if slots == 0 && (have > 0 || lo.waits.elsewhere(ctx, l.Tenant, l.Executor, now)) {
		return 0, nil // some node has them, to tell of the outage and for the first instance
	}
	load := func(p store.ListWaitingParams) (int, error) {
		p.Line, p.Unattended = l.Line, lo.table.Absent
		list, err := lo.store.ListWaiting(ctx, p)
		if err == nil {
			lo.fire(list)
		}
		return len(list), err
	}
	if len(held) > 0 {
		oldest := most
		if now.Sub(l.First) > lateAfter { // old and fresh ones take turns
			oldest = (most + 1) / 2
		}
		if loaded, err = load(store.ListWaitingParams{Partitions: held, Read: have + oldest, Limit: oldest}); err != nil {
			return loaded, err
		}
		if loaded == oldest && oldest < most {
			n, err := load(store.ListWaitingParams{Partitions: held, Read: have + most, Limit: most - oldest, Newest: true})
			if err != nil {
				return loaded, err
			}
			loaded += n
		}
	}
	if loaded > 0 || have > 0 || free == 0 {
		return loaded, nil
	}
	n := lo.others.next(l, free)
	return load(store.ListWaitingParams{Read: n, Limit: n})
}

// others are the last looks at runs of other nodes' partitions, by line: the next run of the
// line then, and the number of runs.
type others map[int64]struct {
	next domain.ExecutionID
	runs int
}

// othersMost bounds the lines that are kept.
const othersMost = 10_000

// next returns how many runs of a line to look at. It begins with a few, since no instance
// here may serve their handler. If the next run has gone, it is twice as many as last
// time, up to the free slots.
func (o others) next(l store.WaitingLine, free int) int {
	last, known := o[l.Line]
	last.runs *= 2
	if !known || last.next == l.Next {
		last.runs = othersLeast
	}
	last.next, last.runs = l.Next, min(last.runs, max(free, othersLeast))
	if len(o) >= othersMost {
		clear(o)
	}
	o[l.Line] = last
	return last.runs
}

// allHeld lists the partitions that this node looks after.
func (hs *holdings) allHeld() (list []int) {
	for p, held := 0, hs.holding(); p < domain.Partitions; p++ {
		if held(p) {
			list = append(list, p)
		}
	}
	return list
}

// underMaintenance reports whether nothing of an executor is to start, as far as this
// node knows.
func (lo *lookout) underMaintenance(tenant domain.TenantID, executor domain.ExecutorID, now time.Time) bool {
	return lo.store.KnownMaintenances().Holds(now, &domain.Execution{TenantID: tenant, Executor: executor}) != nil
}
