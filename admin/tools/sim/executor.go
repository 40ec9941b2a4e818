package sim

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
	"github.com/carillon-sched/carillon/proto"
)

// Handlers of every executor.
const (
	handlerOnce = "once" // must not be repeated unasked
	handlerSafe = "safe" // registered as idempotent; a run takes safeWeight slots
	handlerElse = "else" // as once, in a line of its own
)

const safeWeight = 2

func weightOf(handler string) int {
	if handler == handlerSafe {
		return safeWeight
	}
	return 1
}

const (
	executorTick = 100 * time.Millisecond
	killGrace    = 10 * time.Second
)

// executor is one process with the SDK's machine, and its disk.
type executor struct {
	actor
	w     *world
	index int
	slots int
	skew  time.Duration // of its wall clock

	boot    string
	machine *simulate.Machine
	links   []*session // by node; nil: none, or it is being made
	dialing []bool

	// The disk. What is in lives survives everything, what is pending was written
	// and not synced: it survives the process, but not the machine.
	lives    []simulate.Life
	pending  []simulate.Record
	host     simulate.OnMachine // this start of the machine; zero where it is not known
	waiters  []func(time.Time, error) []simulate.Effect
	syncing  bool
	diskErr  error
	handlers map[simulate.Key]*handling

	stopping bool // it was asked to stop
}

// handling is a handler that runs.
type handling struct {
	key     simulate.Key
	start   *started
	ignores bool
	ended   bool
	context bool // its context has ended
}

func (e *executor) wall() time.Time { return e.w.epoch.Add(e.w.now + e.skew) }

// boots begins a new process, which takes over the journal.
func (e *executor) boots() {
	e.life++
	e.alive = true
	e.boot = bootName(e.name, e.life)
	e.w.trace(e.name, "boot", int64(e.life), 0)
	if e.w.db.rules.trustEnd {
		for i := range e.lives {
			e.lives[i].Machine = e.host
		}
	}
	found := simulate.Replay(e.lives, e.host)
	e.lives = append(e.lives, simulate.Life{Boot: e.boot, Machine: e.host})
	e.pending, e.waiters, e.syncing, e.diskErr, e.stopping = nil, nil, false, nil, false
	e.handlers = map[simulate.Key]*handling{}
	margin := proto.LeaseTTL - proto.SelfFence
	if e.w.db.rules.outlive {
		margin = -time.Hour
	}
	e.machine = simulate.New(e.boot, simulate.Limits{
		Slots: e.slots, Weight: weightOf, KillGrace: killGrace, AcceptTTL: proto.AcceptTTL,
		LeaseMargin: margin, ResendAfter: 10 * time.Second, AwaitDisk: e.host == simulate.OnMachine{},
	}, func(h string) bool { return h == handlerOnce || h == handlerSafe || h == handlerElse }, found)
	e.links = make([]*session, len(e.w.nodes))
	e.dialing = make([]bool, len(e.w.nodes))
	e.every(executorTick, func() { e.apply(e.machine.Tick(e.wall())) })
	for i := range e.w.nodes {
		e.redial(i)
	}
}

func (e *executor) every(d time.Duration, f func()) {
	e.w.after(&e.actor, d, func() { f(); e.every(d, f) })
}

// fails ends the machine, which starts again with the next process. What was not
// synced is gone.
func (e *executor) fails() {
	if !e.alive {
		return
	}
	e.pending = nil
	if e.host != (simulate.OnMachine{}) {
		e.host[0]++
	}
	e.w.trace(e.name, "machine fails", int64(e.life), 0)
	e.crash()
}

// crash ends the process; its files keep what was written.
func (e *executor) crash() {
	if !e.alive {
		return
	}
	e.w.trace(e.name, "crash", int64(e.life), 0)
	e.keep()
	e.alive = false
	e.paused = 0
	for _, h := range e.handlers {
		if !h.ended {
			h.start.died = true
		}
	}
	for _, s := range e.links {
		if s != nil && s.exUp {
			s.exUp = false
			s.farewell(&s.toNode, &s.node.actor, s.closeNode)
		}
	}
	clear(e.links)
}

