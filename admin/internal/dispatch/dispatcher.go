package dispatch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Target is an instance with a session on this node.
type Target interface {
	InstanceID() domain.InstanceID
	Traits() Traits
	Load() Load
	// Free is how many slots are free, as far as this node knows.
	Free() int
	// Weight is how many slots a run of the handler takes, from 1 to all.
	Weight(handler string) int
	Idempotent(handler string) bool
	// Reserve takes so many slots for the attempt with this fence, whose offer has
	// so many bytes of input; false: fewer are free, it is leaving, or too much is
	// still on its way to it.
	Reserve(id domain.ExecutionID, fence int64, weight, input int) bool
	// Crowded reports whether it is the last of these that leaves nothing free.
	Crowded() bool
	// Spare is how many more bytes of inputs may be on their way to it.
	Spare() int
	// Holds reports whether the attempt with this fence has room there.
	Holds(id domain.ExecutionID, fence int64) bool
	Release(id domain.ExecutionID, fence int64)
	// SendOffers and SendGrants only queue; an answer tells whether they arrived.
	SendOffers(offers []store.OfferResult)
	SendGrants(grants []Grant)
	SendCancel(e domain.Execution)
}

// Grant tells an instance whether an accepted attempt may start.
type Grant struct {
	ID      domain.ExecutionID
	Fence   int64
	Granted bool
}

// Fleet is the view of the sessions; the gateway meets it.
type Fleet interface {
	Targets(tenant domain.TenantID, executor domain.ExecutorID, handler string) []Target
	TargetOf(instance domain.InstanceID) Target // nil: no session here
	// Share returns how many slots the instances of an executor have that have a
	// session here, how many of these this node has taken, and how many nodes may
	// take them; 0 slots: no instance has a session here.
	Share(tenant domain.TenantID, executor domain.ExecutorID) (taken, slots, nodes int)
}

// Store is what dispatch asks of the database.
type Store interface {
	store.Executions
	store.Specs
	store.Admission
	store.Outbox
	CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error)
}

// Options configures a Dispatcher.
type Options struct {
	Node  domain.NodeID
	Store Store
	Fleet Fleet
	// Table is this node's, for its timer too; nil: one for dispatch alone.
	Table *runtable.Table
	// Later takes executions to try again at their NotBefore (the timer), or
	// up to domain.OfferAhead before it; Punctual takes those that have to wait
	// for their time.
	Later    func(...domain.Execution)
	Punctual func(...domain.Execution)
	// Held returns the partitions that this node looks after; nil: all.
	Held   func() []domain.PartitionTerm
	Now    func() time.Time // the database's clock
	NewID  func() int64
	Logger *slog.Logger
	// Floods bounds the transactions under way for tenants with a backlog,
	// while others come too; nil: not.
	Floods *batch.Floods
	// Backlog counts the results that wait: while a tenant has too many of them,
	// nothing more of his is offered; may be nil.
	Backlog *batch.Backlog
	// Ended is called for executions that an offer ended (discarded); may be nil.
	Ended func([]domain.Execution)
	// Random is a source of random numbers, safe for concurrent use; nil: the
	// runtime's. All that is left to chance is taken from it.
	Random func() uint64
}

// Dispatcher sends due executions out. Create it with New, run it with Run.
type Dispatcher struct {
	// fixed after construction
	opt Options
	log *slog.Logger
	// dueQueues has one for each worker.
	dueQueues [offerWorkers]*batch.Queue[*domain.Execution]
	due       dueRuns
	answers   *batch.Queue[Answer]
	backs     *batch.Queue[store.GiveBack]
	admits    *batch.Queue[domain.LimitKey]
	cancels   *batch.Queue[domain.Execution] // parents whose parts are to be cancelled
	uses      uses
	expected  expected
	early     earlyOffers
	waiting   waitingRoom
	saved     saved
	owed      owed
	seen      seen
	heldAt    atomic.Pointer[[domain.Partitions]time.Time] // held, for everybody
	// owned by LookAfterWaiting
	held    map[int]time.Time // when each partition was held last
	outages outages
	// These keep the log short while the database is away.
	noSpec, noOffer, noAdmit, noUses, noSpread, noWaits trouble
	stop                                                <-chan struct{} // set by Run before its workers begin
}

