package dispatch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
)

// waitQueues hold the runs for which no instance has room, each once, by the
// instances that may take them.
//
// Every run in them leaves by one of five ways: an instance has room (take), its
// wait for an instance is over (survey), its row says that it does not wait any
// more (drop), its line is too long (add), or its partition is another node's (recorded).
// By the last two it waits in the database alone, and is loaded from there (refill).
type waitQueues struct {
	table     *runtable.Table // its lock guards what follows
	executors map[domain.ExecutorID]*executorLines
	lines     int           // how many there are
	runs      int           // in all of them
	size      int           // of all of them (runtable.SizeOf)
	numbers   map[int64]int // of each line, by its number
}

func newWaitQueues(table *runtable.Table) waitQueues {
	return waitQueues{table: table, executors: map[domain.ExecutorID]*executorLines{}, numbers: map[int64]int{}}
}

// executorLines are the lines of one executor.
type executorLines struct {
	tenant domain.TenantID
	open   map[line]*queue                       // of runs that several instances may take
	bound  map[domain.InstanceID]map[line]*queue // of runs for one instance
	served uint64                                // how often runs were taken from one of the lines
	turn   bool                                  // the next place is for the line that has waited longest for one
}

// line is who waits for the same instances: those of an executor that serve a
// handler and have the labels that are required. Other instances may have room
// while these are full.
type line struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	handler  string
	require  string
	// pin is set where the strategy takes one instance only, with the labels
	// that it should have.
	pin    domain.Routing
	prefer string
	bound  domain.InstanceID // of a broadcast's shards; 0 = any instance
}

// number is that of the line in the database.
func (l line) number() int64 {
	return domain.LineNumber(l.executor, l.handler, l.require, string(l.pin), l.prefer, l.bound.String())
}

// waiting is the place of a run that waits.
type waiting struct {
	execution domain.Execution
	spec      *domain.JobSpec
	line      line
	queues    *waitQueues

	// guarded by the table's lock
	// swept: the sweep looks at it from time to time, because its parent or its instance
	// may end.
	swept bool
	// elsewhere: only other nodes have instances that may take it. foreign: its partition is
	// another node's, and it leaves this node when its row says that it waits.
	elsewhere, foreign bool
	online             int       // instances here that serve the handler and have the labels
	message            string    // why it waits, in words
	known              time.Time // when it was last known to wait
	recorded           bool      // its row says why it waits
}

// Stage implements runtable.Place, as the following methods do.
func (w *waiting) Stage() runtable.Stage { return runtable.Waiting }

func (w *waiting) Removed() { w.queues.remove(w) }

func (w *waiting) Yields(to *domain.Execution) bool { return to.Fence >= w.execution.Fence }

// Attended: other nodes do not look at it, or not yet.
func (w *waiting) Attended(now time.Time) bool {
	return !w.swept && !w.execution.Expired(now)
}

// compare has the ids decide in the end, as compareFresh: the order is total.
func compare(a, b *waiting) int { return domain.ComparePrecedence(&a.execution, &b.execution) }

// compareFresh orders by age instead: what is due last comes last, and of those
// alike what has the highest priority. It is precedence with the sign of the
// priority turned round.
func compareFresh(a, b *waiting) int {
	return cmp.Or(freshness(&a.execution).Compare(freshness(&b.execution)), -cmp.Compare(a.execution.ID, b.execution.ID))
}

func freshness(e *domain.Execution) time.Time { return e.FireAt.Add(e.FireAt.Sub(e.Precedence())) }

// queue is one line's runs, in both orders. Each is a tree: a burst is in order by
// the one and in reverse by the other, and runs leave at both ends and between.
type queue struct {
	old   *btree.BTreeG[*waiting] // by precedence
	fresh *btree.BTreeG[*waiting] // by freshness
	turn  bool                    // the next one is the freshest
	half  *waiting                // the last one of the older half when between was asked; nil = never
	// served is executorLines' when runs were taken from this line last.
	served uint64
	number int64 // of its line
}

// treeDegree keeps a node of a tree within some cache lines.
const treeDegree = 16

func newQueue() *queue {
	ordered := func(order func(a, b *waiting) int) *btree.BTreeG[*waiting] {
		return btree.NewG(treeDegree, func(a, b *waiting) bool { return order(a, b) < 0 })
	}
	return &queue{old: ordered(compare), fresh: ordered(compareFresh)}
}

