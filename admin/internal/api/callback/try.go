package callback

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
)

// CallbackTry is a callback that is to be tried before a job has it.
type CallbackTry struct {
	Callback Callback        `json:"callback" doc:"As in a job"`
	Executor *ExecutorChoice `json:"executor,omitempty" doc:"The executor of the job. Needed for a handler of it"`
	On       string          `json:"on,omitempty" enum:"success,failure" doc:"The end that the trial tells of; default: success"`
}

// CallbackTrial is what came of it.
type CallbackTrial struct {
	OK         bool   `json:"ok" doc:"The address answered as a run wants it, the broker keeps the message, or an instance is online and the handler is known"`
	Kind       string `json:"kind" enum:"handler,url,message" doc:"What was tried"`
	Message    string `json:"message" doc:"Why it is not ok; empty: it is"`
	Status     int    `json:"status,omitempty" doc:"HTTP status of the answer; absent: there was none"`
	Body       string `json:"body,omitempty" doc:"The first 1023 bytes of the answer"`
	Truncated  bool   `json:"truncated,omitempty" doc:"The answer was longer"`
	DurationMS int64  `json:"durationMs" doc:"How long it took"`
	Timeout    string `json:"timeout,omitempty" doc:"The longest that it could take: the callback's timeout, at most 30s; absent: nothing was sent"`
	Used       int    `json:"used,omitempty" minimum:"0" doc:"How much of the timeout it took, in percent"`
}

// Deps is what the operation needs.
type Deps struct {
	Store    Store
	Handlers nodehandler.List
	// TryAddress makes one call as a run of the handler that calls an address would.
	TryAddress func(ctx context.Context, tenant domain.TenantID, input []byte) (nodehandler.Trial, error)
	Log        *slog.Logger
}

// tries are trials for one caller.
type tries struct {
	Chooser
	tryAddress func(ctx context.Context, tenant domain.TenantID, input []byte) (nodehandler.Trial, error)
}

// Register adds the operation.
func Register(server *web.Server, deps Deps) {
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/callbacks/try", ID: "try-callback", Reaches: true, Tag: "jobs", Summary: "Try a callback before a job has it",
		Description: "An address gets one call, which is signed and bounded as that of a run and has the header Carillon-Trial. A connection gets one message. Of a handler it is told whether an instance could run it; it is not run. 200 whatever comes of it; the body tells.",
		Errors:      []int{http.StatusNotFound, http.StatusConflict},
	}, deps.try)
}

func (d Deps) try(ctx context.Context, id auth.Identity, in *struct{ Body CallbackTry }) (*struct{ Body CallbackTrial }, error) {
	const at = "body.callback"
	c := tries{Chooser{Store: d.Store, Handlers: d.Handlers, ID: id, Allow: catalogue.Lenient{Handler: true}}, d.TryAddress}
	if in.Body.Executor != nil {
		own, err := ChooseExecutor(ctx, d.Store, id.Tenant, id.Reach, "body.executor", *in.Body.Executor)
		if err != nil {
			return nil, err
		}
		c.Own = own
	}
	f, err := c.Choose(ctx, at, &in.Body.Callback.CallbackTarget, domain.FollowUp{})
	if err != nil {
		return nil, err
	}
	domain.AuditOf(ctx).Object(domain.AuditObject{Name: in.Body.Callback.brief()})
	var out CallbackTrial
	switch {
	case !f.Any():
		return nil, domain.Invalid(at, "needs a handler, a url or a connection")
	case f.Request == "":
		out, err = c.tryHandler(ctx, f)
	case in.Body.On == "failure":
		out, err = c.tryRequest(ctx, f, sampleFailure)
	default:
		out, err = c.tryRequest(ctx, f, sampleEnd)
	}
	d.Log.Info("callback tried", "tenant_id", id.Tenant, "kind", out.Kind, "ok", out.OK, "by", id.Actor())
	return &struct{ Body CallbackTrial }{out}, err
}

// tryHandler looks whether an instance could run a handler.
func (c tries) tryHandler(ctx context.Context, f domain.FollowUp) (out CallbackTrial, err error) {
	e := c.Own
	switch {
	case f.Executor != 0:
		e, err = c.Store.FindExecutor(ctx, c.ID.Tenant, f.Executor)
	case e.ID == 0:
		err = domain.Invalid("body.executor", "is needed for a handler of the job's own executor")
	}
	if err != nil {
		return out, err
	}
	out.Kind = "handler"
	known, err := catalogue.Known(ctx, c.Store, c.ID.Tenant, e, f.Handler, catalogue.HintCall)
	if domain.Is(err, domain.CodeUnknownHandler) {
		out.Message = err.Error()
		return out, nil
	}
	if err != nil {
		return out, err
	}
	online, err := c.Store.CountHeard(ctx, c.ID.Tenant, e.ID)
	switch {
	case err != nil:
		return out, err
	case known == nil:
		out.Message = "no instance of the executor has registered handlers yet"
	case online == 0:
		out.Message = "the handler is known, and no instance of the executor is online"
	}
	out.OK = out.Message == ""
	return out, nil
}

// tryRequest calls an address, or publishes a message.
func (c tries) tryRequest(ctx context.Context, f domain.FollowUp, end string) (out CallbackTrial, err error) {
	connection := ""
	handler := nodehandler.Handler{Name: domain.CallbackHandler, Try: c.tryAddress}
	if out.Kind = "url"; f.Connection != 0 {
		out.Kind = "message"
		handler, _ = c.Handlers.Sender()
		names, err := handler.Connections.Names(ctx, c.ID.Tenant, []int64{f.Connection})
		if err != nil {
			return out, err
		}
		connection = names[f.Connection]
	}
	input, err := f.Input(connection, []byte(end))
	if err != nil {
		return out, err
	}
	got, err := handler.Try(ctx, c.ID.Tenant, input)
	if err != nil {
		return out, err
	}
	out.OK, out.Message, out.Status, out.Body, out.Truncated = got.OK, got.Message, got.Status, got.Body, got.Truncated
	out.DurationMS, out.Timeout = got.Took.Milliseconds(), domain.DurationText(got.Timeout.Round(time.Millisecond))
	if got.Timeout > 0 {
		out.Used = min(100, int(100*got.Took/got.Timeout))
	}
	return out, nil
}