// Batch sizes: 200 to 500 rows a transaction is the knee of the measured curve.
const (
	offerBatch   = 200
	offerWorkers = 2
)

// New returns a Dispatcher; it starts nothing.
func New(opt Options) *Dispatcher {
	if opt.Ended == nil {
		opt.Ended = func([]domain.Execution) {}
	}
	if opt.Table == nil {
		opt.Table = new(runtable.Table)
	}
	if opt.Random == nil {
		opt.Random = rand.Uint64
	}
	d := &Dispatcher{
		opt: opt, log: opt.Logger.With("component", "dispatch"), due: newDueRuns(opt.Table), early: newEarlyOffers(opt.Table), waiting: newWaitingRoom(opt.Table),
		noSpec: trouble{step: "read job revision"}, noOffer: trouble{step: "offer executions"},
		noAdmit: trouble{step: "admit waiting executions"}, noUses: trouble{step: "read recent instances"},
		noSpread: trouble{step: "spread executions"}, noWaits: trouble{step: "record waits"}, outages: outages{}, held: map[int]time.Time{},
	}
	for i := range d.dueQueues {
		d.dueQueues[i] = batch.NewOrdered(offerBatch, d.dueInTurn, d.offer)
	}
	d.answers = batch.NewFair(offerWorkers, offerBatch, answersInTurn, d.grant)
	d.backs = batch.NewFair(1, offerBatch, backsInTurn, d.giveBack)
	d.admits = batch.New(1, offerBatch, d.admit)
	d.cancels = batch.New(1, offerBatch, d.cancelParts)
	d.answers.Expects(d.expected.soon)
	for _, q := range d.dueQueues {
		q.Drops(func(e **domain.Execution) bool { return (*e).Expired(opt.Now()) }, func(gone []*domain.Execution) { d.due.begin(gone).end() })
		if opt.Backlog != nil {
			q.Heeds(opt.Backlog)
		}
	}
	for _, q := range d.dueQueues {
		q.Guards(func(e *domain.Execution, err error) { d.setAside(e.ID, err) })
	}
	d.answers.Guards(func(a Answer, err error) { d.setAside(a.ID, err) })
	d.backs.Guards(func(b store.GiveBack, err error) { d.setAside(b.ID, err) })
	d.cancels.Guards(func(e domain.Execution, err error) { d.setAside(e.ID, err) })
	d.admits.Guards(func(k domain.LimitKey, err error) {
		d.log.Error("a limit cannot be looked after", "limit", k, "err", err)
	})
	if opt.Floods != nil {
		d.answers.Bound(opt.Floods)
		for _, q := range d.dueQueues {
			q.Bound(opt.Floods)
		}
	}
	return d
}

// Run works until ctx ends; due executions that are queued then are left to
// other nodes, answers are still handled. Transactions that have begun then are
// not broken off: their outcome would be unknown.
func (d *Dispatcher) Run(ctx context.Context) {
	d.stop = ctx.Done()
	var wg sync.WaitGroup
	for _, q := range d.Queues() {
		wg.Go(func() { q.Run(ctx) })
	}
	wg.Go(func() { d.grantInTime(ctx) })
	wg.Wait()
}

// setAside ends a run that this node cannot handle, so that it keeps no other
// from being handled.
func (d *Dispatcher) setAside(id domain.ExecutionID, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), setAsideTime)
	defer cancel()
	if err := d.opt.Store.SetAside(ctx, map[domain.ExecutionID]error{id: why}); err != nil {
		d.log.Error("an execution cannot be set aside", "execution_id", id, "err", err)
	}
}

// setAsideTime bounds how long that may take; the sweep comes back to the run.
const setAsideTime = 5 * time.Second

// Queues are all that Run works off.
func (d *Dispatcher) Queues() []batch.Worker {
	return append(workers(d.dueQueues[:]), d.answers, d.backs, d.admits, d.cancels)
}

func workers(queues []*batch.Queue[*domain.Execution]) (out []batch.Worker) {
	for _, q := range queues {
		out = append(out, q)
	}
	return out
}

