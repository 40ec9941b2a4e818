package runner

import (
	"slices"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// Core is the machine of a Runner without its goroutines, clock, disk and
// handlers: every event brings the time, and every effect comes back. It is
// for simulation (package simulate). It is not safe for concurrent use.
type Core struct{ m *machine }

// Effect is what an event leads to, to be carried out in order. Exactly one
// group is set.
type Effect struct {
	Link    Link
	Answers []*proto.Answer
	Started []*proto.Started
	Results []*proto.Result
	Ask     []*proto.InventoryItem

	// Records go to the journal. Written, unless nil, is the event that they
	// would survive the process, Durable that they are on the disk, or could not
	// be written.
	Records []journal.Record
	Written func(now time.Time) []Effect
	Durable func(now time.Time, err error) []Effect

	// Start calls the handler of an offer; its end is Core.Returned.
	Start *Begin
	// Cancel names a running attempt whose context has to be cancelled.
	Cancel *Key

	Exit bool // the process has to end
}

// Begin is a handler to be called.
type Begin struct {
	Key      Key
	Offer    *proto.Offer
	Deadline time.Time // of its context; zero = none
}

// NewCore returns a Core that has taken over what earlier processes left.
func NewCore(boot string, limits Limits, known func(handler string) bool, found []journal.Entry) *Core {
	c := &Core{newMachine(boot, limits, known)}
	c.m.recover(found)
	return c
}

// step lets the machine see one event and translates what it decided.
func (c *Core) step(event func(m *machine)) []Effect {
	event(c.m)
	out := make([]Effect, 0, len(c.m.effects))
	for _, e := range c.m.effects {
		if e.lost {
			continue // a line in the log
		}
		x := Effect{
			Link: e.link, Answers: slices.Concat(e.answers, e.accepts), Started: e.started, Results: e.results, Ask: e.ask,
			Records: e.records, Exit: e.exit,
		}
		if written := e.written; written != nil {
			x.Written = func(now time.Time) []Effect {
				return c.step(func(*machine) { written(now) })
			}
		}
		if done := e.done; done != nil {
			x.Durable = func(now time.Time, err error) []Effect {
				return c.step(func(*machine) { done(now, err) })
			}
		}
		if a := e.start; a != nil {
			x.Start = &Begin{Key: a.key, Offer: a.offer, Deadline: a.deadline}
		}
		if a := e.cancel; a != nil {
			x.Cancel = &Key{a.key.Execution, a.key.Fence}
		}
		out = append(out, x)
	}
	c.m.forgetEffects()
	return out
}

// Offers, Grants, Cancels, Acks and Verdicts are what a session received;
// journalErr says why the journal takes nothing, or is nil.
func (c *Core) Offers(now time.Time, link Link, list []*proto.Offer, journalErr error) []Effect {
	return c.step(func(m *machine) { m.offers(now, link, list, journalErr) })
}

func (c *Core) Grants(now time.Time, link Link, list []*proto.Grant) []Effect {
	return c.step(func(m *machine) { m.grants(now, link, list) })
}

func (c *Core) Cancels(now time.Time, list []*proto.Cancel) []Effect {
	return c.step(func(m *machine) { m.cancels(now, list) })
}

func (c *Core) Acks(now time.Time, list []*proto.ResultAck) []Effect {
	return c.step(func(m *machine) { m.acks(now, list) })
}

func (c *Core) Verdicts(now time.Time, link Link, list []*proto.InventoryVerdict) []Effect {
	return c.step(func(m *machine) { m.verdicts(now, link, list) })
}

// LinkUp and LinkDown are the two ends of a session, Renewed a heartbeat that
// was answered; sentAt is when the registration or the heartbeat was sent.
func (c *Core) LinkUp(now time.Time, link Link, sentAt time.Time, reply *proto.Registered) []Effect {
	return c.step(func(m *machine) { m.linkUp(now, link, sentAt, reply) })
}

func (c *Core) LinkDown(now time.Time, link Link) []Effect {
	return c.step(func(m *machine) { m.linkDown(now, link) })
}

func (c *Core) Renewed(link Link, sentAt time.Time, ok bool) []Effect {
	return c.step(func(m *machine) { m.renewed(link, sentAt, ok) })
}

// Tick is the event that time passed; a Runner sends it ten times a second.
func (c *Core) Tick(now time.Time) []Effect {
	return c.step(func(m *machine) { m.tick(now) })
}

// Drain is the event that the process stops soon, Stop that it interrupts what
// still runs.
func (c *Core) Drain() []Effect { return c.step(func(m *machine) { m.drain() }) }

func (c *Core) Stop(now time.Time) []Effect { return c.step(func(m *machine) { m.stop(now) }) }

// Returned is the event that the handler of a Begin came back.
func (c *Core) Returned(now time.Time, k Key, back Return) []Effect {
	return c.step(func(m *machine) {
		a := m.attempts[k]
		result := m.returned(now, a, back)
		body, err := gproto.Marshal(result)
		if err != nil {
			panic(err) // only invalid UTF-8 can fail, and clip removed it
		}
		m.write(a, result, body)
	})
}

// Inventory, Inherited and Load are what a registration and a heartbeat tell.
func (c *Core) Inventory() (items []*proto.InventoryItem, complete bool) {
	return c.m.attempts.inventory(c.m.boot)
}
func (c *Core) Load() (used int) { return c.m.used }
func (c *Core) Inherited() (items []*proto.InventoryItem, all bool) {
	return c.m.attempts.inherited(c.m.boot)
}

// Owed is how many attempts an admin node still has to hear about.
func (c *Core) Owed() int { return c.m.attempts.owed() }
