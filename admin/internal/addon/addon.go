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

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
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
	// Doctor looks at what it keeps in the database. nil: it keeps nothing.
	Doctor *Doctor
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
	// DB is the node's database. The tables of the add-on are its own.
	DB *db.DB
	// Secrets seals what is kept in the database.
	Secrets *secret.Box
	// NewID makes ids of rows.
	NewID func() int64
	// EnsureBuiltIn makes the built-in executor of a tenant in a transaction, unless it is
	// there. now is in milliseconds. BuiltInChanged returns when this node is an instance.
	EnsureBuiltIn  func(t *db.Tx, tenant domain.TenantID, now int64) error
	BuiltInChanged func(ctx context.Context, tenant domain.TenantID)
}

// Parts are the add-on's parts of a node. Each may be nil.
type Parts struct {
	// Routes adds its operations and doors to the API. The API is the handler, too.
	Routes func(*web.Server)
	// Handlers are those of the tenants' built-in executors.
	Handlers nodehandler.List
	// Run works until ctx ends, after the last run of its handlers has ended.
	Run func(ctx context.Context) error
}

// Doctor is the part of carillon doctor that looks at what an add-on keeps.
type Doctor struct {
	// ID is that of the check.
	ID string
	// Look looks whether the rows lead anywhere. An error says that the database did not
	// answer.
	Look func(context.Context, Examination) ([]doctor.Result, error)
	// Sealed lists what is sealed in the rows.
	Sealed func(context.Context, *db.DB) ([]Sealed, error)
}

// Examination has the parts of a server that Look may use. No node runs.
type Examination struct {
	DB *db.DB
	// Box is nil if the sealing key cannot be read.
	Box      *secret.Box
	Settings Values
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
