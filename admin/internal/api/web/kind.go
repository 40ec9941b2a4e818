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

// AddKind says that the API has a kind of documents. It is called at construction.
func (s *Server) AddKind(k DocumentKind) { s.kinds = append(s.kinds, k) }

// Kinds are the kinds of documents that the API has.
func (s *Server) Kinds() []DocumentKind { return s.kinds }

// CheckBody holds JSON against a schema, as the body of a request is. Errors name the wrong
// fields, with locations below body.
func (s *Server) CheckBody(ctx context.Context, schema *huma.Schema, raw json.RawMessage) error {
	return s.checkBody(ctx, schema, raw)
}