// stopFlush is how long a process that stops waits for admin nodes to take its
// results.
const stopFlush = 5 * time.Second

// stops is what SIGTERM does: the executor takes nothing new, interrupts what
// still runs after the grace, and ends when nothing is left, or the time for
// that is over. then follows its end.
func (e *executor) stops(grace time.Duration, then func()) {
	if !e.alive || e.stopping {
		return
	}
	e.w.trace(e.name, "drain", int64(e.life), int64(grace))
	e.stopping = true
	e.apply(e.machine.Drain())
	last := e.w.now + grace + killGrace + stopFlush
	e.w.after(&e.actor, grace, func() { e.apply(e.machine.Stop(e.wall())) })
	e.every(executorTick, func() {
		if e.alive && (len(e.handlers) == 0 && e.machine.Owed() == 0 || e.w.now >= last) {
			e.crash() // there is nothing more to do for it than that
			then()
		}
	})
}

// redial makes a session to a node, again and again.
func (e *executor) redial(i int) {
	r := e.w.faults.chance("dial " + e.name)
	e.w.after(&e.actor, between(r, 20*time.Millisecond, 1500*time.Millisecond), func() {
		if e.links[i] == nil && !e.dialing[i] {
			e.dial(i)
		}
		e.redial(i)
	})
}

func (e *executor) dial(i int) {
	n := e.w.nodes[i]
	if !n.up {
		return
	}
	s := e.w.newSession(n, e)
	s.sentAt = e.w.now
	inventory, _ := e.machine.Inventory()
	older := store.SupersedeBootsParams{Tenant: tenant, Executor: executorID, Grace: 3 * time.Second}
	for _, l := range e.lives[:len(e.lives)-1] {
		older.BootIDs = append(older.BootIDs, l.Boot)
	}
	owed, complete := e.machine.Inherited()
	older.OwedComplete = complete
	for _, item := range owed {
		older.Owed = append(older.Owed, domain.ExecutionID(item.GetExecutionId()))
	}
	sentAt := e.wall()
	e.dialing[i] = true
	e.w.after(&e.actor, proto.HelloTimeout, func() {
		if e.links[i] != s {
			e.dialing[i] = false
		}
	})
	open := true // a registration needs no session
	s.send(&s.toNode, &n.actor, &open, "register", func() {
		n.registered(s, inventory, older, func(reply *proto.Registered) {
			s.send(&s.toExecutor, &e.actor, &open, "registered", func() {
				if s.exUp || e.boot != s.boot || e.links[i] != nil || e.w.now-s.sentAt > proto.HelloTimeout {
					s.broken(&e.actor)
					return
				}
				e.linked(i, s, sentAt, reply)
			})
		})
	})
}

func (e *executor) linked(i int, s *session, sentAt time.Time, reply *proto.Registered) {
	s.exUp = true
	s.beatAt[0], s.beatSent[0] = sentAt, sentAt
	e.links[i], e.dialing[i] = s, false
	e.apply(e.machine.LinkUp(e.wall(), s, sentAt, reply))
	e.beat(s)
}

