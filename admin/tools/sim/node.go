package sim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/sweeper"
	"github.com/carillon-sched/carillon/proto"
)

var errDatabase = errors.New("the database does not answer")

// Limits of calls (as in lease and gormstore).
const (
	leaseCall = time.Second
	anyCall   = 5 * time.Second
)

// node is one admin process: the rooms themselves, wired as package admin wires
// them, on a played database and played sessions.
type node struct {
	actor
	w      *world
	index  int
	thawed time.Duration // when it goes on, or went on, after it stood still
	skew   time.Duration // of its wall clock

	// of this life
	id        domain.NodeID
	boot      string
	up        bool // it has begun to work
	flows     []*flow
	running   *flow
	store     *nodeStore
	clock     *scheduler.Clock
	leases    *lease.Keeper
	planner   *scheduler.Planner
	timer     *scheduler.Timer
	dispatch  *dispatch.Dispatcher
	completer *completer.Completer
	sweeper   *sweeper.Sweeper
	sessions  []*session
	queues    []batch.Worker
	working   []int // flushes under way, by queue
	stirred   bool
	toldHold  scheduler.Hold
	leasing   bool   // an event of the leases is under way
	alarm     uint64 // the timer's next look
	grants    uint64 // the next look at grants that come due
}

func (n *node) starts() {
	n.life++
	n.alive = true
	n.boot = bootName(n.name, n.life)
	n.id = domain.NodeID(len(n.w.db.nodes) + 1)
	n.sessions, n.flows, n.queues, n.working = nil, nil, nil, nil
	n.up, n.stirred, n.leasing, n.toldHold = false, false, false, scheduler.Hold{}
	n.done = n.stir
	n.w.trace(n.name, "start", int64(n.life), 0)
	life := n.life
	n.w.db.nodes = append(n.w.db.nodes, &nodeRow{
		status:    domain.NodeStatus{Node: domain.Node{ID: n.id, BootID: n.boot, StartedAt: n.w.dbNow(), HeartbeatAt: n.w.dbNow()}},
		connected: func() bool { return n.alive && n.life == life },
		sessions:  n.reached,
	})
	n.flow(n.build)
}

// build is admin.buildEngine, and what runs there.
func (n *node) build() {
	for n.openClock() != nil {
		n.await(func(answer func()) { n.w.after(&n.actor, time.Second, answer) }) // it is started again
	}
	log := slog.New(slog.DiscardHandler)
	n.store = &nodeStore{n: n}
	later := func(list ...domain.Execution) { n.timer.Add(list...); n.lookAtTimer(0) }
	n.leases = lease.NewKeeper(lease.Options{
		Store: n.store, Node: n.id, BootID: n.boot, Horizon: scheduler.LookAhead, Adopt: later, GiveBack: n.store.GiveBackOffers,
		Resend: func(ctx context.Context, e []domain.Execution) { n.dispatch.Repeat(ctx, e) },
		Gained: func() {}, ClockHeld: n.clockHeld, Logger: log, Elapsed: n.elapsed,
		Beside: func(f func()) { n.w.after(&n.actor, 0, func() { n.flow(f) }) },
	})
	table := new(runtable.Table)
	n.timer = scheduler.NewTimer(table, n.clock.Now, scheduler.Lead, func(due []*domain.Execution) { n.dispatch.Fire(due) })
	var timers store.DueTimers
	if n.w.timed { // other cases stay as they are, event by event
		timers = n.store
	}
	n.planner = scheduler.NewPlanner(scheduler.PlannerOptions{
		Store: n.store, Timers: timers, Held: n.partitions, Refused: func() { n.leaseEvent(lease.Refused{}) }, Latest: n.clock.Latest,
		NewID: n.w.newID, Plan: n.w.plans.Plan, Maintenance: n.store, Now: n.clock.Now, Out: func(e []domain.Execution) { later(e...) }, Logger: log,
	})
	n.completer = completer.New(completer.Options{
		Store: n.store, Later: later, Logger: log, Ended: func(list []domain.Execution) { n.dispatch.Freed(list) },
		Returned: func(list []domain.Execution) { n.dispatch.Freed(list) },
		After:    func(d time.Duration, f func()) { n.w.after(&n.actor, d, f) },
	})
	now := n.clock.Now
	if n.w.db.rules.grantEarly {
		now = func() time.Time { return n.clock.Now().Add(domain.OfferAhead) }
	}
	n.dispatch = dispatch.New(dispatch.Options{
		Node: n.id, Store: n.store, Fleet: n, Table: table, Later: later, Now: now, Held: n.partitions,
		OnTime: func(list ...domain.Execution) { n.timer.AddOnTime(list...); n.lookAtTimer(0) },
		NewID:  n.w.newID, Logger: log,
		Ended: n.completer.Ended, Random: n.w.faults.chance("dispatch " + n.name).Uint64,
	})
	n.sweeper = sweeper.New(sweeper.Options{
		Store: n.store, Held: n.partitions, Latest: n.clock.Latest, Later: later, Cancel: n.dispatch.SendCancel,
		Resend: n.dispatch.Resend, Ended: n.completer.Ended, Logger: log,
		Ownerless: n.leases.Ownerless, Unattended: n.dispatch.Unattended, Reported: n.completer.Reported,
		Chores: []sweeper.Chore{{Name: "look after waiting runs", Every: dispatch.LookEvery, Do: n.lookAfterWaiting}},
	})
	n.queues = append(n.dispatch.Queues(), n.completer.Results())
	for _, q := range n.queues {
		q.Clock(func() time.Time { return time.Unix(0, int64(n.elapsed())) })
	}
	n.working = make([]int, len(n.queues))
	n.up = true
	n.begin()
}

