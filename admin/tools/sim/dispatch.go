package sim

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// settleCall bounds the comparison of an inventory (as in gateway).
const settleCall = 3 * time.Second

// registered takes a registration: the instance, its inventory, the boots
// before it; then the session stands.
func (n *node) registered(s *session, items []*proto.InventoryItem, older store.SupersedeBootsParams, reply func(*proto.Registered)) {
	if !n.up {
		return
	}
	w := n.w
	s.arrived[0] = w.now
	id := domain.InstanceID(w.newID())
	n.flow(func() {
		instance, err := plain(n, "register", func(d *database) domain.Instance {
			i := d.register(store.RegisterInstanceParams{
				Instance: domain.Instance{ID: id, TenantID: tenant, Executor: executorID, BootID: s.boot, Slots: s.ex.slots}, TTL: proto.LeaseTTL,
			})
			if !slices.Contains(w.instanceOrder, i.ID) {
				w.instanceOrder = append(w.instanceOrder, i.ID)
			}
			return i
		})
		if err != nil {
			return
		}
		s.instance = instance.ID
		verdicts := n.verdicts(s, items)
		_ = n.call("supersede", anyCall, func() { w.db.supersede(older) })
		n.joined(s)
		reply(&proto.Registered{Verdicts: verdicts, LeaseTtlMs: proto.LeaseTTL.Milliseconds()})
	})
}

func (n *node) joined(s *session) {
	for _, old := range slices.Clone(n.sessions) {
		if old.instance == s.instance {
			old.closeNode()
		}
	}
	s.nodeUp, s.heard = true, n.w.now
	n.sessions = append(n.sessions, s)
	n.slotsFreed(s, s.Free())
}

// verdicts compares an inventory with the database. Without an answer
// everything stays as it is.
func (n *node) verdicts(s *session, items []*proto.InventoryItem) []*proto.InventoryVerdict {
	var held []domain.Held
	for _, i := range items {
		h := domain.Held{ID: domain.ExecutionID(i.GetExecutionId()), Fence: i.GetFence(), Phase: domain.HeldRunning}
		switch i.GetPhase() {
		case proto.AttemptPhase_ATTEMPT_PHASE_ACCEPTED:
			h.Phase = domain.HeldAccepted
		case proto.AttemptPhase_ATTEMPT_PHASE_DONE:
			continue
		}
		held = append(held, h)
	}
	if len(held) == 0 {
		return nil
	}
	settled := n.dispatch.SettleInventories(context.Background(), []store.SettleInventoryParams{{
		Tenant: tenant, Executor: executorID, Instance: s.instance, Items: held,
	}})[0]
	if settled.Err != nil {
		return nil
	}
	verdicts := make([]*proto.InventoryVerdict, len(settled.Verdicts))
	for i, v := range settled.Verdicts {
		if v == domain.VerdictGrant {
			n.w.noteSent(n, n.w.db.find(held[i].ID))
		}
		verdicts[i] = &proto.InventoryVerdict{ExecutionId: int64(held[i].ID), Fence: held[i].Fence, Verdict: verdictOf(v)}
	}
	return verdicts
}

func verdictOf(v domain.Verdict) proto.Verdict {
	switch v {
	case domain.VerdictGrant:
		return proto.Verdict_VERDICT_GRANT
	case domain.VerdictDrop:
		return proto.Verdict_VERDICT_DROP
	default:
		return proto.Verdict_VERDICT_KEEP
	}
}

// settle answers an inventory that comes in a session.
func (n *node) settle(s *session, items []*proto.InventoryItem, then func([]*proto.InventoryVerdict)) {
	n.flow(func() { then(n.verdicts(s, items)) })
}

// left takes back what was offered to a session that has ended.
func (n *node) left(s *session) {
	n.sessions = slices.DeleteFunc(n.sessions, func(o *session) bool { return o == s })
	n.takeBack(s)
	n.w.after(&n.actor, returnsIn, func() { n.moveLast(s) })
}

// As in gateway.
const (
	startMargin = 250 * time.Millisecond
	returnsIn   = time.Second
)

// doubtAfter is how long an offer may have no answer, and nothing else be heard.
const doubtAfter = 1300 * time.Millisecond

// hear notes that something came, which ends the doubt.
func (s *session) hear() { s.spoke, s.doubt = s.w.now, false }

// unanswered reports whether an offer has had no answer for too long.
func (s *session) unanswered() bool {
	for _, until := range s.unheard {
		if sent := until - startMargin - proto.OfferGood; s.spoke <= sent && s.w.now-sent > doubtAfter {
			return true
		}
	}
	return false
}

// moveLast is moveUnheard until nothing is left.
func (n *node) moveLast(s *session) {
	if n.moveUnheard(s) {
		n.w.after(&n.actor, startMargin, func() { n.moveLast(s) })
	}
}

