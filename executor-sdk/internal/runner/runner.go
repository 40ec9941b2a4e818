package runner

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// tickInterval is how often time is looked at while there are attempts.
const tickInterval = 100 * time.Millisecond

// Journal is what Runner needs of a journal.Journal.
type Journal interface {
	Append(records []journal.Record, written func(), done func(error))
	Err() error
}

// Options of New.
type Options struct {
	Boot    string
	Limits  Limits
	Journal Journal
	Logger  *slog.Logger
	// Base is the parent of every handler's context; its values reach the
	// handlers. It must not end before the Runner.
	Base context.Context
	// Known tells whether a handler of that name is registered.
	Known func(handler string) bool
	// Call runs the handler of an offer. It is called in a goroutine per attempt.
	Call func(ctx context.Context, o *proto.Offer) Return
	// Ended hears of every handler that returned, Refused of every offer that was
	// refused; may be nil. They must not wait.
	Ended   func(handler string, o proto.Outcome, took time.Duration)
	Refused func(code string)
	// Exit ends the process; needed when Limits.ExitIfIgnored is set, or a
	// handler's Stuck.Exit.
	Exit func()
	// Tick is how often time is looked at while there are attempts; 0 = 100 ms.
	Tick time.Duration
	// Found is what earlier processes left in the journal.
	Found []journal.Entry
}

// Runner runs attempts. Its methods may be called from many goroutines and
// never wait for the network, the disk or a handler.
type Runner struct {
	options Options
	wake    chan struct{} // capacity 1: there are attempts; nobody closes it

	mu      sync.Mutex // guards what follows
	machine *machine
	// quiet and settled are closed when no attempt is active, or known, any
	// more; nil unless somebody waits.
	quiet, settled chan struct{}
}

// New returns a Runner that watches the time while Run runs.
func New(o Options) *Runner {
	if o.Ended == nil {
		o.Ended = func(string, proto.Outcome, time.Duration) {}
	}
	if o.Refused == nil {
		o.Refused = func(string) {}
	}
	if o.Tick == 0 {
		o.Tick = tickInterval
	}
	r := &Runner{options: o, wake: make(chan struct{}, 1), machine: newMachine(o.Boot, o.Limits, o.Known)}
	r.machine.recover(o.Found)
	return r
}

// Run watches deadlines, leases and unacknowledged results until ctx ends.
func (r *Runner) Run(ctx context.Context) {
	ticker := time.NewTicker(r.options.Tick)
	defer ticker.Stop()
	for {
		if r.empty() {
			ticker.Stop()
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			ticker.Reset(r.options.Tick)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.event((*machine).tick)
	}
}

func (r *Runner) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.machine.attempts) == 0
}

// event lets the machine see one event and carries out what it decided.
func (r *Runner) event(f func(m *machine, now time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.machine, time.Now())
	// Acting never reaches the machine again: that would need mu.
	for i := range r.machine.effects {
		r.act(&r.machine.effects[i])
	}
	r.machine.forgetEffects()
	r.report()
}

// act carries out one effect, under mu: everything it calls only queues.
func (r *Runner) act(e *effect) {
	switch {
	case e.answers != nil:
		e.link.Answer(e.answers)
		for _, a := range e.answers {
			if !a.GetAccepted() {
				r.options.Refused(a.GetRejectCode())
			}
		}
	case e.accepts != nil:
		e.link.Accept(e.accepts)
	case e.started != nil:
		e.link.Started(e.started)
	case e.results != nil:
		e.link.Results(e.results)
	case e.ask != nil:
		e.link.Ask(e.ask)
	case e.records != nil && e.done == nil:
		r.options.Journal.Append(e.records, nil, nil)
	case e.records != nil:
		var written func()
		if then := e.written; then != nil {
			written = func() { r.event(func(_ *machine, now time.Time) { then(now) }) }
		}
		done := e.done
		r.options.Journal.Append(e.records, written, func(err error) {
			r.event(func(_ *machine, now time.Time) { done(now, err) })
		})
	case e.start != nil:
		r.launch(e.start)
	case e.cancel != nil:
		e.cancel.cancel(e.cancel.cause)
	case e.tell != nil:
		e.tell()
	case e.exit:
		r.options.Exit()
	case e.lost:
		r.options.Logger.Error("lease lost: no admin node renewed it in time; all runs are cancelled")
	}
}

