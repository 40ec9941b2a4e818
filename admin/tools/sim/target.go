package sim

import (
	"math"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// A session is dispatch.Target and completer.Acker, as gateway.Session with the
// adapters of package admin.

func (s *session) InstanceID() domain.InstanceID  { return s.instance }
func (s *session) Idempotent(handler string) bool { return handler == handlerSafe }
func (s *session) Traits() dispatch.Traits        { return dispatch.Traits{Name: s.ex.name} }
func (s *session) Load() dispatch.Load {
	return dispatch.Load{Slots: 1000 * s.room.Occupied() / s.ex.slots}
}
func (s *session) Closed() bool        { return !s.nodeUp }
func (s *session) Unacked(int)         {}
func (s *session) Spare() int          { return math.MaxInt32 }
func (s *session) SendQueueFull() bool { return false }
func (s *session) Free() int           { return s.room.Free() }

// taken is how many slots its attempts in flight have.
func (s *session) taken() (n int) {
	for _, f := range s.flights {
		n += f.weight
	}
	return n
}

func (s *session) Weight(handler string) int { return min(weightOf(handler), s.ex.slots) }

func (s *session) Holds(id domain.ExecutionID, fence int64) bool {
	return slices.Contains(s.inflight, attemptKey{id, fence})
}

func (s *session) Reserve(id domain.ExecutionID, fence int64, weight, _ int) bool {
	if !s.nodeUp || s.Free() < weight {
		return false
	}
	s.leases[attemptKey{id, fence}] = s.leased
	if !s.Holds(id, fence) {
		s.inflight, s.flights = append(s.inflight, attemptKey{id, fence}), append(s.flights, flight{s.w.now, weight, s.room.Take(weight)})
	}
	return true
}

func (s *session) Release(id domain.ExecutionID, fence int64) { s.ended(attemptKey{id, fence}) }

// ended forgets an attempt, and returns how many slots it had.
func (s *session) ended(k attemptKey) (freed int) {
	if i := slices.Index(s.inflight, k); i >= 0 {
		freed = s.flights[i].weight
		s.room.End(s.flights[i].beat, freed)
		s.inflight, s.flights = slices.Delete(s.inflight, i, i+1), slices.Delete(s.flights, i, i+1)
	}
	return freed
}

// full forgets an attempt that the executor has no room for.
func (s *session) full(k attemptKey) {
	weight := 0
	if i := slices.Index(s.inflight, k); i >= 0 {
		weight = s.flights[i].weight
		s.room.Drop(s.flights[i].beat, weight)
		s.inflight, s.flights = slices.Delete(s.inflight, i, i+1), slices.Delete(s.flights, i, i+1)
	}
	s.room.Full(weight)
}

func (s *session) SendOffers(offers []store.OfferResult) {
	frames := make([]*proto.Offer, len(offers))
	for i, r := range offers {
		e, spec := &r.Execution, r.Spec
		granted := e.State == domain.Running
		attempt := e.Attempt
		if granted {
			s.w.noteSent(s.node, e)
			if k := (attemptKey{e.ID, e.Fence}); s.Holds(k.id, k.fence) {
				s.oneStep[k] = true
			}
		} else {
			attempt++ // a grant counts it
		}
		frames[i] = &proto.Offer{
			ExecutionId: int64(e.ID), Fence: e.Fence, JobId: int64(e.JobID), Handler: spec.Handler,
			Attempt: int32(attempt), TimeoutMs: domain.TimeoutOf(e, spec.Timeout).Milliseconds(), Granted: granted,
			LeaseSeq: s.leaseOf(attemptKey{e.ID, e.Fence}),
		}
		if granted {
			s.bound(frames[i], attemptKey{e.ID, e.Fence}, r.Again)
		}
	}
	s.tell("offers", func() {
		s.ex.apply(s.ex.machine.Offers(s.ex.wall(), s, frames, s.ex.diskErr))
		s.ex.stir()
	})
}

// bound is gateway.Session's: until when a one-step offer may start.
func (s *session) bound(o *proto.Offer, k attemptKey, again bool) {
	if o.GoodMs = -1; !again {
		o.GoodMs = (s.w.now - s.arrived[o.LeaseSeq] + proto.OfferGood).Milliseconds()
		s.unheard[k] = s.w.now + proto.OfferGood + startMargin
	}
	if s.w.db.rules.startOld {
		o.GoodMs = 0
	}
}

// leaseOf is what an offer carries as its lease.
func (s *session) leaseOf(k attemptKey) int64 {
	if seq, reserved := s.leases[k]; reserved {
		return seq
	}
	return s.leased
}

// Drained is false, because the simulator drains no instance from outside.
func (s *session) Drained() bool { return false }

func (s *session) SendGrants(grants []dispatch.Grant) {
	frames := make([]*proto.Grant, len(grants))
	for i, g := range grants {
		if !g.Granted {
			s.ended(attemptKey{g.ID, g.Fence})
		} else {
			s.w.noteSent(s.node, s.w.db.find(g.ID))
		}
		frames[i] = &proto.Grant{ExecutionId: int64(g.ID), Fence: g.Fence, Granted: g.Granted}
	}
	s.tell("grants", func() { s.ex.apply(s.ex.machine.Grants(s.ex.wall(), s, frames)) })
}

func (s *session) SendAcks(acks []completer.Ack) {
	frames := make([]*proto.ResultAck, len(acks))
	for i, a := range acks {
		frames[i] = &proto.ResultAck{ExecutionId: int64(a.ID), Fence: a.Fence, Code: string(a.Code), StillRunning: a.StillRunning}
	}
	s.tell("acks", func() {
		s.w.checkAcked(s.ex, acks)
		s.ex.apply(s.ex.machine.Acks(s.ex.wall(), frames))
	})
}

func (s *session) SendCancel(e domain.Execution) {
	c := &proto.Cancel{ExecutionId: int64(e.ID), Fence: e.Fence, Reason: string(e.Reason), Message: e.Message}
	s.tell("cancel", func() { s.ex.apply(s.ex.machine.Cancels(s.ex.wall(), []*proto.Cancel{c})) })
}

// tell sends a frame to the executor, while this side of the session stands.
func (s *session) tell(what string, f func()) {
	if s.nodeUp {
		s.send(&s.toExecutor, &s.ex.actor, &s.exUp, what, f)
	}
}