// between returns the run behind the older half of the queue. A queue that is too long loses
// it, so that the queue keeps the runs at both ends, which have the next turns.
func (q *queue) between() (next *waiting) {
	if q.half == nil || !q.old.Has(q.half) {
		n := q.old.Len() / 2
		q.old.Ascend(func(w *waiting) bool { q.half = w; n--; return n > 0 })
	}
	q.old.AscendGreaterOrEqual(q.half, func(w *waiting) bool { next = w; return w == q.half })
	return next
}

// first is who comes first by precedence. A queue that is in a line is not empty.
func (q *queue) first() *waiting {
	w, _ := q.old.Min()
	return w
}

const (
	// maxWaiting bounds one line, and maxWaitingAll all of them, but for the last
	// ones of lines that are shorter than the others. Both count inputs (runtable.SizeOf).
	maxWaiting    = 10_000
	maxWaitingAll = 100_000
	// lateAfter is how late the first of a line may be before the freshest takes
	// turns with it, and the first of an executor's lines before the others do.
	lateAfter = 2 * time.Second
)

// linesOf is called with the lock held.
func (r *waitQueues) linesOf(tenant domain.TenantID, executor domain.ExecutorID) *executorLines {
	at := r.executors[executor]
	if at == nil {
		at = &executorLines{tenant: tenant, open: map[line]*queue{}, bound: map[domain.InstanceID]map[line]*queue{}}
		r.executors[executor] = at
	}
	return at
}

// lineOf is called with the lock held.
func (r *waitQueues) lineOf(l line, create bool) *queue {
	if r.executors[l.executor] == nil && !create {
		return nil
	}
	at := r.linesOf(l.tenant, l.executor)
	of := at.open
	if l.bound != 0 {
		if of = at.bound[l.bound]; of == nil && create {
			of = map[line]*queue{}
			at.bound[l.bound] = of
		}
	}
	q := of[l]
	if q == nil && create {
		q = newQueue()
		q.number = l.number()
		of[l] = q
		r.lines++
	}
	return q
}

// add lets a run wait, unless a copy of it is on its way again already. It returns
// those whose rows have to say so now: the run if the database keeps its order
// or others look after it (must); and what had to leave for it,
// which may be the run itself.
func (r *waitQueues) add(w *waiting, must bool) (record []*waiting) {
	r.table.Lock()
	defer r.table.Unlock()
	w.queues = r
	if !r.table.Move(&w.execution, w) {
		return nil
	}
	q := r.lineOf(w.line, true)
	size := runtable.SizeOf(&w.execution)
	r.runs++
	r.size += size
	r.numbers[q.number] += size
	q.old.ReplaceOrInsert(w)
	q.fresh.ReplaceOrInsert(w)
	limit := r.limit()
	if must && !w.recorded || w.swept && !w.foreign {
		record = append(record, w)
	}
	for r.numbers[q.number] > limit && q.old.Len() > 1 {
		one := q.between()
		r.leave(one)
		if !one.recorded && !slices.Contains(record, one) {
			record = append(record, one)
		}
	}
	if w.foreign && w.recorded {
		r.leave(w)
	}
	return record
}

// limit is how much the runs of a line may count. The lock is held.
func (r *waitQueues) limit() int {
	if r.size > maxWaitingAll {
		return max(maxWaitingAll/r.lines, 1)
	}
	return maxWaiting
}

// length is how much the runs of a line count that wait here (runtable.SizeOf), and how much
// they may.
func (r *waitQueues) length(number int64) (have, limit int) {
	r.table.Lock()
	defer r.table.Unlock()
	return r.numbers[number], r.limit()
}

// leave takes a run out of its queue and off this node. The lock is held.
func (r *waitQueues) leave(w *waiting) { r.table.Pass(w.execution.ID, w, nil) }

// remove takes a run out of its line. The lock is held.
func (r *waitQueues) remove(w *waiting) {
	size := runtable.SizeOf(&w.execution)
	r.runs--
	r.size -= size
	q := r.lineOf(w.line, false)
	if r.numbers[q.number] -= size; r.numbers[q.number] == 0 {
		delete(r.numbers, q.number)
	}
	q.old.Delete(w)
	q.fresh.Delete(w)
	if q.old.Len() > 0 {
		return
	}
	at := r.executors[w.line.executor]
	r.lines--
	if w.line.bound == 0 {
		delete(at.open, w.line)
	} else if delete(at.bound[w.line.bound], w.line); len(at.bound[w.line.bound]) == 0 {
		delete(at.bound, w.line.bound)
	}
	if len(at.open) == 0 && len(at.bound) == 0 {
		delete(r.executors, w.line.executor)
	}
}

