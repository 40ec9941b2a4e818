// Package addon answers: what is an add-on, and what may it use of a node?
//
// An add-on is one name in four places: a folder below this one (types, rules, SQL,
// routes, texts), a command, an area of the pages, and its tables. Package admin
// registers it in one line (admin/addons.go), and the command line in another one. The
// core imports no add-on, and add-ons do not import each other (docs/adr/0097).
package addon

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// AddOn is an add-on before there is a node.
type AddOn struct {
	// Name is that of its folders.
	Name string
	// Path is the first segment of the addresses outside /api that it serves, such as mcp.
	// A base URL cannot have it. Empty: there are none.
	Path string
	// Settings are the settings of the server that belong to it.
	Settings []Setting
	// Check judges the values of Settings before the node opens anything. nil: it takes all.
	Check func(Values) error
	// Doctor has its checks of carillon doctor.
	Doctor []Doctor
	// Successes reads which runs that succeed are events of the outbox. The one add-on that
	// has it is the subscriber of the outbox. Without a subscriber nothing is written there.
	Successes engine.ReadSuccesses
	// Tables are its tables with rows of tenants.
	Tables []db.OwnedTable
	// Build makes its parts of a node. It starts nothing.
	Build func(Node) (Parts, error)
}

// Node is the part of a node that an add-on may use.
type Node struct {
	// Logger has no component.
	Logger  *slog.Logger
	Version string
	// BaseURL is the address that people open.
	BaseURL string
	// Settings have a value for each setting of the add-on.
	Settings Values
	// Networks are the private networks that requests of tenants may reach.
	Networks []netip.Prefix
	// DB is the node's database. The tables of the add-on are its own. Engine moves runs
	// there, and Store answers questions about nouns of the core.
	DB     *db.DB
	Engine *engine.Engine
	Store  Store
	// Secrets seals what is kept in the database.
	Secrets *secret.Box
	// DataDir is the directory of this node's own files.
	DataDir string
	// Leads reports whether this node does what one node of the cluster has to do. Two nodes
	// may lead for a moment, or none.
	Leads func() bool
	// NewID makes ids of rows.
	NewID func() int64
	// Now is the database's clock.
	Now func() time.Time
	// Metrics takes counters.
	Metrics prometheus.Registerer
	// Trace opens a span around a message about a run, which may be nil.
	Trace func(ctx context.Context, channel string, run *domain.Execution) (context.Context, func(error))
	// Boot is the node's boot id. Living returns those of all nodes that are not dead for
	// certain, empty = unknown. Shown returns since when no other node can have taken this one
	// for dead; false: one may.
	Boot   string
	Living func() []string
	Shown  func() (since time.Time, ok bool)
	// EnsureBuiltIn makes the built-in executor of a tenant in a transaction, unless it is
	// there. now is in milliseconds. BuiltInChanged returns when this node is an instance.
	EnsureBuiltIn  func(t *db.Tx, tenant domain.TenantID, now int64) error
	BuiltInChanged func(ctx context.Context, tenant domain.TenantID)
	// Jobs and Runs may be used once the node serves.
	Jobs Jobs
	Runs Runs
}

// Parts are the add-on's parts of a node. Each may be nil.
type Parts struct {
	// Routes adds its operations and doors to the API. The API is the handler, too.
	Routes func(*web.Server)
	// Handlers are those of the tenants' built-in executors.
	Handlers nodehandler.List
	// Run works until ctx ends, after the last run of its handlers has ended.
	Run func(ctx context.Context) error
	// Intake works like the planner: it ends before calls and results do, and never begins on
	// a node with --no-fire.
	Intake func(ctx context.Context) error
	// Nudge says that the outbox may hold something new. It never blocks.
	Nudge func()
	// OutboxLag is for how long the oldest event of the outbox has waited.
	OutboxLag func(ctx context.Context) (time.Duration, error)
	// Unexplained leaves out lost instances that another event explains.
	Unexplained func(ctx context.Context, list []store.LostInstances) ([]store.LostInstances, error)
	// Audited asks for entries of the audit log for what applications declare, too.
	Audited bool
	// Attention is its part of the overview.
	Attention web.Attention
	// TenantMade hears of a new tenant.
	TenantMade func(ctx context.Context, t domain.Tenant)
	// Provisioned hears at a start, but not with --no-fire, that the documents of the provision
	// file are there.
	Provisioned func(ctx context.Context) error
}

// Store answers questions about nouns of the core. Errors are as in package store.
type Store interface {
	FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error)
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error)
	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (store.JobView, error)
	FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (store.JobView, error)
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error)
	LogEnd(ctx context.Context, tenant domain.TenantID, execution domain.ExecutionID) (attempt int, line int64, err error)
	ReadLog(ctx context.Context, p store.ReadLogParams) (store.LogPage, error)
}

// Doctor is a check of carillon doctor.
type Doctor struct {
	// ID is that of the check.
	ID string
	// Alone needs no database.
	Alone bool
	// Look looks whether what is configured, or what the rows say, leads anywhere. An error
	// says that the database did not answer.
	Look func(context.Context, Examination) ([]doctor.Result, error)
	// Sealed lists what is sealed in the rows. nil: nothing is.
	Sealed func(context.Context, *db.DB) ([]Sealed, error)
}

// Examination has the parts of a server that Look may use. No node runs.
type Examination struct {
	DB *db.DB // nil for a check that is Alone
	// Box is nil if the sealing key cannot be read.
	Box      *secret.Box
	Settings Values
	// Networks are the private networks that requests of tenants may reach.
	Networks []netip.Prefix
	// Plainly puts errors of libraries into plain words.
	Plainly func(context.Context, error) error
}

// Sealed is something in a row that the sealing key opens.
type Sealed struct {
	// What names it in the report, such as the secrets of connection orders.
	What    string
	Tenant  domain.TenantID
	Purpose string
	ID      int64
	Bytes   []byte
}
