package dispatch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
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
	// Drained reports whether somebody wants the instance to take nothing new.
	Drained() bool
	// Free is how many slots are free, as far as this node knows.
	Free() int
	// Weight is how many slots a run of the handler takes, from 1 to all.
	Weight(handler string) int
	Idempotent(handler string) bool
	// Reserve takes so many slots for the attempt with this fence, whose offer has
	// so many bytes of input; false: fewer are free, it is leaving, or too much is
	// still on its way to it.
	Reserve(id domain.ExecutionID, fence int64, weight, input int) bool
	// SendQueueFull reports whether Reserve refuses because too much is still on its
	// way to it.
	SendQueueFull() bool
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
	// Room returns how many slots the instances of an executor have that have a session
	// here, and how many of these are free; 0 slots: no instance has a session here.
	Room(tenant domain.TenantID, executor domain.ExecutorID) (free, slots int)
}

// Store is what dispatch asks of the database.
type Store interface {
	store.Executions
	store.Specs
	store.Admission
	store.MaintenanceView
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
	// up to domain.OfferAhead before it; OnTime takes those that have to wait
	// for their time.
	Later  func(...domain.Execution)
	OnTime func(...domain.Execution)
	// Held returns the partitions that this node looks after; nil: all.
	Held   func() []domain.PartitionTerm
	Now    func() time.Time // the database's clock
	NewID  func() int64
	Logger *slog.Logger
	// FlushLimit bounds the transactions under way for tenants with a backlog,
	// while others come too; nil: not.
	FlushLimit *batch.FlushLimit
	// Backpressure counts the results that wait: while a tenant has too many of them,
	// nothing more of his is offered; may be nil.
	Backpressure *batch.Backpressure
	// Ended is called for executions that an offer ended (discarded); may be nil.
	Ended func([]domain.Execution)
	// Disabled reports whether an executor starts nothing, of which Fleet has no
	// targets then; nil: all do.
	Disabled func(domain.TenantID, domain.ExecutorID) bool
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
	giveBacks *batch.Queue[store.GiveBack]
	expected  expected
	early     earlyOffers
	// the parts
	held    holdings
	choices chooser
	waits   waitRoom
	look    lookout
	cancels canceller
	limits  limiter
	// These keep the log short while the database is away.
	specFailures, offerFailures, spreadFailures failureLog
	stop                                        <-chan struct{} // set by Run before its workers begin
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
	if opt.Disabled == nil {
		opt.Disabled = func(domain.TenantID, domain.ExecutorID) bool { return false }
	}
	if opt.Random == nil {
		opt.Random = rand.Uint64
	}
	log := opt.Logger.With("component", "dispatch")
	d := &Dispatcher{
		opt: opt, log: log, due: newDueRuns(opt.Table), early: newEarlyOffers(opt.Table),
		specFailures: failureLog{step: "read job revision"}, offerFailures: failureLog{step: "offer executions"}, spreadFailures: failureLog{step: "spread executions"},
		held: holdings{list: opt.Held, now: opt.Now},
		choices: chooser{
			node: opt.Node, store: opt.Store, now: opt.Now, random: opt.Random, disabled: opt.Disabled, log: log, failures: failureLog{step: "read recent instances"},
		},
		cancels: canceller{store: opt.Store, fleet: opt.Fleet, later: opt.Later, log: log},
		limits:  limiter{store: opt.Store, later: opt.Later, log: log, failures: failureLog{step: "admit waiting executions"}},
		waits:   waitRoom{store: opt.Store, fleet: opt.Fleet, now: opt.Now, log: log, queues: newWaitQueues(opt.Table), failures: failureLog{step: "record waits"}},
		look: lookout{
			store: opt.Store, fleet: opt.Fleet, table: opt.Table, now: opt.Now, newID: opt.NewID, backpressure: opt.Backpressure, log: log,
			others: others{}, standings: standings{}, outages: outages{},
		},
	}
	d.cancels.ended = d.ended
	d.waits.held, d.waits.choices, d.waits.cancels, d.waits.limits, d.waits.enqueue, d.waits.ended = &d.held, &d.choices, &d.cancels, &d.limits, d.enqueue, d.ended
	d.look.held, d.look.choices, d.look.waits, d.look.fire = &d.held, &d.choices, &d.waits, d.fire
	for i := range d.dueQueues {
		d.dueQueues[i] = batch.NewOrdered(offerBatch, d.dueInTurn, d.offer)
	}
	d.answers = batch.NewFair(offerWorkers, offerBatch, answersInTurn, d.grant)
	d.giveBacks = batch.NewFair(1, offerBatch, giveBacksInTurn, d.giveBack)
	d.limits.queue = batch.New(1, offerBatch, d.limits.admit)
	d.cancels.queue = batch.New(1, offerBatch, d.cancels.cancelParts)
	d.answers.Expects(d.expected.soon)
	for _, q := range d.dueQueues {
		q.Drops(func(e **domain.Execution) bool { return (*e).Expired(opt.Now()) }, func(gone []*domain.Execution) { d.due.begin(gone).end() })
		if opt.Backpressure != nil {
			q.ThrottledBy(opt.Backpressure)
		}
	}
	for _, q := range d.dueQueues {
		q.Guards(func(e *domain.Execution, err error) { d.setAside(e.ID, err) })
	}
	d.answers.Guards(func(a Answer, err error) { d.setAside(a.ID, err) })
	d.giveBacks.Guards(func(b store.GiveBack, err error) { d.setAside(b.ID, err) })
	d.cancels.queue.Guards(func(e domain.Execution, err error) { d.setAside(e.ID, err) })
	d.limits.queue.Guards(func(k domain.LimitKey, err error) {
		d.log.Error("a limit cannot be looked after", "limit", k, "err", err)
	})
	if opt.FlushLimit != nil {
		d.answers.LimitFlushes(opt.FlushLimit)
		for _, q := range d.dueQueues {
			q.LimitFlushes(opt.FlushLimit)
		}
	}
	return d
}

