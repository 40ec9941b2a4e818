package dispatch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// LookEvery is how often LookAfterWaiting is to be called.
const LookEvery = time.Second

const (
	// recordAfter is how long a run waits for room before its row says so: most
	// runs of a burst have started by then, and were written for nothing.
	recordAfter = time.Second
	// recordMost bounds what one look records.
	recordMost = 10 * offerBatch
	// checkEvery is how often the database is asked whether a run still waits:
	// it may have been cancelled, or deleted with its job. checkMost bounds one look.
	checkEvery = 10 * time.Second
	checkMost  = 5_000
	// loadMost bounds what one look loads of the runs that wait in the database alone.
	loadMost = maxWaiting / 2
	// handMost bounds how many runs one look hands to other nodes, because these
	// have nearly all slots of the executor; handOver is until they may take them.
	handMost = offerBatch
	handOver = time.Millisecond
)

// surveyed is what one look has found in the wait queues.
type surveyed struct {
	record, check []*waiting
	executors     []waitingFor
}

// waitingFor is an executor that somebody waits for.
type waitingFor struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	runs     []*waiting
	since    time.Time // when the first of all began to wait
	// refill is executorLines.spilled if there is room for runs that wait in the database
	// alone, else 0.
	refill uint64
}

// survey takes out what waits no more, or is another node's now, and says what is
// to be done about the rest. It goes by lists, not by maps: the order decides who
// comes first.
func (r *waitQueues) survey(now time.Time, held func(int) bool) (out surveyed) {
	for _, found := range r.all() {
		runs := found.runs
		found.runs = nil
		for part := range slices.Chunk(runs, runtable.Most) {
			r.surveyRuns(part, &found, &out, now, held)
		}
		if found.refill > 0 || len(found.runs) > 0 {
			out.executors = append(out.executors, found)
		}
	}
	return out
}

// all returns who waits for each executor, by line.
func (r *waitQueues) all() (list []waitingFor) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.executors)) {
		at := r.executors[id]
		queues := slices.Collect(maps.Values(at.open))
		for _, of := range at.bound {
			queues = slices.AppendSeq(queues, maps.Values(of))
		}
		slices.SortFunc(queues, func(a, b *queue) int { return compare(a.first(), b.first()) })
		found := waitingFor{tenant: at.tenant, executor: id, refill: at.spilled}
		for _, q := range queues {
			if q.old.Len() >= maxWaiting/2 {
				found.refill = 0
			}
			q.old.Ascend(func(w *waiting) bool { found.runs = append(found.runs, w); return true })
		}
		list = append(list, found)
	}
	return list
}

func (r *waitQueues) surveyRuns(runs []*waiting, found *waitingFor, out *surveyed, now time.Time, held func(int) bool) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range runs {
		if r.table.At(w.execution.ID) != w {
			continue // it has left meanwhile
		}
		if w.execution.Expired(now) || !w.polled && !held(w.execution.Partition) || w.polled && now.Sub(w.known) > waitBusy {
			r.leave(w)
			continue
		}
		if since := w.since(); found.since.IsZero() || since.Before(found.since) {
			found.since = since
		}
		found.runs = append(found.runs, w)
		if !w.polled && !w.recorded && len(out.record) < recordMost && now.Sub(w.execution.NotBefore) >= recordAfter {
			out.record = append(out.record, w)
		}
		if !w.polled && now.Sub(w.known) >= checkEvery && len(out.check) < checkMost {
			out.check = append(out.check, w)
		}
	}
}

// filled marks an executor as loaded up to the given spill. If runs have left memory
// since, the executor stays spilled.
func (r *waitQueues) filled(executor domain.ExecutorID, spilled uint64) {
	r.table.Lock()
	defer r.table.Unlock()
	at := r.executors[executor]
	if at == nil || at.spilled != spilled {
		return
	}
	at.spilled = 0
	if len(at.open) == 0 && len(at.bound) == 0 {
		delete(r.executors, executor)
	}
}

