package sim

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

var errDatabase = errors.New("the database does not answer")

// Paces of a node (as in scheduler, lease and maintenance).
const (
	sweepEvery  = 500 * time.Millisecond
	sweepHold   = 3 * time.Second
	strayEvery  = 2 * time.Second
	strayAfter  = 3 * time.Second
	expireEvery = 2 * time.Second
	clockEvery  = time.Second
	leaseCall   = time.Second
	anyCall     = 5 * time.Second
)

// node is one admin process: the shells between the machines, in short form.
type node struct {
	actor
	w     *world
	index int

	id       domain.NodeID
	boot     string
	lease    *lease.Machine
	planner  *scheduler.Planner
	sessions []*session
	offset   time.Duration // of the database's clock, as last seen

	leasing  bool // an effect of the lease machine is under way
	effects  []lease.Effect
	planning bool
	held     map[domain.ExecutionID]time.Time // in the timer, until
	due      []domain.Execution
	waiting  []domain.Execution
}

func (n *node) starts() {
	n.life++
	n.alive = true
	n.boot = bootName(n.name, n.life)
	n.id = domain.NodeID(len(n.w.db.nodes) + 1)
	n.lease = lease.New(lease.Config{Node: n.id, BootID: n.boot})
	n.planner = scheduler.NewPlanner(scheduler.PlannerOptions{NewID: n.w.newID, Plan: n.w.plans.Plan, Logger: slog.New(slog.DiscardHandler)})
	n.sessions, n.effects, n.leasing, n.planning = nil, nil, false, false
	n.held, n.due, n.waiting = map[domain.ExecutionID]time.Time{}, nil, nil
	n.w.trace(n.name, "start", int64(n.life), 0)
	life := n.life
	n.w.db.nodes = append(n.w.db.nodes, &nodeRow{
		status:    domain.NodeStatus{Node: domain.Node{ID: n.id, BootID: n.boot, StartedAt: n.w.dbNow(), HeartbeatAt: n.w.dbNow()}},
		connected: func() bool { return n.alive && n.life == life },
		sessions:  n.reached,
	})
	n.readClock()
	r := n.w.faults.chance("phase " + n.name)
	for _, l := range []struct {
		every time.Duration
		do    func()
	}{
		{lease.LookEvery, func() { n.leaseEvent(lease.Tick{}) }},
		{scheduler.PollEvery, n.plan},
		{sweepEvery, func() { n.sweep(0, true) }},
		{strayEvery, func() { n.sweep(strayAfter, false) }},
		{expireEvery, n.expire},
		{clockEvery, n.readClock},
		{time.Second, n.watch},
	} {
		n.w.after(&n.actor, between(r, 0, l.every), func() { n.every(l.every, l.do) })
	}
}

func (n *node) every(d time.Duration, f func()) {
	f()
	n.w.after(&n.actor, d, func() { n.every(d, f) })
}