// moveUnheard takes back what was offered in one step, as far as nobody has heard
// of it and it cannot start any more; more: some may still start.
func (n *node) moveUnheard(s *session) (more bool) {
	unheard := map[domain.ExecutionID]int64{}
	for k, until := range s.unheard { // in no order: dispatch has one
		if until <= n.w.now {
			unheard[k.id] = k.fence
			delete(s.unheard, k)
		}
	}
	n.dispatch.Unheard(tenant, s.instance, unheard)
	n.stir()
	return len(s.unheard) > 0
}

// takeBack gives back what a session was offered, as far as it did not answer.
func (n *node) takeBack(s *session) {
	offered := map[domain.ExecutionID]int64{}
	for _, k := range s.inflight {
		if !s.oneStep[k] {
			offered[k.id] = k.fence
		}
	}
	n.dispatch.Left(tenant, s.instance, offered)
	n.dispatch.Moved(executorID)
	n.stir()
}

// heartbeat takes one. An instance that runs nothing may rest after every second of them.
func (n *node) heartbeat(s *session, used int, reply func(ok bool, rest time.Duration)) {
	s.heard = n.w.now
	s.hear()
	s.room.Counted(used)
	s.forget(used)
	n.flow(func() {
		rest := time.Duration(0)
		if n.w.faults.chance("rest "+n.name).IntN(2) == 0 && used == 0 && len(s.inflight) == 0 {
			rest = gateway.MaxIdleInterval
		}
		renewal := store.InstanceRenewal{ID: s.instance, Running: used, Quiet: max(0, rest-proto.HeartbeatInterval)}
		ok, err := plain(n, "heartbeat", func(d *database) bool {
			return len(d.renewInstances([]store.InstanceRenewal{renewal}, proto.LeaseTTL)) > 0
		})
		if !ok || err != nil {
			rest, renewal.Quiet = 0, 0
		}
		s.rest = renewal.Quiet
		reply(ok && err == nil, rest)
		if err == nil && !ok {
			s.closeNode()
		}
	})
	if s.Free() > 0 {
		n.slotsFreed(s, s.Free())
	}
}

// room is what the gateway tells of a session that has room for more.
func (n *node) slotsFreed(s *session, more int) { n.dispatch.SlotsFreed(executorID, s.instance, more) }

// answered takes answers to offers (as admin's sink).
func (n *node) answered(s *session, list []*proto.Answer) {
	s.hear()
	freed := 0
	var out []dispatch.Answer
	for _, a := range list {
		id, fence := domain.ExecutionID(a.GetExecutionId()), a.GetFence()
		delete(s.unheard, attemptKey{id, fence})
		switch {
		case a.GetAccepted():
		case a.GetRejectCode() == "busy":
			s.full(attemptKey{id, fence})
		default:
			freed += s.ended(attemptKey{id, fence})
		}
		if a.GetAccepted() && s.oneStep[attemptKey{id, fence}] { // its offer was the grant
			continue
		}
		out = append(out, dispatch.Answer{
			Tenant: tenant, From: s, ID: id, Fence: fence, Accepted: a.GetAccepted(), Code: a.GetRejectCode(), Message: a.GetMessage(),
		})
	}
	n.dispatch.Answered(out...)
	n.lookAtGrants()
	if freed > 0 {
		n.slotsFreed(s, freed)
	}
}

func (n *node) started(s *session, list []*proto.Started) {
	starts := make([]store.Start, len(list))
	for i, m := range list {
		starts[i] = store.Start{
			Tenant: tenant, ID: domain.ExecutionID(m.GetExecutionId()), Fence: m.GetFence(), Instance: s.instance, StartedAt: time.UnixMilli(m.GetStartedAtMs()).UTC(),
		}
	}
	n.completer.Started(starts...)
}

// results takes what came back.
func (n *node) results(s *session, list []*proto.Result) {
	s.hear()
	freed := 0
	out := make([]completer.Result, len(list))
	for i, m := range list {
		delete(s.unheard, attemptKey{domain.ExecutionID(m.GetExecutionId()), m.GetFence()})
		if !m.GetStillRunning() {
			freed += s.ended(attemptKey{domain.ExecutionID(m.GetExecutionId()), m.GetFence()})
		}
		out[i] = completer.Result{AttemptReport: store.AttemptReport{Tenant: tenant, Executor: executorID, Report: gateway.ReportOf(m)}, From: s}
	}
	if n.w.db.rules.ackUnstored {
		acks := make([]completer.Ack, len(out))
		for i, r := range out {
			acks[i] = completer.Ack{ID: r.Report.ExecutionID, Fence: r.Report.Fence, Code: store.FinishStored, StillRunning: r.Report.StillRunning}
		}
		s.SendAcks(acks)
	}
	n.completer.Finished(out...)
	if freed > 0 {
		n.slotsFreed(s, freed)
	}
}