func (n *node) begin() {
	ctx := context.Background()
	r := n.w.faults.chance("phase " + n.name)
	soon := func(every time.Duration, f func()) { n.w.after(&n.actor, between(r, 0, every), f) }
	soon(lease.LookEvery, func() { n.every(lease.LookEvery, func() { n.leaseEvent(lease.Tick{}) }) })
	soon(scheduler.PollEvery, func() { n.rounds(scheduler.PollEvery, func() { _ = n.planner.Claim(ctx) }) })
	soon(scheduler.ClockEvery, func() { n.rounds(scheduler.ClockEvery, func() { n.clock.Sample(ctx) }) })
	soon(holdLook, func() { n.rounds(holdLook, n.tellHold) })
	soon(completer.StartEvery, func() { n.rounds(completer.StartEvery, func() { n.completer.WriteStarts(ctx) }) })
	for _, c := range n.sweeper.Rounds() {
		soon(c.Every, func() { n.rounds(c.Every, func() { _ = c.Do(ctx) }) })
	}
	n.every(time.Second, n.watch)
	n.lookAtTimer(0)
	n.lookAtGrants()
}

func (n *node) every(d time.Duration, f func()) {
	f()
	n.w.after(&n.actor, d, func() { n.every(d, f) })
}

// elapsed is the monotonic clock; that of a paused process goes on.
func (n *node) elapsed() time.Duration { return n.w.now }

// leaseEvent gives the keeper an event, unless it is busy with another.
func (n *node) leaseEvent(ev lease.Event) {
	if n.leasing {
		return
	}
	n.leasing = true
	n.w.after(&n.actor, 0, func() {
		n.flow(func() { _ = n.leases.Handle(context.Background(), ev); n.leasing = false })
	})
}

// lookAtTimer is scheduler.Timer.Run.
func (n *node) lookAtTimer(in time.Duration) {
	n.alarm++
	mine := n.alarm
	n.w.after(&n.actor, in, func() {
		if n.alarm != mine {
			return
		}
		n.lookAtTimer(max(n.timer.Round(), time.Microsecond))
	})
}

// lookAtGrants is what dispatch.Dispatcher.Run does with answers to offers that
// were made ahead.
func (n *node) lookAtGrants() {
	n.grants++
	mine := n.grants
	wait := n.dispatch.GrantDue()
	n.w.after(&n.actor, max(wait, time.Microsecond), func() {
		if n.grants == mine {
			n.lookAtGrants()
		}
	})
}

// stir lets the queues be worked off, if there is anything in them.
func (n *node) stir() {
	if n.stirred || !n.up || !slices.ContainsFunc(n.queues, func(q batch.Worker) bool { return q.Len() > 0 }) {
		return
	}
	n.stirred = true
	n.w.after(&n.actor, between(n.w.faults.chance("batch "+n.name), 0, 2*time.Millisecond), func() {
		n.stirred = false
		for i, q := range n.queues {
			for range q.Workers() - n.working[i] { // some may find only what has no place now
				if q.Len() == 0 {
					break
				}
				n.working[i]++
				n.flow(func() { q.Flush(context.Background()); n.working[i]-- })
			}
		}
	})
}

