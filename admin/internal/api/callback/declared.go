package callback

import (
	"context"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Declared returns a reader for callbacks that code declares. It judges them
// as requests of a caller with rights for the executor of the code and for its CallbacksTo. A permission that
// cannot be read is an error of the store.
func Declared(from Store, handlers nodehandler.List) func(ctx context.Context, of store.ExecutorKey, at string, to *proto.Callback, was domain.FollowUp) (domain.FollowUp, error) {
	return func(ctx context.Context, of store.ExecutorKey, at string, to *proto.Callback, was domain.FollowUp) (domain.FollowUp, error) {
		own, err := from.FindExecutor(ctx, of.Tenant, of.Executor)
		if err != nil {
			return domain.FollowUp{}, err
		}
		reach := []domain.ExecutorID{own.ID}
		for _, name := range own.CallbacksTo {
			e, err := from.FindExecutorByName(ctx, of.Tenant, name)
			if err == nil {
				reach = append(reach, e.ID)
			} else if !domain.Is(err, domain.CodeNotFound) {
				return domain.FollowUp{}, err
			}
		}
		c := Chooser{Store: from, Handlers: handlers, ID: auth.Identity{Tenant: of.Tenant, Reach: domain.Within(reach...)}, Own: own, declared: true}
		return c.Choose(ctx, at, targetOf(to), was)
	}
}

// notAllowed is why code does not reach an executor. Whether that exists is not told.
func (c Chooser) notAllowed(at, executor string) error {
	message := "the code of the executor " + c.Own.Name + " may not use the executor " + executor + " for callbacks; allow it with: carillon executor callbacks " +
		strings.Join(append([]string{c.Own.Name}, append(c.Own.CallbacksTo[:len(c.Own.CallbacksTo):len(c.Own.CallbacksTo)], executor)...), " ")
	return &domain.Error{
		Code: domain.CodeDenied, Message: at + ": " + message, Fields: []domain.FieldError{{Location: at, Message: message, Position: -1}},
	}
}

// targetOf is a declared callback as the API has it.
func targetOf(to *proto.Callback) *CallbackTarget {
	out := &CallbackTarget{Handler: to.Handler, URL: to.Url, Headers: to.Headers}
	if to.TimeoutMs != 0 {
		out.Timeout = (time.Duration(to.TimeoutMs) * time.Millisecond).String()
	}
	if to.Executor != "" {
		out.Executor = &ExecutorChoice{Name: to.Executor}
	}
	if to.Connection != "" {
		out.Connection = &ConnectionChoice{Name: to.Connection}
	}
	if t := to.Target; t != nil {
		out.Target = &builtin.MessageTarget{
			Subject: t.Subject, Exchange: t.Exchange, RoutingKey: t.RoutingKey, Topic: t.Topic, PartitionKey: t.PartitionKey,
			Stream: t.Stream, MaxLength: t.MaxLength, Create: t.Create,
		}
	}
	return out
}