func (n *node) crash() {
	if !n.alive {
		return
	}
	n.w.trace(n.name, "crash", int64(n.life), 0)
	n.alive, n.paused = false, 0
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

// now is the database's clock as this node follows it.
func (n *node) now() time.Time { return n.w.epoch.Add(n.w.now + n.offset) }

func (n *node) readClock() {
	if n.w.down <= n.w.now {
		n.offset = n.w.dbOffset - between(n.w.faults.chance("clock "+n.name), 0, 3*time.Millisecond)
	}
}

// leaseEvent gives the lease machine an event, unless it is still busy with
// the effects of another one.
func (n *node) leaseEvent(ev lease.Event) {
	if n.leasing {
		return
	}
	n.leasing, n.effects = true, n.lease.Step(n.w.now, ev)
	n.leaseNext()
}

func (n *node) leaseNext() {
	if len(n.effects) == 0 {
		n.leasing = false
		return
	}
	effect := n.effects[0]
	n.effects = n.effects[1:]
	sent, db := n.w.now, n.w.db
	var ev lease.Event
	call := func(name string, do func()) {
		n.tx(name, leaseCall, do, func(err error) {
			if err != nil {
				n.effects, n.leasing = nil, false
				return
			}
			n.effects = append(n.effects, n.lease.Step(n.w.now, ev)...)
			n.leaseNext()
		})
	}
	switch x := effect.(type) {
	case lease.Renew:
		call("renew", func() {
			ev = lease.Seen{SentAt: sent, Renewed: x.Held, Table: db.renew(store.RenewPartitionsParams{Node: n.id, BootID: n.boot, Held: x.Held, TTL: lease.TTL})}
		})
	case lease.Look:
		call("look", func() { ev = lease.Seen{SentAt: sent, Table: db.table()} })
	case lease.Acquire:
		call("acquire", func() {
			ev = lease.Acquired{SentAt: sent, Leases: db.acquire(store.AcquirePartitionsParams{Node: n.id, BootID: n.boot, Want: x.Want, TTL: lease.TTL})}
		})
	case lease.Release:
		call("release", func() {
			ev = lease.Released{Terms: db.release(store.ReleasePartitionsParams{BootID: n.boot, Held: x.Held, Leaving: x.Leaving})}
		})
	case lease.Adopt:
		var found []domain.Execution
		n.tx("adopt", anyCall, func() {
			found = db.planned(store.ListPlannedParams{Partitions: x.Partitions, Horizon: scheduler.LookAhead, OfferedBy: x.Dead})
		}, func(err error) {
			if err == nil {
				n.adopt(found)
			}
		})
		n.leaseNext()
	default:
		n.leaseNext()
	}
}

// adopt fires what another node had planned, and gives back what it offered.
func (n *node) adopt(found []domain.Execution) {
	var offers []store.GiveBack
	for _, e := range found {
		switch e.State {
		case domain.Due, domain.RetryWait:
			n.later(e)
			continue
		case domain.Running:
			n.resend([]store.OfferResult{{Execution: e, Spec: &n.w.db.jobs[e.JobID].spec}})
			continue
		}
		offers = append(offers, store.GiveBack{Tenant: tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferExpired})
	}
	n.giveBack(offers)
}

// plan claims until nothing is due.
func (n *node) plan() {
	held := n.lease.Held(n.w.now)
	if n.planning || len(held) == 0 {
		return
	}
	n.planning = true
	var claimed store.ClaimedTriggers
	var refused error
	n.tx("claim", anyCall, func() {
		n.w.claimer = n
		claimed, refused = n.w.db.claim(store.ClaimDueTriggersParams{Partitions: held, Horizon: scheduler.LookAhead, Plan: n.planner.PlanTrigger})
	}, func(err error) {
		n.planning = false
		switch {
		case err != nil:
		case refused != nil:
			n.leaseEvent(lease.Refused{})
		default:
			for _, e := range claimed.Executions {
				if e.State == domain.Due && !e.WakeAt.Before(e.NotBefore) {
					n.later(e)
				}
			}
			if !claimed.NextFireAt.After(claimed.Now.Add(scheduler.LookAhead)) {
				n.plan()
			}
		}
	})
}

// later puts executions into the timer.
func (n *node) later(list ...domain.Execution) {
	for _, e := range list {
		if at, ok := n.held[e.ID]; ok && !e.NotBefore.Before(at) {
			continue
		}
		n.held[e.ID] = e.NotBefore
		n.wait(e)
	}
}

func (n *node) wait(e domain.Execution) {
	n.w.after(&n.actor, min(max(e.NotBefore.Sub(n.now()), 0), time.Second), func() {
		switch at, ok := n.held[e.ID]; {
		case !ok || !at.Equal(e.NotBefore): // an earlier copy is held, or was fired
		case e.NotBefore.After(n.now()):
			n.wait(e)
		default:
			delete(n.held, e.ID)
			n.fire(e)
		}
	})
}

func (n *node) sweep(overdue time.Duration, mine bool) {
	var held [domain.Partitions]bool
	for _, h := range n.lease.Held(n.w.now) {
		held[h.Partition] = true
	}
	var parts []int
	for p := range held {
		if held[p] == mine {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return
	}
	var swept store.Swept
	n.tx("sweep", anyCall, func() {
		swept = n.w.db.sweep(store.SweepParams{Partitions: parts, Limit: 500, Hold: sweepHold, Overdue: overdue})
	}, func(err error) {
		if err != nil {
			return
		}
		for _, e := range swept.Ended {
			if e.State == domain.RetryWait {
				n.later(e)
			}
		}
		n.later(swept.Dispatch...)
		for _, e := range swept.Cancel {
			n.sendCancel(e)
		}
		n.resend(swept.Resend)
	})
}

func (n *node) expire() {
	n.tx("expire", anyCall, func() { n.w.db.expire(n.w.instanceOrder) }, func(error) {})
}

// watch ends sessions that are silent, and gives no offers to those that may
// be (gateway.pulse, in short form).
func (n *node) watch() {
	for _, s := range slices.Clone(n.sessions) {
		silence := n.w.now - s.heard
		switch {
		case silence > proto.HeartbeatTimeout:
			s.closeNode()
		case silence > proto.HeartbeatInterval+time.Second && !s.doubt:
			s.doubt = true
			n.takeBack(s)
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
