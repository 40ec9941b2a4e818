package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/disabled"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// The rooms do not know each other. These adapters translate between the
// frames of the gateway and the nouns of dispatch and completer.

// target lets dispatch and completer use a session. Values of it are
// comparable, so that they can group by it.
type target struct {
	s       *gateway.Session
	traced  bool       // this node records traces
	scripts *deliverer // nil where nothing is offered
}

func (t target) InstanceID() domain.InstanceID { return t.s.Instance }
func (t target) Free() int                     { return t.s.Free() }
func (t target) Traits() dispatch.Traits {
	return dispatch.Traits{Name: t.s.Name, Labels: t.s.Labels}
}
func (t target) Load() dispatch.Load {
	slots, cpu, memory := t.s.Load()
	taken, of := t.s.Taken()
	return dispatch.Load{Slots: slots, CPU: cpu, Memory: memory, Taken: taken, Of: of, Refusing: t.s.Refusing()}
}
func (t target) Idempotent(handler string) bool {
	return t.s.Idempotent(handler)
}
func (t target) Closed() bool              { return t.s.Closed() }
func (t target) Weight(handler string) int { return t.s.Weight(handler) }
func (t target) SendQueueFull() bool       { return t.s.SendQueueFull() }
func (t target) Spare() int                { return t.s.Spare() }
func (t target) Reserve(id domain.ExecutionID, fence int64, weight, input int) bool {
	return t.s.Reserve(int64(id), fence, weight, input)
}
func (t target) Holds(id domain.ExecutionID, fence int64) bool { return t.s.Holds(int64(id), fence) }
func (t target) Release(id domain.ExecutionID, fence int64)    { t.s.Release(int64(id), fence) }

func (t target) SendOffers(offers []store.OfferResult) {
	out := make([]*proto.Offer, len(offers))
	for i, o := range offers {
		out[i] = offerFrame(&o.Execution, o.Spec)
		out[i].Traceparent = string(t.traceOf(&o.Execution))
		if o.Again {
			out[i].GoodMs = -1 // the session says what that means to the instance
		}
	}
	if t.scripts != nil {
		var left []*proto.Offer
		out, left = t.scripts.add(out, offers)
		for _, o := range left {
			t.s.Release(o.ExecutionId, o.Fence)
		}
	}
	if len(out) > 0 {
		t.s.SendOffers(out)
	}
}

// traceOf is the context that a handler begins with. A node that records no
// traces passes the caller's on; one that does says so of runs that it does not
// record, so that the executor does not begin traces of its own for them.
func (t target) traceOf(e *domain.Execution) domain.Trace {
	switch {
	case !t.traced:
		return e.Trace
	case e.Trace == "":
		return domain.UnrecordedTrace(e.ID)
	case !e.Trace.Sampled():
		return e.Trace
	default:
		return e.AttemptTrace()
	}
}

func offerFrame(e *domain.Execution, spec *domain.JobSpec) *proto.Offer {
	granted := e.State == domain.Running
	attempt := e.Attempt
	if !granted {
		attempt++ // a grant counts it
	}
	return &proto.Offer{
		ExecutionId: int64(e.ID), Fence: e.Fence, JobId: int64(e.JobID), JobName: spec.Name, Handler: spec.Handler,
		FireAtMs: e.FireAt.UnixMilli(), Attempt: int32(attempt), MaxAttempts: int32(e.MaxAttempts),
		Input: proto.CleanJSON(spec.InputOf(e)), TimeoutMs: e.TimeoutOf(spec.Timeout).Milliseconds(), Granted: granted, Cause: string(e.Cause),
		TenantId: int64(e.TenantID), Note: e.Note, RequestedBy: e.RequestedBy, LogLevel: spec.LogLevel,
		ShardIndex: int32(e.Shard), ShardTotal: int32(e.Shards), Part: partName(e.Part), ParentId: int64(e.Parent),
	}
}

func partName(p domain.Part) string {
	if p == domain.PartNone {
		return ""
	}
	return p.String()
}