// LookAfterWaiting is one look at the runs that wait for an instance: it records
// why they wait, drops those that do not wait any more, tells of executors that
// nobody serves, and loads what waits in the database alone. It is called from
// one place at a time. Its error is the first one; the next look goes on.
func (d *Dispatcher) LookAfterWaiting(ctx context.Context) error {
	now := d.opt.Now()
	held, gained := d.partitions()
	found := d.waiting.survey(now, held)
	err := d.record(ctx, found.record)
	err = cmp.Or(err, d.check(ctx, found.check))
	refill := map[domain.ExecutorID]uint64{}
	short := map[domain.ExecutorID]bool{}
	d.outages.keep(found.executors)
	for _, x := range found.executors {
		taken, slots, nodes := d.opt.Fleet.Share(x.tenant, x.executor)
		if slots > 0 {
			d.outages.over(x.executor)
		}
		switch {
		case slots == 0:
			err = cmp.Or(err, d.lookForInstances(ctx, x, now))
		case nodes > 1 && 2*nodes*taken < slots && now.Sub(x.since) > lateAfter:
			short[x.executor] = true
			err = cmp.Or(err, d.record(ctx, d.waiting.hand(x.runs, handMost, now)))
		default:
			d.SlotsFreed(x.executor, 0, maxWaiting) // should word of free slots have been lost
		}
		if x.refill > 0 {
			refill[x.executor] = x.refill
		}
	}
	d.seen.setShort(short)
	return cmp.Or(err, d.loadGained(ctx, gained), d.refill(ctx, refill), d.resume(ctx))
}

const (
	// heldGrace is how long a partition counts as held after this node held it last:
	// a lease that was renewed late changes nothing here.
	heldGrace = 5 * time.Second
	// lookAgain is the time until a gained partition is read a second time. Its former
	// holder may record waits there for heldGrace after it has lost the partition.
	lookAgain = heldGrace + 2*time.Second
)

// partitions returns the partitions of this node, and the gained ones to read now: new
// ones at once, and a second time after lookAgain.
func (d *Dispatcher) partitions() (held func(int) bool, gained []int) {
	if d.opt.Held == nil {
		return func(int) bool { return true }, nil
	}
	now := d.opt.Now()
	for _, h := range d.opt.Held() {
		if last, known := d.held[h.Partition]; !known || now.Sub(last) > heldGrace {
			gained = append(gained, h.Partition)
			d.again[h.Partition] = now.Add(lookAgain)
		} else if at, due := d.again[h.Partition]; due && !now.Before(at) {
			gained = append(gained, h.Partition)
			delete(d.again, h.Partition)
		}
		d.held[h.Partition] = now
	}
	var at [domain.Partitions]time.Time
	for p, last := range d.held {
		at[p] = last
	}
	d.heldAt.Store(&at)
	return d.holding(), gained
}

// holding says whether this node looks after a partition.
func (d *Dispatcher) holding() func(int) bool {
	if d.opt.Held == nil {
		return func(int) bool { return true }
	}
	now := d.opt.Now()
	var held [domain.Partitions]bool
	for _, h := range d.opt.Held() {
		held[h.Partition] = true
	}
	if at := d.heldAt.Load(); at != nil {
		for p := range at {
			held[p] = held[p] || now.Sub(at[p]) <= heldGrace
		}
	}
	return func(p int) bool { return held[p] }
}

// allHeld lists the partitions that this node looks after.
func (d *Dispatcher) allHeld() (list []int) {
	for p, held := 0, d.holding(); p < domain.Partitions; p++ {
		if held(p) {
			list = append(list, p)
		}
	}
	return list
}

// record writes why runs wait.
func (d *Dispatcher) record(ctx context.Context, list []*waiting) error {
	now := d.opt.Now()
	for part := range slices.Chunk(list, offerBatch) {
		waits := d.waiting.waits(part, now)
		covered, err := d.opt.Store.RecordWaits(ctx, waits)
		if err != nil {
			d.waitFailures.failed(d.log, err, len(waits))
			return err
		}
		d.waitFailures.recovered(d.log)
		d.waiting.recorded(part)
		if ended := d.stopCovered(covered); len(ended) > 0 {
			for i := range ended {
				d.waiting.drop(ended[i].ID)
			}
			d.opt.Ended(ended)
		}
	}
	return nil
}

// waits are what the rows of runs are to say.
func (r *waitQueues) waits(list []*waiting, now time.Time) []store.Wait {
	r.table.Lock()
	defer r.table.Unlock()
	out := make([]store.Wait, len(list))
	for i, w := range list {
		out[i] = w.wait(now)
	}
	return out
}

// wait is called with the lock held.
func (w *waiting) wait(now time.Time) store.Wait {
	out := store.Wait{
		Tenant: w.execution.TenantID, ID: w.execution.ID, Reason: domain.ReasonWaitInstance, Message: w.message, Full: w.online > 0, Since: waitsSince(&w.execution),
	}
	switch {
	case !w.polled:
	case now.Sub(w.handed) < handedFor:
		out.For = handOver
	case w.online > 0:
		out.For = waitBusy
	default:
		if w.execution.Bound != 0 {
			out.Message = "the instance that the shard is for is not connected"
		}
		out.For = waitOffline(now.Sub(w.since()))
	}
	return out
}