// drop takes runs out that do not wait any more.
func (r *waitQueues) drop(ids ...domain.ExecutionID) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, id := range ids {
		if w, is := r.table.At(id).(*waiting); is {
			r.leave(w)
		}
	}
}

// of returns the lines of an executor in which somebody waits: those that any
// instance serves, and those for the instance alone. They go by the precedence of
// their first ones. While that is late, every other place is for the line that was
// served longest ago: the first of a line with much patience, or of one that is
// not full, stays older than all others for as long as the overload lasts.
func (r *waitQueues) of(executor domain.ExecutorID, instance domain.InstanceID, now time.Time) []line {
	r.table.Lock()
	defer r.table.Unlock()
	at := r.executors[executor]
	if at == nil {
		return nil
	}
	bound := at.bound[instance]
	switch len(at.open) + len(bound) {
	case 0:
		return nil
	case 1:
		for l := range at.open {
			return []line{l}
		}
	}
	list := slices.AppendSeq(slices.Collect(maps.Keys(at.open)), maps.Keys(bound))
	queues := map[line]*queue{}
	for _, l := range list {
		queues[l] = r.lineOf(l, false)
	}
	slices.SortFunc(list, func(a, b line) int { return compare(queues[a].first(), queues[b].first()) })
	if at.turn && now.Sub(queues[list[0]].first().since()) > lateAfter {
		longest := slices.MinFunc(list, func(a, b line) int { return cmp.Compare(queues[a].served, queues[b].served) })
		list = slices.Insert(slices.DeleteFunc(list, func(l line) bool { return l == longest }), 0, longest)
	}
	return list
}

// serve notes that runs are taken from a line; it is called with the lock held.
func (r *waitQueues) serve(l line, q *queue) {
	at := r.linesOf(l.tenant, l.executor)
	at.served++
	q.served, at.turn = at.served, !at.turn
}

// first returns who comes first in a line by precedence, and when it was last
// known to wait; nil: nobody waits.
func (r *waitQueues) first(of line) (*domain.Execution, time.Time) {
	r.table.Lock()
	defer r.table.Unlock()
	q := r.lineOf(of, false)
	if q == nil {
		return nil, time.Time{}
	}
	w := q.first()
	return &w.execution, w.known
}

// take removes up to n runs of a line that still may wait, those whose turn it
// is: as many as have so many bytes of input together, and one more, which will
// find no room and thereby have its instance tell when there is some.
//
// turns has the rank of those that go before their time, which is that of the
// run that let them.
func (r *waitQueues) take(from line, n, bytes int, now time.Time) (out []domain.Execution, turns map[domain.ExecutionID]int64) {
	r.table.Lock()
	defer r.table.Unlock()
	for len(out) < n {
		w, rank := r.nextLocked(from, now)
		if w == nil {
			return out, turns
		}
		if len(out) == 0 {
			r.serve(from, r.lineOf(from, false))
		}
		if rank < rankOf(&w.execution) {
			if turns == nil {
				turns = map[domain.ExecutionID]int64{}
			}
			turns[w.execution.ID] = rank
		}
		r.leave(w)
		out = append(out, w.execution)
		if bytes -= len(w.spec.InputOf(&w.execution)); bytes < 0 {
			return out, turns
		}
	}
	return out, turns
}

// nextLocked is whose turn it is, and the rank of the line's first: the first by
// precedence, or while that one is late, by turns, the freshest. Runs of a job with a limit on its runs keep
// their order: the first of the job takes the turn of its freshest. Who has waited
// for too long leaves: the sweep ends those.
func (r *waitQueues) nextLocked(from line, now time.Time) (next *waiting, rank int64) {
	for q := r.lineOf(from, false); q != nil; q = r.lineOf(from, false) {
		w := q.first()
		rank = rankOf(&w.execution)
		if q.turn && now.Sub(w.since()) > lateAfter {
			w = q.freshest()
		}
		if w.execution.Expired(now) {
			r.leave(w)
			continue
		}
		q.turn = !q.turn
		return w, rank
	}
	return nil, 0
}

func (q *queue) freshest() *waiting {
	freshest, _ := q.fresh.Max()
	if freshest.spec.SlotLimit() == 0 {
		return freshest
	}
	first := freshest
	q.old.Ascend(func(w *waiting) bool {
		first = w
		return w.execution.JobID != freshest.execution.JobID
	})
	return first
}