// beat sends heartbeats as long as the session stands.
func (e *executor) beat(s *session) {
	if !s.exUp {
		return
	}
	if len(s.beats) >= 4 {
		s.closeExecutor()
		return
	}
	s.seq++
	s.last, s.resting, s.stirred = e.w.now, false, false
	s.beats = append(s.beats, beat{s.seq, e.w.now})
	seq, used, at := s.seq, e.machine.Load(), e.wall()
	s.beatAt[seq], s.beatSent[seq] = at, at
	s.send(&s.toNode, &s.node.actor, &s.nodeUp, "heartbeat", func() {
		s.arrived[seq] = s.w.now
		s.node.heartbeat(s, used, func(ok bool, rest time.Duration) {
			if ok {
				s.leased = max(s.leased, seq)
			}
			s.send(&s.toExecutor, &e.actor, &s.exUp, "heartbeat ack", func() {
				known := false
				for len(s.beats) > 0 && s.beats[0].seq <= seq {
					known = known || s.beats[0].seq == seq
					s.beats = s.beats[1:]
				}
				if known && seq == s.seq && rest > 0 && !s.stirred {
					s.resting = true
					e.beatIn(s, rest)
				}
				if known {
					longer := at
					if rest > 0 {
						longer = at.Add(rest - proto.HeartbeatInterval)
						s.beatAt[seq] = longer
					}
					e.apply(e.machine.Renewed(s, longer, ok))
				}
			})
		})
	})
	e.beatIn(s, proto.HeartbeatInterval)
}

// beatIn sends the next heartbeat in d, and at no other time.
func (e *executor) beatIn(s *session, d time.Duration) {
	s.alarm++
	alarm := s.alarm
	e.w.after(&e.actor, d, func() {
		if s.alarm == alarm {
			e.beat(s)
		}
	})
}

// stir ends the rest of all sessions: something was offered.
func (e *executor) stir() {
	for _, s := range e.links {
		if s == nil || !s.exUp {
			continue
		}
		s.stirred = true
		if s.resting {
			s.resting = false
			e.beatIn(s, max(0, s.last+proto.HeartbeatInterval-e.w.now))
		}
	}
}

// apply carries out what the machine decided.
func (e *executor) apply(effects []simulate.Effect) {
	for _, x := range effects {
		switch {
		case x.Answers != nil:
			e.tell(x.Link, "answers", func(s *session) { s.node.answered(s, x.Answers) })
		case x.Started != nil:
			e.tell(x.Link, "started", func(s *session) { s.node.started(s, x.Started) })
		case x.Results != nil:
			e.tell(x.Link, "results", func(s *session) { s.node.results(s, x.Results) })
		case x.Ask != nil:
			e.tell(x.Link, "inventory", func(s *session) {
				s.node.settle(s, x.Ask, func(verdicts []*proto.InventoryVerdict) {
					s.send(&s.toExecutor, &e.actor, &s.exUp, "verdicts", func() { e.apply(e.machine.Verdicts(e.wall(), s, verdicts)) })
				})
			})
		case x.Records != nil:
			e.journal(x)
		case x.Start != nil:
			e.call(x.Start)
		case x.Cancel != nil:
			e.interrupt(e.handlers[*x.Cancel])
		case x.Exit:
			e.crash()
		}
	}
}

func (e *executor) tell(link simulate.Link, what string, f func(*session)) {
	s := link.(*session)
	if s.exUp {
		s.send(&s.toNode, &s.node.actor, &s.nodeUp, what, func() { f(s) })
	}
}

var errDisk = errors.New("the disk does not write")

// journal adds records. They are on the disk when sync says so.
func (e *executor) journal(x simulate.Effect) {
	e.pending = append(e.pending, x.Records...)
	r := e.w.faults.chance("disk " + e.name)
	wait := time.Second
	written := func(told bool) {
		if f := x.Written; f != nil {
			if x.Written = nil; told {
				e.apply(f(e.wall()))
			}
		}
	}
	if x.Written != nil {
		e.w.after(&e.actor, between(r, 0, 100*time.Microsecond), func() { written(true) })
	}
	if durable := x.Durable; durable != nil {
		e.waiters = append(e.waiters, func(now time.Time, err error) []simulate.Effect {
			written(err == nil) // at the latest, or never
			return durable(now, err)
		})
		longest := 5 * time.Millisecond
		if e.host != (simulate.OnMachine{}) {
			longest = 100 * time.Millisecond // nobody acts on it
		}
		wait = between(r, 100*time.Microsecond, longest)
	}
	e.w.after(&e.actor, wait, e.sync)
}