// Run works until ctx ends; due executions that are queued then are left to
// other nodes, answers are still handled. Transactions that have begun then are
// not broken off: their outcome would be unknown.
func (d *Dispatcher) Run(ctx context.Context) {
	d.stop, d.limits.stop = ctx.Done(), ctx.Done()
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
	return append(workers(d.dueQueues[:]), d.answers, d.giveBacks, d.limits.queue, d.cancels.queue)
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
	for few := range slices.Chunk(due, runtable.Most) {
		for i, part := range d.due.enter(few, turns) {
			parts[i] = append(parts[i], part...)
		}
	}
	for i, part := range parts {
		d.dueQueues[i].Add(part...) // all at once: the best go first
	}
}

func (d *Dispatcher) fire(due []domain.Execution) { d.Fire(pointers(due)) }

// Freed tells that executions left their instances, or the queue of a limit. It never
// blocks.
func (d *Dispatcher) Freed(executions []domain.Execution) { d.limits.freed(executions) }

// SlotsFreed tells that an instance of an executor may have n more slots free; 0: one of
// them has.
func (d *Dispatcher) SlotsFreed(executor domain.ExecutorID, instance domain.InstanceID, n int) {
	d.waits.slotsFreed(executor, instance, n)
}

// Moved tells that an instance takes no more.
func (d *Dispatcher) Moved(executor domain.ExecutorID) { d.waits.moved(executor) }

// SendCancel passes a cancel on, if this node serves the instance.
func (d *Dispatcher) SendCancel(e domain.Execution) { d.cancels.send(e) }

// LookAfterWaiting is one look at the runs that wait for an instance. It is called from one
// place at a time. Its error is the first one, and the next look goes on.
func (d *Dispatcher) LookAfterWaiting(ctx context.Context) error { return d.look.look(ctx) }

// Stalled is for how long a run has stood beside a free slot that it could have, as of the
// last look; 0: none has for StalledAfter.
func (d *Dispatcher) Stalled() time.Duration { return time.Duration(d.look.longest.Load()) }

func pointers(list []domain.Execution) []*domain.Execution {
	out := make([]*domain.Execution, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