// Fire takes executions that are due. It never blocks.
func (d *Dispatcher) Fire(due []*domain.Execution) { d.enqueue(due, nil) }

func (d *Dispatcher) enqueue(due []*domain.Execution, turns map[domain.ExecutionID]int64) {
	var parts [offerWorkers][]*domain.Execution
	for few := range slices.Chunk(due, offerBatch) { // others enter and leave between them
		for i, part := range d.due.enter(few, turns) {
			parts[i] = append(parts[i], part...)
		}
	}
	for i, part := range parts {
		d.dueQueues[i].Add(part...) // all at once: the best go first
	}
}

func (d *Dispatcher) fire(due []domain.Execution) { d.Fire(pointers(due)) }

func pointers(list []domain.Execution) []*domain.Execution {
	out := make([]*domain.Execution, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// choice is one execution with the target it was given.
type choice struct {
	execution domain.Execution
	target    Target
	weight    int // slots
	offer     store.Offer
	routing   domain.Routing
	last      domain.InstanceID // of the job before this choice
}

// offer is the flush of the due queue.
func (d *Dispatcher) offer(ctx context.Context, batch []*domain.Execution) {
	defer d.due.begin(batch).end()
	select {
	case <-d.stop: // ctx cannot tell: the last batch gets one that has not ended
		return // other nodes take them
	default:
	}
	ctx = context.WithoutCancel(ctx)
	batch = d.alive(batch)    // in the order of the queue: the best of them get what room there is
	unused := map[place]int{} // room that somebody else may have
	due, specs := d.specsOf(ctx, batch, unused)
	d.recall(ctx, due, specs)
	now := d.opt.Now()
	chosen := make([]choice, 0, len(due))
	var waits []waiter
	var parents, punctual []domain.Execution
	var scratch []candidate
	held := map[domain.JobID]*waiter{} // nobody overtakes an earlier run of a serial job
	here := lookup{fleet: d.opt.Fleet}
	full := map[line]*waiter{} // what found no room, where a run takes one slot: the next of its line has none either
	for i, e := range due {
		spec := specs[i]
		early := e.NotBefore.After(now)
		first := held[e.JobID]
		if first != nil && !e.IsPart() && !early {
			waits = append(waits, waiter{execution: e, spec: spec, online: first.online, message: first.message})
			continue
		}
		targets := here.targets(e.TenantID, e.Executor, spec.Handler)
		if early && (first != nil || !mayOfferEarly(spec, targets) || spec.SlotLimit() > 0 && hasJob(punctual, e.JobID)) {
			punctual = append(punctual, e)
			continue
		}
		if spec.Sharding.On() && len(d.candidates(&e, spec, targets, scratch[:0])) > 0 {
			parents = append(parents, e) // it needs no room, but somebody to have shards for
			continue
		}
		if len(full) > 0 && !early && e.Instance == 0 {
			w := waiter{execution: e, spec: spec}
			if before := full[w.line()]; before != nil {
				w.online, w.message = before.online, before.message
				waits = append(waits, w)
				continue
			}
		}
		var c choice
		var wait *waiter
		c, wait, scratch = d.choose(e, spec, boundTo(e.Bound, targets), d.poolOf(&here, &e, spec, targets), scratch)
		if wait == nil && c.target == nil || wait != nil && isThere(&e, targets) {
			unused[place{e.Executor, e.Bound}] += weightOf(spec.Handler, targets)
			continue
		}
		if early && (wait != nil || !c.leavesRoom()) {
			if wait == nil {
				d.undo(&c)
				unused[place{e.Executor, c.offer.Instance}] += c.weight
			}
			punctual = append(punctual, e)
			continue
		}
		if wait == nil {
			chosen = append(chosen, c)
			continue
		}
		waits = append(waits, *wait)
		if spec.SlotLimit() > 0 {
			held[e.JobID] = wait
		}
		// One that goes before its time finds slots kept from it that are free for
		// those before it.
		if weightOf(spec.Handler, targets) == 1 && d.saved.count.Load() == 0 {
			full[wait.line()] = wait
		}
	}
	d.opt.Punctual(punctual...)
	d.makeOffers(ctx, chosen)
	d.spread(ctx, parents)
	d.wait(ctx, waits)
	d.rooms(unused)
}

// lookup asks the fleet once per handler for a batch: an instance that comes
// meanwhile tells of its room by itself.
type lookup struct {
	fleet Fleet
	found map[served][]Target
	pools map[pooled]*pool
}

type served struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	handler  string
}

func (l *lookup) targets(tenant domain.TenantID, executor domain.ExecutorID, handler string) []Target {
	key := served{tenant, executor, handler}
	found, known := l.found[key]
	if !known {
		if l.found == nil {
			l.found = map[served][]Target{}
		}
		found = l.fleet.Targets(tenant, executor, handler)
		l.found[key] = found
	}
	return found
}

// alive leaves out what nobody needs to offer any more, without asking the
// database: runs whose wait for an instance is over, which the sweep ends, and
// runs that another node looks after by now.
func (d *Dispatcher) alive(batch []*domain.Execution) []*domain.Execution {
	now, held := d.opt.Now(), d.holding()
	return slices.DeleteFunc(batch, func(e *domain.Execution) bool {
		return e.Expired(now) || now.Sub(e.WakeAt) > strangerGrace && !held(e.Partition)
	})
}

// strangerGrace is how long after its WakeAt a run of a partition that another
// node holds is left to that node. A dead node's runs are taken on before its
// partitions are.
const strangerGrace = 5 * time.Second

// specsOf reads the settings of due executions, and postpones those whose
// settings cannot be read.
func (d *Dispatcher) specsOf(ctx context.Context, due []*domain.Execution, unused map[place]int) ([]domain.Execution, []*domain.JobSpec) {
	readable := true
	specs := make([]*domain.JobSpec, 0, len(due))
	kept := make([]domain.Execution, 0, len(due))
	for _, e := range due {
		spec, err := d.opt.Store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
		if err != nil {
			if domain.Is(err, domain.CodeNotFound) {
				unused[place{e.Executor, e.Bound}]++
			} else {
				readable = false
				d.owed.add(place{e.Executor, e.Bound}, 1) // the next one would fare no better now
			}
			d.postpone(&d.noSpec, err, *e)
			continue
		}
		kept, specs = append(kept, *e), append(specs, spec.For(e.Part))
	}
	if readable {
		d.noSpec.over(d.log)
	}
	return kept, specs
}

// isThere tells a copy that comes again (the waiting room and the sweep may both
// hold one) from a new try: offered to the same instance it would be refused, and
// giving its room back would free the room of the attempt.
func isThere(e *domain.Execution, targets []Target) bool {
	return slices.ContainsFunc(targets, func(t Target) bool { return t.Holds(e.ID, e.Fence+1) })
}

// makeOffers commits the offers, then sends them.
func (d *Dispatcher) makeOffers(ctx context.Context, chosen []choice) {
	if len(chosen) == 0 {
		return
	}
	offers := make([]store.Offer, len(chosen))
	for i, c := range chosen {
		offers[i] = c.offer
	}
	results, err := d.opt.Store.OfferExecutions(ctx, offers)
	if err != nil {
		again := make([]domain.Execution, len(chosen))
		for i, c := range chosen {
			c.target.Release(c.execution.ID, c.execution.Fence+1)
			d.owed.add(place{c.execution.Executor, c.offer.Instance}, c.weight)
			again[i] = c.execution
		}
		d.postpone(&d.noOffer, err, again...)
		return
	}
	d.noOffer.over(d.log)
	var out batch.Groups[Target, store.OfferResult]
	freed := d.owed.take()
	if freed == nil {
		freed = map[place]int{}
	}
	var ended, stayed []domain.Execution
	answers := 0
	for i, r := range results {
		ended = append(ended, d.stopCovered(r.Covered)...)
		c := chosen[i]
		reserved := c.execution.Fence + 1
		if r.Status != store.OfferMade {
			d.undo(&c)
			freed[place{c.execution.Executor, c.offer.Instance}] += c.weight
			if r.Execution.Reason != domain.ReasonWaitLimit || len(d.opt.Store.LimitsOn(c.execution.TenantID, c.execution.Executor)) > 1 {
				stayed = append(stayed, c.execution) // it may have left the queue of a limit
			}
			switch {
			case r.Status == store.OfferDiscarded:
				ended = append(ended, r.Execution)
			case r.Status == store.OfferGone && !r.Execution.State.Terminal() && r.Execution.NotBefore.After(d.opt.Now()):
				// It has to wait for its time, or the database's clock was set back.
				d.opt.Punctual(r.Execution)
			}
			continue
		}
		if r.Execution.Fence != reserved { // what we held was an older copy
			c.target.Release(c.execution.ID, reserved)
			_ = c.target.Reserve(r.Execution.ID, r.Execution.Fence, c.weight, len(r.Spec.InputOf(&r.Execution))) // a full instance refuses by itself
		}
		if r.Execution.State == domain.Cancelling {
			continue // a later offer of the batch covered it: it gets the cancel, and no offer
		}
		out.Add(c.target, r)
		switch {
		case c.offer.Granted:
		case r.Execution.NotBefore.After(d.opt.Now()):
			d.early.offered(&r.Execution)
		default:
			answers++
		}
	}
	d.expected.sent(answers)
	for _, g := range out {
		g.Key.SendOffers(g.Items)
	}
	d.rooms(freed) // the other worker may have met a full house
	d.Freed(stayed)
	if len(ended) > 0 {
		d.opt.Ended(ended)
	}
}

// retryPause spreads the next try after a database error.
func (d *Dispatcher) retryPause() time.Duration {
	return 300*time.Millisecond + time.Duration(d.opt.Random()%uint64(400*time.Millisecond))
}

func (d *Dispatcher) postpone(t *trouble, err error, executions ...domain.Execution) {
	if domain.Is(err, domain.CodeNotFound) {
		return // gone with its job
	}
	t.met(d.log, err, len(executions))
	for i := range executions {
		executions[i].NotBefore = d.opt.Now().Add(d.retryPause())
	}
	d.opt.Later(executions...)
}

// Repeat is Resend for executions without their specs.
func (d *Dispatcher) Repeat(ctx context.Context, offered []domain.Execution) {
	var offers []store.OfferResult
	for _, e := range offered {
		if d.opt.Fleet.TargetOf(e.Instance) == nil {
			continue
		}
		spec, err := d.opt.Store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
		if err != nil {
			d.log.Warn("one-step offers are left to the sweep", "err", err)
			break
		}
		offers = append(offers, store.OfferResult{Status: store.OfferMade, Execution: e, Spec: spec.For(e.Part)})
	}
	d.Resend(offers)
}

// Resend sends one-step offers again whose start nobody has reported, if this
// node serves their instances. The rows name instance and fence already, so
// that an instance which has one of them says so and does nothing else. One that
// has not refuses it, and the run is offered anew: the time of the offer that was
// lost is over (SDKs that do not know this start it).
func (d *Dispatcher) Resend(offers []store.OfferResult) {
	var out batch.Groups[Target, store.OfferResult]
	for _, o := range offers {
		if t := d.opt.Fleet.TargetOf(o.Execution.Instance); t != nil {
			if !t.Holds(o.Execution.ID, o.Execution.Fence) {
				_ = t.Reserve(o.Execution.ID, o.Execution.Fence, t.Weight(o.Spec.Handler), len(o.Spec.InputOf(&o.Execution))) // a full instance refuses by itself
			}
			o.Again = true
			out.Add(t, o)
		}
	}
	for _, g := range out {
		g.Key.SendOffers(g.Items)
	}
}

// stopCovered tells covered runs to stop, and returns those that have ended.
func (d *Dispatcher) stopCovered(covered []domain.Execution) (ended []domain.Execution) {
	for _, e := range covered {
		if e.State.Terminal() {
			ended = append(ended, e)
		} else {
			d.SendCancel(e)
		}
	}
	return ended
}

// SendCancel passes a cancel on, if this node serves the instance; whoever
// does not get it through leaves it to the sweep. A parent's cancel goes to its
// parts.
func (d *Dispatcher) SendCancel(e domain.Execution) {
	if e.OnlyPartsMove() {
		d.cancels.Add(e)
		return
	}
	if t := d.opt.Fleet.TargetOf(e.Instance); t != nil {
		t.SendCancel(e)
	}
}
