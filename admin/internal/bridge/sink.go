package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Sink passes on what executors say.
type Sink struct {
	Store interface {
		EndOrphans(ctx context.Context, p store.EndOrphansParams) (store.EndedOrphans, error)
	}
	Dispatch  *dispatch.Dispatcher // set before the gateway serves
	Completer *completer.Completer
	// Reached is called when this node may reach fewer executors.
	Reached func()
	// Later takes executions that may be offered again at their NotBefore.
	Later  func(...domain.Execution)
	Logger *slog.Logger
	Traced bool // this node records traces
}

// Joined implements gateway.Sink, as the following methods do.
func (k *Sink) Joined(s *gateway.Session) { k.Dispatch.SlotsFreed(s.Executor, s.Instance, s.Free()) }

// Freed lets as many wait no longer as have left: what was let go before has
// perhaps not reserved its room yet, and would be counted again.
func (k *Sink) Freed(s *gateway.Session, n int) { k.Dispatch.SlotsFreed(s.Executor, s.Instance, n) }

// Doubted takes back what the instance has not answered, and lets the other
// nodes hear at once how many instances this one reaches.
func (k *Sink) Doubted(s *gateway.Session) {
	k.Left(s)
	k.Reached()
}

func (k *Sink) Left(s *gateway.Session) {
	k.Dispatch.Left(s.Tenant, s.Instance, fencesOf(s.Slots.Offered()))
	k.Dispatch.Moved(s.Executor)
}

// Unheard lets other instances have what is lost at this one.
func (k *Sink) Unheard(s *gateway.Session, offered map[int64]int64) {
	k.Dispatch.Unheard(s.Tenant, s.Instance, fencesOf(offered))
}

func fencesOf(offered map[int64]int64) map[domain.ExecutionID]int64 {
	out := make(map[domain.ExecutionID]int64, len(offered))
	for id, fence := range offered {
		out[domain.ExecutionID(id)] = fence
	}
	return out
}

// Draining lets runs that waited for this instance alone look for another one.
func (k *Sink) Draining(s *gateway.Session) { k.Dispatch.Moved(s.Executor) }

func (k *Sink) SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []domain.SettledInventory {
	return k.Dispatch.SettleInventories(ctx, list)
}

// EndOrphans tells waiters, limits and the timer which attempts have ended. With an error
// these are the attempts of the transactions before it.
func (k *Sink) EndOrphans(ctx context.Context, p store.EndOrphansParams) error {
	out, err := k.Store.EndOrphans(ctx, p)
	var left, returned []domain.Execution
	for _, e := range out.Ended {
		k.Logger.Warn("attempt ended that its instance does not have", "component", "history", "execution_id", e.ID,
			"instance_id", p.Instance, "fence", e.Fence, "state", e.State)
		switch {
		case !e.ReturnedAt.IsZero():
			returned = append(returned, e)
			continue
		case e.State == domain.RetryWait:
			k.Later(e)
		}
		left = append(left, e)
	}
	k.Later(out.Woken...)
	k.Completer.Ended(left)
	k.Dispatch.Freed(returned)
	return err
}

func (k *Sink) Answered(s *gateway.Session, answers []*proto.Answer) {
	out := make([]dispatch.Answer, 0, len(answers))
	for _, a := range answers {
		if a.Accepted && s.Slots.Granted(a.ExecutionId, a.Fence) {
			continue // its offer was the grant
		}
		out = append(out, dispatch.Answer{
			Tenant: s.Tenant, From: target{s: s, traced: k.Traced}, ID: domain.ExecutionID(a.ExecutionId), Fence: a.Fence,
			Accepted: a.Accepted, Code: a.RejectCode, Message: a.Message,
		})
	}
	k.Dispatch.Answered(out...)
}

func (k *Sink) Started(s *gateway.Session, list []*proto.Started) {
	out := make([]store.Start, len(list))
	for i, m := range list {
		out[i] = store.Start{
			Tenant: s.Tenant, ID: domain.ExecutionID(m.ExecutionId), Fence: m.Fence,
			Instance: s.Instance, StartedAt: time.UnixMilli(m.StartedAtMs).UTC(),
		}
	}
	k.Completer.Started(out...)
}

func (k *Sink) Finished(s *gateway.Session, list []*proto.Result) {
	out := make([]completer.Result, 0, len(list))
	for _, r := range list {
		out = append(out, completer.Result{
			AttemptReport: store.AttemptReport{Tenant: s.Tenant, Executor: s.Executor, Report: gateway.ReportOf(r)},
			From:          target{s: s, traced: k.Traced},
		})
	}
	k.Completer.Finished(out...)
}

func (k *Sink) Progress(s *gateway.Session, list []*proto.Progress) {
	out := make([]store.ProgressReport, len(list))
	for i, p := range list {
		out[i] = store.ProgressReport{Tenant: s.Tenant, Executor: s.Executor, Progress: domain.Progress{
			ExecutionID: domain.ExecutionID(p.ExecutionId), Fence: p.Fence, Seq: p.Seq,
			Permille: int(max(0, min(p.Permille, 1000))), Message: p.Message,
		}}
	}
	k.Completer.Progressed(out...)
}

func (k *Sink) Steps(s *gateway.Session, list []*proto.Step) {
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
	k.Completer.Asked(out...)
}