func (r *Runner) launch(a *attempt) {
	ctx := r.options.Base
	stopTimer := context.CancelFunc(func() {})
	if !a.deadline.IsZero() {
		ctx, stopTimer = context.WithDeadlineCause(ctx, a.deadline, ErrTimeout)
	}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	go func() {
		defer stopTimer()
		r.execute(a)
	}()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// execute runs in the attempt's own goroutine.
func (r *Runner) execute(a *attempt) {
	// The handler may end its goroutine (runtime.Goexit), as t.FailNow does:
	// then the deferred call below still frees the slot.
	back, unstarted := Return{Kind: KindPanic, Error: "the handler ended its goroutine (runtime.Goexit)"}, false
	defer func() {
		if p := recover(); p != nil {
			back = Panicked(p)
		}
		a.cancel(nil)
		if !unstarted {
			r.finish(a, back)
		}
	}()
	hitPoint("handler.before")
	if a.good.over(time.Now()) {
		// Nobody can look between here and the handler's first step, and a process
		// that is frozen just there starts late. It is a matter of nanoseconds.
		back = Return{Kind: KindRetryable, Error: errTooLate.Error(), Interrupted: true}
		r.event(func(m *machine, now time.Time) { unstarted = m.tooLate(now, a) })
		return
	}
	back = r.options.Call(a.ctx, a.offer)
	hitPoint("handler.after")
}

// Panicked is the Return of a handler that panicked with p. Call it in the
// deferred function that recovered.
func Panicked(p any) Return {
	return Return{Kind: KindPanic, Error: fmt.Sprintf("panic: %v", p), Stack: string(debug.Stack())}
}

func (r *Runner) finish(a *attempt, back Return) {
	var result *proto.Result
	handler := a.offer.GetHandler() // forgotten by returned
	r.event(func(m *machine, now time.Time) { result = m.returned(now, a, back) })
	r.options.Ended(handler, result.GetOutcome(), time.Duration(result.GetDurationUs())*time.Microsecond)
	// Encoded outside of the lock: an output may be large.
	body, err := gproto.Marshal(result)
	if err != nil {
		panic(err) // only invalid UTF-8 can fail, and clip removed it
	}
	r.event(func(m *machine, _ time.Time) { m.write(a, result, body) })
}

// Offers, Grants, Cancels and Acks take what a session received.
func (r *Runner) Offers(link Link, list []*proto.Offer) {
	err := r.options.Journal.Err()
	r.event(func(m *machine, now time.Time) { m.offers(now, link, list, err) })
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Runner) Grants(link Link, list []*proto.Grant) {
	r.event(func(m *machine, now time.Time) { m.grants(now, link, list) })
}

func (r *Runner) Cancels(list []*proto.Cancel) {
	r.event(func(m *machine, now time.Time) { m.cancels(now, list) })
}

func (r *Runner) Acks(list []*proto.ResultAck) {
	r.event(func(m *machine, now time.Time) { m.acks(now, list) })
}

// LinkUp takes a session that registered with a message sent at sentAt.
func (r *Runner) LinkUp(link Link, sentAt time.Time, reply *proto.Registered) {
	r.event(func(m *machine, now time.Time) { m.linkUp(now, link, sentAt, reply) })
}

// Verdicts takes the answer to Link.Ask.
func (r *Runner) Verdicts(link Link, list []*proto.InventoryVerdict) {
	r.event(func(m *machine, now time.Time) { m.verdicts(now, link, list) })
}

// LinkDown takes a session away.
func (r *Runner) LinkDown(link Link) {
	r.event(func(m *machine, now time.Time) { m.linkDown(now, link) })
}

// Renewed tells that a node answered a heartbeat that was sent at sentAt, and
// whether it could renew the lease.
func (r *Runner) Renewed(link Link, sentAt time.Time, ok bool) {
	r.event(func(m *machine, _ time.Time) { m.renewed(link, sentAt, ok) })
}

// Inventory lists what this process holds, for a registration; complete says
// that nothing is left out.
func (r *Runner) Inventory() (items []*proto.InventoryItem, complete bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.attempts.inventory(r.machine.boot)
}

// Inherited lists the attempts of earlier processes whose results are owed;
// all says that the list names each of them.
func (r *Runner) Inherited() (items []*proto.InventoryItem, all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.attempts.inherited(r.machine.boot)
}

// Load returns the slots taken, and whether the Runner drains.
func (r *Runner) Load() (used int, draining bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.used, r.machine.leaving()
}

// Left returns how many handlers still run, and how many attempts an admin
// node still has to hear about.
func (r *Runner) Left() (running, owed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.used, r.machine.attempts.owed()
}

// Unsettled is how many attempts have ended that no admin node has acknowledged.
func (r *Runner) Unsettled() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.attempts.unsettled()
}

// Alive says why an attempt may not act any more, or nil. It looks at the
// clocks itself, since a process that was frozen has missed what its timers
// would have told.
func (r *Runner) Alive(execution, fence int64) error {
	var err error
	r.event(func(m *machine, now time.Time) { err = m.alive(now, Key{execution, fence}) })
	return err
}

// OnSettled has f called once, under mu, when nothing is owed for the attempt any more. f
// must not wait.
func (r *Runner) OnSettled(execution, fence int64, f func()) {
	r.event(func(m *machine, _ time.Time) {
		a := m.attempts[Key{execution, fence}]
		if a == nil {
			m.emit(effect{tell: f})
			return
		}
		before := a.onSettled
		a.onSettled = func() {
			if before != nil {
				before()
			}
			f()
		}
	})
}

// LeaseLost reports whether the lease is lost now.
func (r *Runner) LeaseLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.lease.fenced
}

// Drain refuses offers from now on. The channel it returns is closed when
// nothing runs or may start any more; handlers that were given up do not count.
func (r *Runner) Drain() <-chan struct{} {
	r.mu.Lock()
	if r.quiet == nil {
		r.quiet = make(chan struct{})
	}
	quiet := r.quiet
	r.mu.Unlock()
	r.event(func(m *machine, _ time.Time) { m.drain() })
	return quiet
}

// Stop cancels what runs with ErrStopping.
func (r *Runner) Stop() { r.event((*machine).stop) }

// Settled returns a channel that is closed when all results are acknowledged.
// Handlers that were given up do not count. Call it after Drain.
func (r *Runner) Settled() <-chan struct{} {
	r.mu.Lock()
	if r.settled == nil {
		r.settled = make(chan struct{})
	}
	settled := r.settled
	r.mu.Unlock()
	r.event(func(*machine, time.Time) {})
	return settled
}

// report closes the channels whose time has come. mu is held.
func (r *Runner) report() {
	if r.quiet != nil && r.machine.draining && r.machine.attempts.active() == 0 {
		closeOnce(r.quiet)
	}
	if r.settled != nil && r.machine.attempts.owed() == 0 {
		closeOnce(r.settled)
	}
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