func (t target) Drained() bool { return t.s.Drained() }

func (t target) SendGrants(grants []dispatch.Grant) {
	out := make([]*proto.Grant, len(grants))
	for i, g := range grants {
		out[i] = &proto.Grant{ExecutionId: int64(g.ID), Fence: g.Fence, Granted: g.Granted}
	}
	t.s.SendGrants(out)
}

func (t target) SendCancel(e domain.Execution) {
	t.s.SendCancel(&proto.Cancel{
		ExecutionId: int64(e.ID), Fence: e.Fence, Reason: string(e.Reason), Message: e.Message,
	})
}

func (t target) SendAcks(acks []completer.Ack) {
	out := make([]*proto.ResultAck, len(acks))
	for i, a := range acks {
		out[i] = &proto.ResultAck{ExecutionId: int64(a.ID), Fence: a.Fence, Code: string(a.Code), StillRunning: a.StillRunning}
	}
	t.s.SendAcks(out)
}

func (t target) Unacked(n int)    { t.s.Unacked(n) }
func (t target) Unanswered(n int) { t.s.Unanswered(n) }

func (t target) SendStepAcks(acks []completer.StepAck) {
	out := make([]*proto.StepAck, len(acks))
	for i, a := range acks {
		out[i] = &proto.StepAck{
			ExecutionId: int64(a.ID), Fence: a.Fence, Request: a.Request, Code: string(a.Code), Message: a.Message, Output: a.Output,
		}
	}
	t.s.SendStepAcks(out)
}

// fleet is dispatch's view of the gateway.
type fleet struct {
	g        *gateway.Gateway
	disabled *disabled.List
	noFire   bool
	traced   bool
	scripts  *deliverer
}

func (f fleet) Targets(tenant domain.TenantID, executor domain.ExecutorID, handler string) []dispatch.Target {
	if f.noFire || f.disabled.Has(tenant, executor) {
		return nil
	}
	sessions := f.g.Sessions(tenant, executor, handler)
	out := make([]dispatch.Target, len(sessions))
	room := false
	for i, s := range sessions {
		out[i] = target{s, f.traced, f.scripts}
		room = room || s.Free() >= s.Weight(handler)
	}
	if !room {
		f.g.Want(executor) // some of it may be parked at other nodes
	}
	return out
}

func (f fleet) Room(tenant domain.TenantID, executor domain.ExecutorID) (free, slots int) {
	return f.g.Room(tenant, executor)
}

func (f fleet) TargetOf(instance domain.InstanceID) dispatch.Target {
	if s := f.g.SessionOf(instance); s != nil {
		return target{s, f.traced, f.scripts}
	}
	return nil
}

// sink passes on what executors say.
type sink struct {
	store     store.Executions
	dispatch  *dispatch.Dispatcher
	completer *completer.Completer
	reached   func()
	later     func(...domain.Execution)
	log       *slog.Logger
	traced    bool
}

func (k *sink) Joined(s *gateway.Session) { k.dispatch.SlotsFreed(s.Executor, s.Instance, s.Free()) }

// Freed lets as many wait no longer as have left: what was let go before has
// perhaps not reserved its room yet, and would be counted again.
func (k *sink) Freed(s *gateway.Session, n int) { k.dispatch.SlotsFreed(s.Executor, s.Instance, n) }

// Doubted takes back what the instance has not answered, and lets the other
// nodes hear at once how many instances this one reaches.
func (k *sink) Doubted(s *gateway.Session) {
	k.Left(s)
	k.reached()
}

func (k *sink) Left(s *gateway.Session) {
	k.dispatch.Left(s.Tenant, s.Instance, fencesOf(s.Offered()))
	k.dispatch.Moved(s.Executor)
}

// Unheard lets other instances have what is lost at this one.
func (k *sink) Unheard(s *gateway.Session, offered map[int64]int64) {
	k.dispatch.Unheard(s.Tenant, s.Instance, fencesOf(offered))
}

