package sim

import (
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/proto"
)

// session is one connection between an executor and a node, with what each
// side knows of it. A side that is not up has never stood, or has ended.
type session struct {
	w    *world
	name string
	node *node
	ex   *executor

	toNode, toExecutor pipe

	// The node's side.
	nodeUp   bool
	boot     string
	instance domain.InstanceID
	inflight []attemptKey
	flights  []flight // of them
	oneStep  map[attemptKey]bool
	leases   map[attemptKey]int64         // of the reservations: leased, then
	leased   int64                        // the last heartbeat that renewed the lease
	arrived  map[int64]time.Duration      // when each heartbeat came; 0 is the registration
	unheard  map[attemptKey]time.Duration // one-step offers without an answer: until when they may start
	room     gateway.Occupancy
	heard    time.Duration // when the last heartbeat came
	spoke    time.Duration // when anything came
	doubt    bool          // that was too long ago for more offers
	rest     time.Duration // how much later than usual the next one may come

	// The executor's side.
	exUp     bool
	seq      int64
	beats    []beat              // without an answer
	beatAt   map[int64]time.Time // from when the lease counts that each renewed, by the executor's clock; 0 is the registration
	beatSent map[int64]time.Time // when each was sent
	sentAt   time.Duration
	last     time.Duration // when the last heartbeat was sent
	resting  bool          // the node wants none for a while
	stirred  bool          // something was offered since the last one
	alarm    uint64        // of the next one
}

// flight is what an attempt that was offered has at its executor.
type flight struct {
	since  time.Duration // of the reservation
	weight int           // slots
	beat   int64         // Occupancy's, then
}

type beat struct {
	seq int64
	at  time.Duration
}

// pipe is one direction of a session: what is sent first comes first.
type pipe struct {
	name string
	last time.Duration
}

// The machine names sessions; what goes through them comes as effects.
func (*session) Answer([]*proto.Answer)     {}
func (*session) Accept([]*proto.Answer)     {}
func (*session) Started([]*proto.Started)   {}
func (*session) Results([]*proto.Result)    {}
func (*session) Ask([]*proto.InventoryItem) {}

// LeaseFrom implements simulate.Link.
func (s *session) LeaseFrom(seq int64) (from, sent time.Time) { return s.beatAt[seq], s.beatSent[seq] }

func (w *world) newSession(n *node, e *executor) *session {
	link := n.name + e.name
	s := &session{
		w: w, name: link, node: n, ex: e, boot: e.boot, oneStep: map[attemptKey]bool{},
		leases: map[attemptKey]int64{}, beatAt: map[int64]time.Time{}, beatSent: map[int64]time.Time{},
		arrived: map[int64]time.Duration{}, unheard: map[attemptKey]time.Duration{},
		toNode: pipe{name: e.name + ">" + n.name}, toExecutor: pipe{name: n.name + ">" + e.name},
	}
	s.room.SetSlots(e.slots)
	return s
}

// send lets f happen at the other side, if the session still stands there.
func (s *session) send(p *pipe, to *actor, up *bool, what string, f func()) {
	w := s.w
	w.trace(p.name, what, 0, 0)
	if w.faults.hit(faultDrop, p.name) {
		return
	}
	if w.faults.hitAt(faultReset, p.name, w.faults.rate[faultReset]/4) {
		s.closeNode()
		s.closeExecutor()
		return
	}
	times := 1
	if w.faults.hit(faultDuplicate, p.name) {
		times = 2
	}
	for range times {
		w.after(to, s.delay(p), func() {
			if !*up {
				s.broken(to)
				return
			}
			f()
		})
	}
}

// delay is how long a message takes from now.
func (s *session) delay(p *pipe) time.Duration {
	w, r := s.w, s.w.faults.chance("latency "+p.name)
	at := w.now + between(r, 100*time.Microsecond, 3*time.Millisecond)
	extra := between(r, 50*time.Millisecond, 8*time.Second)
	if w.faults.hit(faultDelay, p.name) {
		at += extra
	}
	if until := w.cuts[p.name]; until > w.now { // it is sent again when the path is back
		at = max(at, until+between(r, 0, 200*time.Millisecond))
	}
	if !w.faults.hit(faultReorder, p.name) {
		at = max(at, p.last+1)
		p.last = at
	}
	return at - w.now
}

// broken answers what comes for a side that is not there: the sender hears of it.
func (s *session) broken(to *actor) {
	if to == &s.node.actor {
		s.closeExecutor()
	} else {
		s.closeNode()
	}
}

// farewell lets the other side hear that this one has ended, unless nothing
// passes.
func (s *session) farewell(p *pipe, to *actor, close func()) {
	s.w.after(to, s.delay(p), close)
}

func (s *session) closeNode() {
	if !s.nodeUp {
		return
	}
	s.nodeUp = false
	s.w.trace(s.name, "node closes", 0, 0)
	if s.node.up {
		s.node.left(s)
	}
	s.farewell(&s.toExecutor, &s.ex.actor, s.closeExecutor)
}

func (s *session) closeExecutor() {
	if s.ex.links[s.node.index] == s {
		s.ex.links[s.node.index] = nil
	}
	if !s.exUp {
		return
	}
	s.exUp = false
	s.w.trace(s.name, "executor closes", 0, 0)
	if s.ex.alive && s.ex.boot == s.boot {
		s.ex.apply(s.ex.machine.LinkDown(s.ex.wall(), s))
	}
	s.farewell(&s.toNode, &s.node.actor, s.closeNode)
}

func bootName(name string, life int) string { return name + "." + strconv.Itoa(life) }

// forget drops reservations that a lost message left behind. In a real session
// no message is lost alone.
func (s *session) forget(used int) {
	for len(s.flights) > 0 && s.w.now-s.flights[0].since > 15*time.Second && s.taken() > used {
		s.room.Drop(s.flights[0].beat, s.flights[0].weight)
		s.inflight, s.flights = s.inflight[1:], s.flights[1:]
	}
}
