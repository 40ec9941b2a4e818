// Package addon answers: what is an add-on, and what may it use of a node?
//
// An add-on is one name in four places: a folder below this one (types, rules, SQL,
// routes, texts), a command, an area of the pages, and its tables. Package admin
// registers it in one line (admin/addons.go), and the command line in another one. The
// core imports no add-on, and add-ons do not import each other (docs/adr/0097).
package addon

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
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
}

// Parts are the add-on's parts of a node. Each may be nil.
type Parts struct {
	// Routes adds its operations and doors to the API. The API is the handler, too.
	Routes func(*web.Server)
}