func fencesOf(offered map[int64]int64) map[domain.ExecutionID]int64 {
	out := make(map[domain.ExecutionID]int64, len(offered))
	for id, fence := range offered {
		out[domain.ExecutionID(id)] = fence
	}
	return out
}

// Draining lets those who waited for this instance alone look for another one.
func (k *sink) Draining(s *gateway.Session) { k.dispatch.Moved(s.Executor) }

func (k *sink) SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []domain.SettledInventory {
	return k.dispatch.SettleInventories(ctx, list)
}

// EndOrphans tells waiters, limits and the timer which attempts have ended. With an error
// these are the attempts of the transactions before it.
func (k *sink) EndOrphans(ctx context.Context, p store.EndOrphansParams) error {
	out, err := k.store.EndOrphans(ctx, p)
	var left, returned []domain.Execution
	for _, e := range out.Ended {
		k.log.Warn("attempt ended that its instance does not have", "component", "history", "execution_id", e.ID,
			"instance_id", p.Instance, "fence", e.Fence, "state", e.State)
		switch {
		case !e.ReturnedAt.IsZero():
			returned = append(returned, e)
			continue
		case e.State == domain.RetryWait:
			k.later(e)
		}
		left = append(left, e)
	}
	k.later(out.Woken...)
	k.completer.Ended(left)
	k.dispatch.Freed(returned)
	return err
}

func (k *sink) Answered(s *gateway.Session, answers []*proto.Answer) {
	out := make([]dispatch.Answer, 0, len(answers))
	for _, a := range answers {
		if a.Accepted && s.Granted(a.ExecutionId, a.Fence) {
			continue // its offer was the grant
		}
		out = append(out, dispatch.Answer{
			Tenant: s.Tenant, From: target{s: s, traced: k.traced}, ID: domain.ExecutionID(a.ExecutionId), Fence: a.Fence,
			Accepted: a.Accepted, Code: a.RejectCode, Message: a.Message,
		})
	}
	k.dispatch.Answered(out...)
}

func (k *sink) Started(s *gateway.Session, list []*proto.Started) {
	out := make([]store.Start, len(list))
	for i, m := range list {
		out[i] = store.Start{
			Tenant: s.Tenant, ID: domain.ExecutionID(m.ExecutionId), Fence: m.Fence,
			Instance: s.Instance, StartedAt: time.UnixMilli(m.StartedAtMs).UTC(),
		}
	}
	k.completer.Started(out...)
}

func (k *sink) Finished(s *gateway.Session, list []*proto.Result) {
	out := make([]completer.Result, 0, len(list))
	for _, r := range list {
		out = append(out, completer.Result{
			AttemptReport: store.AttemptReport{Tenant: s.Tenant, Executor: s.Executor, Report: gateway.ReportOf(r)},
			From:          target{s: s, traced: k.traced},
		})
	}
	k.completer.Finished(out...)
}

func (k *sink) Progress(s *gateway.Session, list []*proto.Progress) {
	out := make([]store.ProgressReport, len(list))
	for i, p := range list {
		out[i] = store.ProgressReport{Tenant: s.Tenant, Executor: s.Executor, Progress: domain.Progress{
			ExecutionID: domain.ExecutionID(p.ExecutionId), Fence: p.Fence, Seq: p.Seq,
			Permille: int(max(0, min(p.Permille, 1000))), Message: p.Message,
		}}
	}
	k.completer.Progressed(out...)
}

func (k *sink) Steps(s *gateway.Session, list []*proto.Step) {
	out := make([]completer.Step, len(list))
	for i, m := range list {
		out[i] = completer.Step{
			StepRequest: store.StepRequest{
				Tenant: s.Tenant, Executor: s.Executor, ID: domain.ExecutionID(m.ExecutionId), Fence: m.Fence,
				Name: m.Name, Store: m.Action == proto.StepAction_STEP_ACTION_STORE, Output: m.Output,
			},
			Request: m.Request, From: target{s: s},
		}
	}
	k.completer.Asked(out...)
}