func (n *node) crash() {
	if !n.alive {
		return
	}
	n.w.trace(n.name, "crash", int64(n.life), 0)
	n.alive, n.up, n.paused = false, false, 0
	n.die()
	for _, s := range n.sessions {
		if s.nodeUp {
			s.nodeUp = false
			s.farewell(&s.toExecutor, &s.ex.actor, s.closeExecutor)
		}
	}
}

// tx sends a transaction. do happens at the database; then hears of it, unless
// the node has died: with an error when it did not happen, or when nobody can
// tell.
func (n *node) tx(name string, limit time.Duration, do func(), then func(err error)) {
	w, f := n.w, n.w.faults
	r := f.chance("database " + n.name)
	out, home := between(r, 100*time.Microsecond, 3*time.Millisecond), between(r, 100*time.Microsecond, 3*time.Millisecond)
	out, home = out+w.slowed, home+w.slowed
	slow, orphan, silence := between(r, 100*time.Millisecond, 4*time.Second), r.IntN(2) == 0, between(r, 0, 500*time.Millisecond)
	if f.hitAt(faultSlow, n.name, f.rate[faultSlow]/2) {
		out += slow
	}
	refused := f.hit(faultTx, n.name+" "+name)
	unknown := f.hit(faultCommit, n.name+" "+name)
	life, answered := n.life, false
	answer := func(err error) {
		if !answered {
			answered = true
			then(err)
		}
	}
	w.after(nil, out, func() {
		w.trace(n.name, name, 0, 0)
		switch {
		case w.down > w.now || refused || n.life != life && !orphan || !n.alive && !orphan:
			w.reply(n, life, silence, func() { answer(errDatabase) })
		default:
			do()
			err := error(nil)
			if unknown {
				err = errDatabase
			}
			w.reply(n, life, home, func() { answer(err) })
		}
	})
	w.after(&n.actor, limit, func() { answer(errDatabase) })
}

func (w *world) reply(n *node, life int, d time.Duration, f func()) {
	if n.alive && n.life == life {
		w.after(&n.actor, d, f)
	}
}

// watch ends sessions that are silent, and gives no offers to those that may
// be (gateway.idle, in short form).
func (n *node) watch() {
	for _, s := range slices.Clone(n.sessions) {
		silence := n.w.now - s.heard
		switch {
		case silence > proto.HeartbeatTimeout+s.rest:
			s.closeNode()
		case !s.doubt && (silence > proto.HeartbeatInterval+s.rest+time.Second || s.unanswered()):
			s.doubt = true
			n.takeBack(s)
		case s.doubt:
			n.moveUnheard(s)
		}
	}
}

// reached is how many sessions answer.
func (n *node) reached() (count int) {
	for _, s := range n.sessions {
		if !s.doubt {
			count++
		}
	}
	return count
}

// lookAfterWaiting checks what the node itself says: no run stands still beside a slot that it
// could have.
func (n *node) lookAfterWaiting(ctx context.Context) error {
	err := n.dispatch.LookAfterWaiting(ctx)
	// The database's clock may be set, and then the run is not due there.
	if stands := n.dispatch.Stalled(); stands > 0 && !n.w.stepped {
		n.w.fail("stalled: %s has room for a run that has not started for %s", n.name, stands)
	}
	return err
}

// Targets implements dispatch.Fleet.
func (n *node) Targets(_ domain.TenantID, _ domain.ExecutorID, _ string) []dispatch.Target {
	var out []dispatch.Target
	for _, s := range n.sessions {
		if !s.doubt {
			out = append(out, s)
		}
	}
	return out
}

// Room implements dispatch.Fleet.
func (n *node) Room(domain.TenantID, domain.ExecutorID) (free, slots int) {
	for _, s := range n.sessions {
		if !s.doubt {
			free, slots = free+max(0, s.Free()), slots+s.ex.slots
		}
	}
	return free, slots
}

// TargetOf implements dispatch.Fleet.
func (n *node) TargetOf(instance domain.InstanceID) dispatch.Target {
	for _, s := range n.sessions {
		if s.instance == instance {
			return s
		}
	}
	return nil
}
