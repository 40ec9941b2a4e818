package broker

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// Connection leads to a broker of the tenant.
type Connection struct {
	ID      string `json:"id" doc:"Id of the connection, a decimal string"`
	Version int64  `json:"version" doc:"Grows by one with each edit, from 1"`
	ConnectionSpec
	HasPassword  bool   `json:"hasPassword" doc:"Whether it has a password; nobody can read it"`
	HasClientKey bool   `json:"hasClientKey" doc:"Whether it has a key to tls.certificate; nobody can read it"`
	CreatedAt    string `json:"createdAt" format:"date-time" doc:"When the connection was made"`
	UpdatedAt    string `json:"updatedAt" format:"date-time" doc:"When it was edited last"`
	CreatedBy    string `json:"createdBy" doc:"Who made the connection"`
	UpdatedBy    string `json:"updatedBy" doc:"Who edited it last"`
}

// ConnectionSpec is what can be read and written of a connection.
type ConnectionSpec struct {
	Name           string        `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant; what publishes names it"`
	Description    string        `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	Broker         string        `json:"broker" enum:"nats,rabbitmq,kafka,redis" doc:"The product: NATS JetStream, RabbitMQ, Kafka or Redis Streams; fixed"`
	Addresses      []string      `json:"addresses" minItems:"1" maxItems:"16" doc:"host:port; several are those of one cluster. Private networks only as the operator allows (connection-allow)"`
	Username       string        `json:"username,omitempty" maxLength:"256" doc:"Who asks; default: nobody by name"`
	Mechanism      string        `json:"mechanism,omitempty" enum:"password,credentials,scram_sha_256,scram_sha_512,external" doc:"How it logs in. password (the default): for all brokers, without a username a token of NATS. credentials: the password is the text of a NATS credentials file. scram: Kafka. external: RabbitMQ, by the certificate"`
	TLS            ConnectionTLS `json:"tls,omitempty" doc:"Default: without TLS"`
	VirtualHost    string        `json:"virtualHost,omitempty" maxLength:"127" doc:"RabbitMQ's; default /"`
	Database       int           `json:"database,omitempty" minimum:"0" maximum:"65536" doc:"Redis's number; default 0"`
	SentinelMaster string        `json:"sentinelMaster,omitempty" maxLength:"128" doc:"Redis: the addresses are those of Sentinel, which knows the master by this name"`
}

// ConnectionTLS says how the broker proves who it is.
type ConnectionTLS struct {
	Enabled     bool   `json:"enabled,omitempty" doc:"Default false"`
	Authorities string `json:"authorities,omitempty" maxLength:"32768" doc:"Certificates in PEM that the broker's may be signed by; default: those that the node's system trusts"`
	ServerName  string `json:"serverName,omitempty" maxLength:"253" doc:"Name in the broker's certificate; default: the host of the address"`
	Certificate string `json:"certificate,omitempty" maxLength:"32768" doc:"The client's own, in PEM; its key is clientKey"`
}

// ConnectionWrite is a connection with its secrets.
type ConnectionWrite struct {
	ConnectionSpec
	Password  *string `json:"password,omitempty" maxLength:"8192" writeOnly:"true" doc:"Kept sealed. Default: as it is; empty: none. Must be given again when address, TLS or mechanism change"`
	ClientKey *string `json:"clientKey,omitempty" maxLength:"32768" writeOnly:"true" doc:"Private key in PEM, kept sealed. Default: as it is; empty: none. Must be given again as the password"`
}

// MessageTarget says where on its broker a message belongs.
type MessageTarget struct {
	Subject      string `json:"subject,omitempty" maxLength:"512" doc:"NATS"`
	Exchange     string `json:"exchange,omitempty" maxLength:"255" doc:"RabbitMQ; default: the default exchange, which routes to the queue that the routing key names"`
	RoutingKey   string `json:"routingKey,omitempty" maxLength:"255" doc:"RabbitMQ"`
	Topic        string `json:"topic,omitempty" maxLength:"249" doc:"Kafka"`
	PartitionKey string `json:"partitionKey,omitempty" maxLength:"4096" doc:"Kafka; default: the message's key"`
	Stream       string `json:"stream,omitempty" maxLength:"512" doc:"Redis; NATS: the stream that must have the subject, may be left out"`
	MaxLength    int64  `json:"maxLength,omitempty" minimum:"0" doc:"Redis: trim the stream to about so many entries; default: not"`
	Create       bool   `json:"create,omitempty" doc:"Redis: make the stream if it is missing; default: that is a failure"`
}

// MessageTest is a message to try a connection with.
type MessageTest struct {
	Target MessageTarget `json:"target" doc:"Where the message belongs; each broker has fields of its own"`
	Body   string        `json:"body,omitempty" maxLength:"65536" doc:"Default {\"test\":true}"`
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

type connectionOutput = web.Versioned[Connection]

type writeConnectionInput = web.Edited[ConnectionWrite]

func connectionOf(c *noun.Connection) Connection {
	s := c.Spec
	return Connection{
		ID: c.ID.String(), Version: c.Version, HasPassword: c.HasPassword, HasClientKey: c.HasClientKey,
		ConnectionSpec: ConnectionSpec{
			Name: s.Name, Description: s.Description, Broker: string(s.Broker), Addresses: s.Addresses, Username: s.Username, Mechanism: s.Mechanism,
			TLS: ConnectionTLS(s.TLS), VirtualHost: s.VirtualHost, Database: s.Database, SentinelMaster: s.SentinelMaster,
		},
		CreatedAt: web.Instant(c.CreatedAt), UpdatedAt: web.Instant(c.UpdatedAt), CreatedBy: c.CreatedBy, UpdatedBy: c.UpdatedBy,
	}
}

func connectionAnswer(c noun.Connection) *connectionOutput {
	return &connectionOutput{ETag: web.ETag(c.Version), Body: connectionOf(&c)}
}

func (w *ConnectionSpec) spec() noun.ConnectionSpec {
	s := noun.ConnectionSpec{
		Name: strings.TrimSpace(w.Name), Description: strings.TrimSpace(w.Description), Broker: noun.Broker(w.Broker), Addresses: w.Addresses,
		Username: w.Username, Mechanism: cmp.Or(w.Mechanism, noun.MechanismPassword), TLS: noun.ConnectionTLS(w.TLS),
		VirtualHost: w.VirtualHost, Database: w.Database, SentinelMaster: w.SentinelMaster,
	}
	if s.Broker == noun.BrokerRabbitMQ {
		s.VirtualHost = cmp.Or(s.VirtualHost, "/")
	}
	return s
}

// Deps of Routes.
type Deps struct {
	Table   *Table
	Secrets web.Sealer
	NewID   func() int64
	// Publish sends a message by its connection as it is now. permanent: another try would fail
	// in the same way.
	Publish func(ctx context.Context, m noun.Message) (permanent bool, err error)
	// Changed waits until this node goes by a tenant's first connection.
	Changed func(ctx context.Context, tenant domain.TenantID)
	Log     *slog.Logger
}

// routes are the operations of connections.
type routes struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Routes adds the operations of connections.
func Routes(s *web.Server, deps Deps) {
	a := &routes{s, deps}
	a.register()
}

func (a *routes) register() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/connections", ID: "list-connections", Large: true, Tag: "connections", Summary: "List connections to brokers",
		Description: "By name. Secrets cannot be read.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Connection], error) {
		rows, err := a.deps.Table.ListConnections(ctx, id.Tenant)
		return web.ListPage(rows, err, connectionOf, in.ShortPage, "connections")
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/connections", ID: "create-connection", Tag: "connections", Summary: "Create a connection to a broker",
		Description: "It is opened when the first message needs it; test-connection tries it. A tenant may have 64.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, a.createConnection)
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/connections/{id}", ID: "get-connection", Tag: "connections", Summary: "One connection",
		Description: "The ETag is the version, for update-connection.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*connectionOutput, error) {
		c, err := a.connection(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		return connectionAnswer(c), nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/connections/{id}", ID: "update-connection", Tag: "connections", Summary: "Replace a connection",
		Description: "Secrets that are left out stay, unless they would be sent to another receiver. All nodes use it within two seconds; messages under way end as they began.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, a.updateConnection)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/connections/{id}", ID: "delete-connection", Tag: "connections", Summary: "Delete a connection",
		Description: "What still names it fails from then on, two seconds later at the latest.", Status: http.StatusNoContent,
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		c, err := a.connection(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		if err := a.deps.Table.DeleteConnection(ctx, id.Tenant, c.ID); err != nil {
			return nil, err
		}
		a.deps.Log.Info("connection deleted", "tenant_id", id.Tenant, "connection", c.Spec.Name, "by", id.Actor())
		return nil, nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/connections/{id}/test", ID: "test-connection", Reaches: true, Tag: "connections", Summary: "Publish a message to try a connection",
		Description: "The message is really published, by the node that answers, which has 15 s for it. 200 whatever the broker says; the body tells.",
	}, a.testConnection)
}

// connection finds one of the tenant by the id in the path.
func (a *routes) connection(ctx context.Context, tenant domain.TenantID, text string) (noun.Connection, error) {
	return web.ByID(ctx, tenant, text, a.deps.Table.FindConnection)
}

func (a *routes) createConnection(ctx context.Context, id auth.Identity, in *struct{ Body ConnectionWrite }) (*connectionOutput, error) {
	c := noun.Connection{ID: noun.ConnectionID(a.deps.NewID()), TenantID: id.Tenant, Spec: in.Body.spec(), CreatedBy: id.Actor()}
	var secrets noun.ConnectionSecrets
	in.Body.give(&secrets)
	if err := noun.CheckConnection(&c.Spec, &secrets); err != nil {
		return nil, err
	}
	if err := a.sealConnection(&c, secrets); err != nil {
		return nil, err
	}
	c, err := a.deps.Table.CreateConnection(ctx, c)
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("connection created", "tenant_id", id.Tenant, "connection", c.Spec.Name, "broker", c.Spec.Broker, "by", id.Actor())
	a.deps.Changed(ctx, id.Tenant)
	return connectionAnswer(c), nil
}

func (a *routes) updateConnection(ctx context.Context, id auth.Identity, in *writeConnectionInput) (*connectionOutput, error) {
	c, err := a.connection(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	if err := web.MustMatch(ctx, in.IfMatch, "connection", c.ID, c.Version); err != nil {
		return nil, err
	}
	secrets, err := web.Unseal[noun.ConnectionSecrets](a.deps.Secrets, c.TenantID, secret.PurposeConnection, int64(c.ID), c.Secrets)
	if err != nil {
		return nil, err
	}
	spec := in.Body.spec()
	if spec.Broker != c.Spec.Broker {
		return nil, domain.Invalid("body.broker", "is fixed: make another connection")
	}
	if !spec.SameReceiver(&c.Spec) {
		// A key is not sent, but it proves who one is to whoever asks.
		switch {
		case in.Body.Password == nil && c.HasPassword:
			return nil, domain.Invalid("body.password", "must be given again: the connection leads elsewhere, or logs in otherwise")
		case in.Body.ClientKey == nil && c.HasClientKey:
			return nil, domain.Invalid("body.clientKey", "must be given again: the connection leads elsewhere, or logs in otherwise")
		}
	}
	in.Body.give(&secrets)
	if err := noun.CheckConnection(&spec, &secrets); err != nil {
		return nil, err
	}
	c.Spec, c.UpdatedBy = spec, id.Actor()
	if err := a.sealConnection(&c, secrets); err != nil {
		return nil, err
	}
	if c, err = a.deps.Table.UpdateConnection(ctx, c); err != nil {
		return nil, err
	}
	a.deps.Log.Info("connection changed", "tenant_id", id.Tenant, "connection", c.Spec.Name, "version", c.Version, "by", id.Actor())
	return connectionAnswer(c), nil
}

// give puts the secrets that were given into the place of others.
func (w *ConnectionWrite) give(s *noun.ConnectionSecrets) {
	if w.Password != nil {
		s.Password = *w.Password
	}
	if w.ClientKey != nil {
		s.ClientKey = *w.ClientKey
	}
}

func (a *routes) sealConnection(c *noun.Connection, s noun.ConnectionSecrets) (err error) {
	c.Secrets, c.HasPassword, c.HasClientKey = nil, s.Password != "", s.ClientKey != ""
	c.Secrets, err = web.Seal(a.deps.Secrets, c.TenantID, secret.PurposeConnection, int64(c.ID), s)
	return err
}

func (a *routes) testConnection(ctx context.Context, id auth.Identity, in *struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body MessageTest
}) (*struct{ Body MessageTestResult }, error) {
	c, err := a.connection(ctx, id.Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	m := noun.Message{
		Tenant: id.Tenant, Connection: c.Spec.Name, Target: noun.MessageTarget(in.Body.Target), Body: []byte(cmp.Or(in.Body.Body, `{"test":true}`)),
		ID: "test-" + noun.ConnectionID(a.deps.NewID()).String(),
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
	a.deps.Log.Info("connection tested", "tenant_id", id.Tenant, "connection", c.Spec.Name, "delivered", out.Delivered, "by", id.Actor())
	return &struct{ Body MessageTestResult }{out}, nil
}