func (e *executor) sync() {
	if len(e.pending) == 0 && e.diskErr == nil {
		return
	}
	waiters := e.waiters
	e.waiters = nil
	if e.w.faults.hit(faultJournal, e.name) {
		e.diskErr = errDisk
		e.w.after(&e.actor, time.Second, e.sync)
	} else {
		e.keep()
		e.diskErr = nil
	}
	err := e.diskErr
	e.w.trace(e.name, "sync", int64(len(waiters)), 0)
	e.w.after(&e.actor, between(e.w.faults.chance("disk "+e.name), 0, time.Millisecond), func() {
		for _, done := range waiters {
			e.apply(done(e.wall(), err))
		}
	})
}

// keep puts what is pending where the next process finds it.
func (e *executor) keep() {
	last := &e.lives[len(e.lives)-1]
	last.Records = append(last.Records, e.pending...)
	for _, r := range e.pending {
		if s := e.w.witness.starts[attemptKey{domain.ExecutionID(r.Execution), r.Fence}]; s != nil && r.Kind == simulate.Done {
			s.written = true
		}
	}
	e.pending = nil
}

// call runs a handler, and the witness writes it down.
func (e *executor) call(b *simulate.Begin) {
	h := &handling{key: b.Key, start: e.w.witness.begin(e, b)}
	e.handlers[b.Key] = h
	where := b.Offer.GetHandler()
	r := e.w.faults.chance("handler " + where)
	takes := between(r, 5*time.Millisecond, 1500*time.Millisecond)
	if e.w.work > 0 {
		takes = e.w.work
	}
	long := between(r, time.Second, 40*time.Second)
	back := simulate.Return{}
	if e.w.faults.hitAt(faultHandler, where+" fails", 0.15) {
		back = simulate.Return{Kind: simulate.KindRetryable, Error: "it failed"}
	}
	if e.w.faults.hitAt(faultHandler, where+" is slow", 0.05) {
		takes = long
	}
	if e.w.faults.hitAt(faultExecutor, e.name+" as "+where+" starts", 0.01) {
		r := e.w.faults.chance("failing " + e.name)
		e.w.after(&e.actor, between(r, 0, 50*time.Millisecond), func() {
			e.fails()
			e.w.after(nil, between(r, 200*time.Millisecond, 10*time.Second), func() { e.w.restartExecutor(e) })
		})
	}
	h.ignores = e.w.faults.hitAt(faultHandler, where+" ignores its context", 0.1)
	if e.w.faults.hitAt(faultHandler, where+" is stuck", 0.03) {
		h.ignores, takes = true, 20*time.Second+2*long
	}
	e.w.after(&e.actor, takes, func() { e.returns(h, back) })
	if !b.Deadline.IsZero() {
		e.w.after(&e.actor, b.Deadline.Sub(e.wall()), func() { e.interrupt(h) })
	}
}

// interrupt ends a handler's context; an obedient one returns soon.
func (e *executor) interrupt(h *handling) {
	if h == nil || h.ended || h.context {
		return
	}
	h.context, h.start.cancelled = true, true
	if !h.ignores {
		soon := between(e.w.faults.chance("cancel "+e.name), 0, 50*time.Millisecond)
		e.w.after(&e.actor, soon, func() {
			e.returns(h, simulate.Return{Kind: simulate.KindRetryable, Error: "context canceled", Interrupted: true})
		})
	}
}

func (e *executor) returns(h *handling, back simulate.Return) {
	if h.ended {
		return
	}
	h.ended = true
	h.start.ended, h.start.succeeded = true, back.Kind == ""
	e.w.trace(e.name, "handler ends", h.key.Execution, h.key.Fence)
	delete(e.handlers, h.key)
	e.apply(e.machine.Returned(e.wall(), h.key, back))
}
