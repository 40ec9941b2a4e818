package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// LookEvery is how often LookAfterWaiting is to be called.
const LookEvery = 500 * time.Millisecond

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
)

// surveyed is what one look has found in the wait queues.
type surveyed struct {
	record, check []*waiting
	executors     []waitingFor
}

// waitingFor is an executor with runs that wait.
type waitingFor struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	runs     []*waiting
	since    time.Time // when the first of all began to wait
}

// survey takes out what waits no more, or is another node's now, and says what is
// to be done about the rest. It goes by lists and not by maps, because the order decides
// which run comes first.
func (r *waitQueues) survey(now time.Time, held func(int) bool) (out surveyed) {
	for _, found := range r.all() {
		runs := found.runs
		found.runs = nil
		for part := range slices.Chunk(runs, runtable.Most) {
			r.surveyRuns(part, &found, &out, now, held)
		}
		if len(found.runs) > 0 {
			out.executors = append(out.executors, found)
		}
	}
	return out
}

// all returns the runs that wait for each executor, by line.
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
		found := waitingFor{tenant: at.tenant, executor: id}
		for _, q := range queues {
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
		if w.execution.Expired(now) || !w.foreign && !held(w.execution.Partition) {
			r.leave(w)
			continue
		}
		if since := w.since(); found.since.IsZero() || since.Before(found.since) {
			found.since = since
		}
		found.runs = append(found.runs, w)
		if !w.recorded && len(out.record) < recordMost && now.Sub(w.execution.NotBefore) >= recordAfter {
			out.record = append(out.record, w)
		}
		if now.Sub(w.known) >= checkEvery && len(out.check) < checkMost {
			out.check = append(out.check, w)
		}
	}
}

// lookout looks after the runs that wait. It is owned by LookAfterWaiting, except longest.
type lookout struct {
	// fixed after construction
	store        Store
	fleet        Fleet
	table        *runtable.Table
	now          func() time.Time
	newID        func() int64
	backpressure *batch.Backpressure
	log          *slog.Logger
	held         *holdings
	choices      *chooser
	waits        *waitRoom
	fire         func([]domain.Execution)

	after     int64 // the number of the line that the last refill ended with; 0 = the last one
	others    others
	standings standings
	outages   outages
	longest   atomic.Int64 // see Stalled
}

// look is one look at the runs that wait for an instance. It records why they
// wait, drops those that wait no more, tells of executors without an instance, and loads
// runs from the database. It is called from one place at a time. Its error is the first
// one, and the next look goes on.
func (lo *lookout) look(ctx context.Context) error {
	now := lo.now()
	held := lo.held.partitions()
	found := lo.waits.queues.survey(now, held)
	err := lo.waits.record(ctx, found.record)
	err = cmp.Or(err, lo.waits.check(ctx, found.check))
	lo.outages.keep(found.executors)
	for _, x := range found.executors {
		if _, slots := lo.fleet.Room(x.tenant, x.executor); slots == 0 {
			err = cmp.Or(err, lo.lookForInstances(ctx, x, now))
			continue
		}
		lo.outages.over(x.executor)
		lo.waits.slotsFreed(x.executor, 0, maxWaiting) // should word of free slots have been lost
	}
	return cmp.Or(err, lo.refill(ctx, now))
}

// holdings are the partitions that this node looks after.
type holdings struct {
	list func() []domain.PartitionTerm // nil: all
	now  func() time.Time
	at   atomic.Pointer[[domain.Partitions]time.Time] // when each one was held last
}

// heldGrace is how long a partition counts as held after this node held it last:
// a lease that was renewed late changes nothing here.
const heldGrace = 5 * time.Second

// partitions notes which partitions this node holds.
func (hs *holdings) partitions() (held func(int) bool) {
	if hs.list == nil {
		return func(int) bool { return true }
	}
	now := hs.now()
	var at [domain.Partitions]time.Time
	if last := hs.at.Load(); last != nil {
		at = *last
	}
	for _, h := range hs.list() {
		at[h.Partition] = now
	}
	hs.at.Store(&at)
	return hs.holding()
}

// holding says whether this node looks after a partition.
func (hs *holdings) holding() func(int) bool {
	if hs.list == nil {
		return func(int) bool { return true }
	}
	now := hs.now()
	var held [domain.Partitions]bool
	for _, h := range hs.list() {
		held[h.Partition] = true
	}
	if at := hs.at.Load(); at != nil {
		for p := range at {
			held[p] = held[p] || now.Sub(at[p]) <= heldGrace
		}
	}
	return func(p int) bool { return held[p] }
}

// record writes why runs wait. Then runs of other nodes' partitions leave.
func (wr *waitRoom) record(ctx context.Context, list []*waiting) error {
	now := wr.now()
	for len(list) > 0 {
		part := list[:min(len(list), offerBatch)]
		part = part[:domain.FirstWithin(part, store.MaxListedInput, func(w **waiting) int64 { return int64(len((*w).execution.Input)) })]
		list = list[len(part):]
		waits := wr.queues.waits(part, now)
		covered, err := wr.store.RecordWaits(ctx, waits)
		if err != nil {
			wr.failures.failed(wr.log, err, len(waits))
			return err
		}
		wr.failures.recovered(wr.log)
		wr.queues.recorded(part)
		ended := wr.cancels.stopCovered(covered)
		wr.queues.drop(domain.Collect(ended, func(e *domain.Execution) domain.ExecutionID { return e.ID })...)
		wr.ended(ended)
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
		Line: w.line.number(), Anyone: w.elsewhere || w.foreign,
	}
	switch {
	case !w.swept:
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
		if w.foreign {
			r.leave(w)
		}
	}
}

// check drops what does not wait any more, as far as the database knows.
func (wr *waitRoom) check(ctx context.Context, list []*waiting) error {
	for part := range slices.Chunk(list, 500) {
		fences, err := wr.store.StillDue(ctx, domain.Collect(part, func(w **waiting) domain.ExecutionID { return (*w).execution.ID }))
		if err != nil {
			return err
		}
		wr.queues.checked(part, fences, wr.now())
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

// leaveToOthers marks runs that only instances of other nodes can take. It returns those
// without a recorded wait.
func (r *waitQueues) leaveToOthers(list []*waiting) (record []*waiting) {
	r.table.Lock()
	defer r.table.Unlock()
	for _, w := range list {
		if w.elsewhere = true; !w.recorded {
			record = append(record, w)
		}
	}
	return record
}
