package web

import (
	"context"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// DocumentKind is a kind of documents that the API has.
type DocumentKind struct {
	Documents *resource.Documents
	// Write is the schema of a document that is written.
	Write *huma.Schema
}

// Kinds are the kinds of documents that the API has. They are added at construction.
type Kinds struct {
	server *Server
	list   []DocumentKind
}

// Kinds has the kinds of documents that the API has.
func (s *Server) Kinds() *Kinds { return &s.kinds }

// Add says that the API has a kind.
func (k *Kinds) Add(kind DocumentKind) { k.list = append(k.list, kind) }

// List lists the kinds in the order in which they were added.
func (k *Kinds) List() []DocumentKind { return k.list }

// Registry has the schemas of the OpenAPI document.
func (k *Kinds) Registry() huma.Registry { return k.server.huma.OpenAPI().Components.Schemas }

// Check holds JSON against a schema, as the body of a request is. Errors name the wrong fields,
// with locations below body.
func (k *Kinds) Check(ctx context.Context, schema *huma.Schema, raw json.RawMessage) error {
	return k.server.checkBody(ctx, schema, raw)
}