func (r *waitQueues) recorded(list []*waiting) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range list {
		w.recorded = true
	}
}

// check drops what does not wait any more, as far as the database knows.
func (d *Dispatcher) check(ctx context.Context, list []*waiting) error {
	for part := range slices.Chunk(list, 500) {
		ids := make([]domain.ExecutionID, len(part))
		for i, w := range part {
			ids[i] = w.execution.ID
		}
		fences, err := d.opt.Store.StillDue(ctx, ids)
		if err != nil {
			return err
		}
		d.waiting.checked(part, fences, d.opt.Now())
	}
	return nil
}

func (r *waitQueues) checked(list []*waiting, fences map[domain.ExecutionID]int64, now time.Time) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range list {
		if fence, due := fences[w.execution.ID]; due && fence == w.execution.Fence {
			w.known = now
		} else {
			r.leave(w)
		}
	}
}

// hand lets other nodes take up to limit runs that are this node's alone, the last
// of the list first, and returns these.
func (r *waitQueues) hand(list []*waiting, limit int, now time.Time) (handed []*waiting) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range slices.Backward(list) {
		if !w.polled && len(handed) < limit {
			w.polled, w.handed = true, now
			handed = append(handed, w)
		}
	}
	return handed
}

// loadGained loads the waiting runs of partitions that this node has gained.
func (d *Dispatcher) loadGained(ctx context.Context, partitions []int) error {
	err := d.loadAll(ctx, partitions)
	if err != nil {
		for _, p := range partitions {
			delete(d.held, p) // they are looked through again
		}
	}
	return err
}

// loadAll loads waiting runs of all executors, up to loadMost. If there are more, it marks
// their executors as spilled, and refill loads the rest.
func (d *Dispatcher) loadAll(ctx context.Context, partitions []int) error {
	found, err := d.load(ctx, partitions, nil)
	if err != nil {
		return err
	}
	d.waiting.spillAll(found.Executors)
	d.fire(found.Executions)
	return nil
}

// refillAlone bounds the questions for a single executor in one look.
const refillAlone = 4

// refill loads runs that wait in the database alone, for executors with room in memory.
// If runs of some executors fill the answer, it asks for the other executors one by one,
// in rotation.
func (d *Dispatcher) refill(ctx context.Context, spilled map[domain.ExecutorID]uint64) error {
	if len(spilled) == 0 {
		return nil
	}
	partitions := d.allHeld()
	ask := func(executors []domain.ExecutorID) (store.WaitingList, error) {
		found, err := d.load(ctx, partitions, executors)
		if err != nil {
			return found, err
		}
		if !found.More {
			for _, id := range executors {
				d.waiting.filled(id, spilled[id])
			}
		}
		d.fire(found.Executions)
		return found, nil
	}
	all := slices.Sorted(maps.Keys(spilled))
	found, err := ask(all)
	if err != nil || !found.More {
		return err
	}
	for i := range found.Executions {
		delete(spilled, found.Executions[i].Executor)
	}
	left := slices.DeleteFunc(all, func(id domain.ExecutorID) bool { return spilled[id] == 0 })
	for i := range min(len(left), refillAlone) {
		if _, err := ask(left[(d.refills+i)%len(left):][:1]); err != nil {
			return err
		}
	}
	d.refills += refillAlone
	return nil
}

func (d *Dispatcher) load(ctx context.Context, partitions []int, executors []domain.ExecutorID) (store.WaitingList, error) {
	if len(partitions) == 0 {
		return store.WaitingList{}, nil
	}
	return d.opt.Store.ListWaiting(ctx, store.ListWaitingParams{
		Partitions: partitions, Executors: executors, Limit: loadMost, Unattended: d.Unattended,
	})
}

// spillAll marks executors with runs that wait in the database alone.
func (r *waitQueues) spillAll(executors []store.ExecutorOf) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, e := range executors {
		r.spill(e.Tenant, e.Executor)
	}
}

// respill marks the executors of runs that left memory once more, after their rows were
// written. A question before that write did not find these rows.
func (r *waitQueues) respill(list []*waiting) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range list {
		if w.spilled {
			r.spill(w.line.tenant, w.line.executor)
		}
	}
}
