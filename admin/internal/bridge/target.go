// Package bridge answers: how do the gateway, dispatch and the completer speak to each other?
//
// The three do not know each other. Fleet and its targets let dispatch and the completer use
// sessions, and Sink brings them what executors say. Both translate between the frames of
// the wire and the nouns of the rooms.
package bridge

import (
	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// target lets dispatch and completer use a session. Values of it are
// comparable, so that they can group by it.
type target struct {
	s       *gateway.Session
	traced  bool     // this node records traces
	scripts *Scripts // nil where nothing is offered
}

func (t target) InstanceID() domain.InstanceID { return t.s.Instance }
func (t target) Free() int                     { return t.s.Free() }
func (t target) Traits() dispatch.Traits {
	return dispatch.Traits{Name: t.s.Name, Labels: t.s.Labels}
}
func (t target) Load() dispatch.Load {
	slots, cpu, memory := t.s.Load()
	taken, of := t.s.Slots.Taken()
	return dispatch.Load{Slots: slots, CPU: cpu, Memory: memory, Taken: taken, Of: of, Refusing: t.s.Refusing()}
}
func (t target) Idempotent(handler string) bool { return t.s.Idempotent(handler) }
func (t target) Closed() bool                   { return t.s.Closed() }
func (t target) Weight(handler string) int      { return t.s.Slots.Weight(handler) }
func (t target) SendQueueFull() bool            { return t.s.Slots.SendQueueFull() }
func (t target) Spare() int                     { return t.s.Slots.Spare() }
func (t target) Reserve(id domain.ExecutionID, fence int64, weight, input int) bool {
	return t.s.Reserve(int64(id), fence, weight, input)
}
func (t target) Holds(id domain.ExecutionID, fence int64) bool {
	return t.s.Slots.Holds(int64(id), fence)
}
func (t target) Release(id domain.ExecutionID, fence int64) { t.s.Slots.Release(int64(id), fence) }

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
			t.s.Slots.Release(o.ExecutionId, o.Fence)
		}
	}
	if len(out) > 0 {
		t.s.SendOffers(out)
	}
}

// traceOf is the context that a handler begins with. A node that records no traces passes
// on the caller's context. A node that records traces marks the runs that it leaves out, so
// that the executor begins no traces of its own for them.
func (t target) traceOf(e *domain.Execution) domain.Trace {
	switch {
	case !t.traced:
		return e.Trace
	case e.Trace == "":
		return domain.UnrecordedTrace(e.ID)
	case !e.Trace.Sampled():
		return e.Trace
	default:
		return domain.AttemptTrace(e)
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
		Input: proto.CleanJSON(spec.InputOf(e)), TimeoutMs: domain.TimeoutOf(e, spec.Timeout).Milliseconds(), Granted: granted, Cause: string(e.Cause),
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
