package broker

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// MessageTest is a message to try a connection with.
type MessageTest struct {
	Target builtin.MessageTarget `json:"target" doc:"Where the message belongs; each broker has fields of its own"`
	Body   string                `json:"body,omitempty" maxLength:"65536" doc:"Default {\"test\":true}"`
}

// MessageTestResult is what the broker has said.
type MessageTestResult struct {
	Delivered  bool   `json:"delivered" doc:"Whether the broker keeps the message"`
	Permanent  bool   `json:"permanent" doc:"Whether trying again is no use"`
	Message    string `json:"message" doc:"Why it is not delivered"`
	MessageID  string `json:"messageId" doc:"What consumers find in the header Carillon-Dedupe-Key"`
	DurationMS int64  `json:"durationMs" doc:"How long it took, the opening of the connection included"`
}

// messageTestTimeout bounds a test, so that its answer comes before the request ends.
const messageTestTimeout = 15 * time.Second

// Deps of Routes.
type Deps struct {
	Table   Table
	Secrets resource.Sealer
	NewID   func() int64
	// Publish sends a message by its connection as it is now. permanent: another try would fail
	// in the same way.
	Publish func(ctx context.Context, m noun.Message) (permanent bool, err error)
	// Changed waits until this node goes by a tenant's first connection.
	Changed func(ctx context.Context, tenant domain.TenantID)
	Log     *slog.Logger
}

// routes are the actions of connections.
type routes struct {
	deps Deps
	docs *resource.Documents
}

// Routes adds the operations of connections.
func Routes(s *web.Server, deps Deps) {
	a := &routes{deps, resource.New(resource.Options{
		Kind: Kind, Store: deps.Table, Secrets: deps.Secrets, NewID: deps.NewID, Log: deps.Log,
		Changed: func(ctx context.Context, row *resource.Row) { deps.Changed(ctx, row.Tenant) },
	})}
	document.Register(s, a.docs)
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/connections/{id}/test", ID: "test-connection", Unaudited: "it changes nothing", Reaches: true, Tag: "connections", Summary: "Publish a message to try a connection",
		Description: "The message is really published, by the node that answers, which has 15 s for it. 200 whatever the broker says; the body tells.",
	}, a.testConnection)
}

func (a *routes) testConnection(ctx context.Context, id auth.Identity, in *struct {
	document.OneInput
	Body MessageTest
}) (*struct{ Body MessageTestResult }, error) {
	row, err := a.docs.Find(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	c, err := resource.Read[noun.ConnectionSpec](&row)
	if err != nil {
		return nil, err
	}
	m := noun.Message{
		Tenant: id.Tenant, Connection: c.Name, Target: noun.MessageTarget(in.Body.Target), Body: []byte(cmp.Or(in.Body.Body, `{"test":true}`)),
		ID: testID(a.deps.NewID),
	}
	if err := noun.CheckMessage(c.Spec.Broker, &m); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, messageTestTimeout)
	defer cancel()
	begin := time.Now()
	permanent, err := a.deps.Publish(ctx, m)
	out := MessageTestResult{Delivered: err == nil, Permanent: permanent, MessageID: m.ID, DurationMS: time.Since(begin).Milliseconds()}
	if err != nil {
		out.Message = err.Error()
	}
	a.deps.Log.Info("connection tested", "tenant_id", id.Tenant, "connection", c.Name, "delivered", out.Delivered, "by", id.Actor())
	return &struct{ Body MessageTestResult }{out}, nil
}
