package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// registered takes a registration: the instance, its inventory, the boots
// before it; then the session stands.
func (n *node) registered(s *session, items []*proto.InventoryItem, older store.SupersedeBootsParams, reply func(*proto.Registered)) {
	w := n.w
	id := domain.InstanceID(w.newID())
	var instance domain.Instance
	n.tx("register", anyCall, func() {
		instance = w.db.register(store.RegisterInstanceParams{
			Instance: domain.Instance{ID: id, TenantID: tenant, Executor: executorID, BootID: s.boot, Slots: s.ex.slots}, TTL: proto.LeaseTTL,
		})
		if !slices.Contains(w.instanceOrder, instance.ID) {
			w.instanceOrder = append(w.instanceOrder, instance.ID)
		}
	}, func(err error) {
		if err != nil {
			return
		}
		s.instance = instance.ID
		n.settle(s, items, func(verdicts []*proto.InventoryVerdict) {
			n.tx("supersede", anyCall, func() {
				w.db.supersede(older)
			}, func(error) {
				n.joined(s)
				reply(&proto.Registered{Verdicts: verdicts, LeaseTtlMs: proto.LeaseTTL.Milliseconds()})
			})
		})
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
	n.room()
}

// settle compares an inventory with the database. Without an answer everything
// stays as it is.
func (n *node) settle(s *session, items []*proto.InventoryItem, then func([]*proto.InventoryVerdict)) {
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
		then(nil)
		return
	}
	var settled []store.SettledItem
	n.tx("settle", 3*time.Second, func() {
		settled = n.w.db.settle(store.SettleInventoryParams{Tenant: tenant, Executor: executorID, Instance: s.instance, Items: held})
	}, func(err error) {
		if err != nil {
			then(nil)
			return
		}
		verdicts := make([]*proto.InventoryVerdict, len(settled))
		for i, v := range settled {
			verdicts[i] = &proto.InventoryVerdict{ExecutionId: int64(held[i].ID), Fence: held[i].Fence, Verdict: verdictOf(v.Verdict)}
			if v.GivenBack {
				n.later(v.Execution)
			}
		}
		then(verdicts)
	})
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

// left takes back what was offered to a session that has ended.
func (n *node) left(s *session) {
	n.sessions = slices.DeleteFunc(n.sessions, func(o *session) bool { return o == s })
	n.takeBack(s)
}

// takeBack gives back what a session was offered, as far as it did not answer.
func (n *node) takeBack(s *session) {
	var items []store.GiveBack
	for _, k := range s.inflight {
		if !s.oneStep[k] {
			items = append(items, store.GiveBack{Tenant: tenant, ID: k.id, Fence: k.fence, Instance: s.instance, Reason: domain.ReasonSessionLost})
		}
	}
	n.giveBack(items)
}

func (n *node) heartbeat(s *session, used int, reply func(ok bool)) {
	s.heard, s.reported, s.doubt = n.w.now, used, false
	s.forget()
	ok := false
	n.tx("heartbeat", anyCall, func() {
		ok = len(n.w.db.renewInstances([]store.InstanceRenewal{{ID: s.instance, Running: used}}, proto.LeaseTTL)) > 0
	}, func(err error) {
		reply(ok && err == nil)
		if err == nil && !ok {
			s.closeNode()
		}
	})
	n.room()
}

// fire takes an execution that is due.
func (n *node) fire(e domain.Execution) {
	n.due = append(n.due, e)
	if len(n.due) == 1 {
		n.w.after(&n.actor, between(n.w.faults.chance("batch "+n.name), 0, 2*time.Millisecond), n.offer)
	}
}

type choice struct {
	e domain.Execution
	s *session
}

// offer sends out what is due, as far as there is room.
func (n *node) offer() {
	due := n.due
	n.due = nil
	var chosen []choice
	var offers []store.Offer
	var waits []store.Wait
	for _, e := range due {
		if slices.ContainsFunc(n.sessions, func(s *session) bool { return s.holds(attemptKey{e.ID, e.Fence + 1}) }) {
			continue
		}
		s := n.choose()
		if s == nil {
			w := store.Wait{Tenant: tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, For: 10 * time.Second}
			if n.reached() == 0 {
				w.For = 250 * time.Millisecond
			}
			waits = append(waits, w)
			if !slices.ContainsFunc(n.waiting, func(o domain.Execution) bool { return o.ID == e.ID }) {
				n.waiting = append(n.waiting, e)
			}
			continue
		}
		s.reserve(attemptKey{e.ID, e.Fence + 1})
		safe := n.w.db.jobs[e.JobID].spec.Handler == handlerSafe
		chosen = append(chosen, choice{e, s})
		offers = append(offers, store.Offer{Tenant: tenant, ID: e.ID, Node: n.id, Instance: s.instance, Idempotent: safe, Granted: safe})
	}
	if len(offers) > 0 {
		var results []store.OfferResult
		n.tx("offer", anyCall, func() { results = n.w.db.offer(offers) }, func(err error) { n.offered(chosen, results, err) })
	}
	if len(waits) > 0 {
		var covered []domain.Execution
		n.tx("wait", anyCall, func() { covered = n.w.db.wait(waits) }, func(err error) {
			if err == nil {
				for _, e := range covered {
					n.sendCancel(e)
				}
			}
			n.room()
		})
	}
}

func (n *node) choose() *session {
	var free []*session
	for _, s := range n.sessions {
		if s.free() > 0 && !s.doubt {
			free = append(free, s)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return oneOf(n.w.faults.chance("routing "+n.name), free...)
}

func (n *node) offered(chosen []choice, results []store.OfferResult, err error) {
	r := n.w.faults.chance("pause " + n.name)
	for i, c := range chosen {
		reserved := attemptKey{c.e.ID, c.e.Fence + 1}
		if err != nil {
			c.s.ended(reserved)
			c.e.NotBefore = n.now().Add(300*time.Millisecond + between(r, 0, 400*time.Millisecond))
			n.later(c.e)
			continue
		}
		for _, e := range results[i].Covered {
			n.sendCancel(e)
		}
		e := results[i].Execution
		if results[i].Status != store.OfferMade {
			c.s.ended(reserved)
			if results[i].Status == store.OfferGone && !e.State.Terminal() && e.NotBefore.After(n.now()) {
				n.later(e)
			}
			continue
		}
		key := attemptKey{e.ID, e.Fence}
		if key != reserved {
			c.s.ended(reserved)
			c.s.reserve(key)
		}
		n.sendOffer(c.s, results[i])
	}
	n.room()
}

func (n *node) sendOffer(s *session, r store.OfferResult) {
	e := r.Execution
	if !s.nodeUp {
		return
	}
	granted := e.State == domain.Running
	if granted {
		s.oneStep[attemptKey{e.ID, e.Fence}] = true
	}
	o := &proto.Offer{
		ExecutionId: int64(e.ID), Fence: e.Fence, JobId: int64(e.JobID), Handler: r.Spec.Handler,
		Attempt: int32(e.Attempt), TimeoutMs: r.Spec.Timeout.Milliseconds(), Granted: granted,
	}
	s.send(&s.toExecutor, &s.ex.actor, &s.exUp, "offer", func() {
		s.ex.apply(s.ex.machine.Offers(s.ex.wall(), s, []*proto.Offer{o}, s.ex.diskErr))
	})
}

// resend sends one-step offers again whose start nobody has reported.
func (n *node) resend(list []store.OfferResult) {
	for _, r := range list {
		for _, s := range slices.Clone(n.sessions) {
			if s.instance == r.Execution.Instance {
				s.reserve(attemptKey{r.Execution.ID, r.Execution.Fence})
				n.sendOffer(s, r)
			}
		}
	}
}

func (n *node) sendCancel(e domain.Execution) {
	for _, s := range slices.Clone(n.sessions) { // sending may end one
		if s.instance == e.Instance && e.State.OnInstance() || s.instance == e.Instance && e.State == domain.TimedOut {
			c := &proto.Cancel{ExecutionId: int64(e.ID), Fence: e.Fence}
			s.send(&s.toExecutor, &s.ex.actor, &s.exUp, "cancel", func() {
				s.ex.apply(s.ex.machine.Cancels(s.ex.wall(), []*proto.Cancel{c}))
			})
		}
	}
}

// answered takes the answers to offers.
func (n *node) answered(s *session, answers []*proto.Answer) {
	var grants []store.GrantRequest
	var backs []store.GiveBack
	for _, a := range answers {
		k := attemptKey{domain.ExecutionID(a.GetExecutionId()), a.GetFence()}
		switch {
		case a.GetRejectCode() == "duplicate", a.GetRejectCode() == "void": // it is there, or a result tells (as in admin)
		case a.GetAccepted() && s.oneStep[k]:
		case a.GetAccepted():
			grants = append(grants, store.GrantRequest{Tenant: tenant, ID: k.id, Fence: k.fence, Instance: s.instance})
		default:
			s.ended(k)
			backs = append(backs, store.GiveBack{
				Tenant: tenant, ID: k.id, Fence: k.fence, Instance: s.instance, Reason: domain.ReasonOfferRefused,
				Message: a.GetRejectCode(), Wait: 200 * time.Millisecond, Refused: true,
			})
		}
	}
	n.giveBack(backs)
	if len(grants) == 0 {
		return
	}
	var results []store.GrantResult
	n.tx("grant", anyCall, func() { results = n.w.db.grant(grants) }, func(err error) {
		if err != nil {
			return // the executor gives it back, or asks
		}
		out := make([]*proto.Grant, len(results))
		for i, r := range results {
			out[i] = &proto.Grant{ExecutionId: int64(grants[i].ID), Fence: grants[i].Fence, Granted: r.Granted}
			if !r.Granted {
				s.ended(attemptKey{grants[i].ID, grants[i].Fence})
			}
		}
		s.send(&s.toExecutor, &s.ex.actor, &s.exUp, "grant", func() { s.ex.apply(s.ex.machine.Grants(s.ex.wall(), s, out)) })
		n.room()
	})
}

func (n *node) giveBack(items []store.GiveBack) {
	if len(items) == 0 {
		return
	}
	var results []store.OfferResult
	n.tx("give back", anyCall, func() { results = n.w.db.giveBack(items) }, func(err error) {
		for _, r := range results {
			if err == nil && r.Status != store.OfferGone {
				n.later(r.Execution)
			}
		}
		n.room()
	})
}

func (n *node) started(s *session, list []*proto.Started) {
	starts := make([]store.Start, len(list))
	for i, m := range list {
		starts[i] = store.Start{
			Tenant: tenant, ID: domain.ExecutionID(m.GetExecutionId()), Fence: m.GetFence(), Instance: s.instance, StartedAt: time.UnixMilli(m.GetStartedAtMs()).UTC(),
		}
	}
	n.tx("start", anyCall, func() { n.w.db.start(starts) }, func(error) {})
}

// results stores what came back and acknowledges it, in this order.
func (n *node) results(s *session, list []*proto.Result) {
	reports := make([]store.AttemptReport, len(list))
	acks := make([]*proto.ResultAck, len(list))
	for i, m := range list {
		if !m.GetStillRunning() {
			s.ended(attemptKey{domain.ExecutionID(m.GetExecutionId()), m.GetFence()})
		}
		acks[i] = &proto.ResultAck{ExecutionId: m.GetExecutionId(), Fence: m.GetFence(), StillRunning: m.GetStillRunning()}
		reports[i] = store.AttemptReport{Tenant: tenant, Executor: executorID, Report: gateway.ReportOf(m)}
	}
	ack := func() {
		s.send(&s.toExecutor, &s.ex.actor, &s.exUp, "ack", func() {
			n.w.checkAcked(reports)
			s.ex.apply(s.ex.machine.Acks(s.ex.wall(), acks))
		})
	}
	if n.w.db.rules.ackUnstored {
		ack()
	}
	n.finish(s, reports, ack)
	n.room()
}

func (n *node) finish(s *session, reports []store.AttemptReport, ack func()) {
	var results []store.FinishResult
	n.tx("finish", anyCall, func() { results = n.w.db.finish(reports) }, func(err error) {
		if err != nil {
			if s.nodeUp {
				n.w.after(&n.actor, 500*time.Millisecond, func() { n.finish(s, reports, ack) })
			}
			return
		}
		for _, r := range results {
			if r.Execution.State == domain.RetryWait || r.Execution.State == domain.Due {
				n.later(r.Execution)
			}
			n.later(r.Woken...)
		}
		ack()
	})
}

// room fires those that wait for it, as many as there is room for.
func (n *node) room() {
	free := 0
	for _, s := range n.sessions {
		if !s.doubt {
			free += max(s.free(), 0)
		}
	}
	for range min(free, len(n.waiting)) {
		e := n.waiting[0]
		n.waiting = n.waiting[1:]
		n.fire(e)
	}
}
