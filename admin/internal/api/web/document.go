package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
)

// humaConfig is not huma's default: no pages that load scripts from elsewhere, no
// $schema in answers, JSON only.
func humaConfig(document *huma.OpenAPI) huma.Config {
	if document.Components == nil {
		document.Components = &huma.Components{}
	}
	document.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.Config{
		OpenAPI:                      document,
		Formats:                      map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// markNullable makes each property that is always there and may have no object
// (a pointer to a struct, without omitempty) "this, or null": huma writes it as
// a plain reference.
func markNullable(registry huma.Registry) {
	for name, schema := range registry.Map() {
		t := registry.TypeFromRef("#/components/schemas/" + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(t) {
			property, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := schema.Properties[property]
			if p == nil || p.Ref == "" || f.Type.Kind() != reflect.Pointer || strings.Contains(options, "omitempty") {
				continue
			}
			p.AnyOf = []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}
			p.Ref = ""
		}
	}
}

// OpenAPI returns the document, indented, with a final line break.
func (s *Server) OpenAPI() ([]byte, error) {
	raw, err := json.Marshal(s.Document())
	if err != nil {
		return nil, fmt.Errorf("marshal OpenAPI document: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("indent OpenAPI document: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Policies are the names of the policies of all routes, by "METHOD /path".
func (s *Server) Policies() map[string]string {
	out := map[string]string{}
	for route, p := range s.policies {
		out[route] = p.name
	}
	return out
}

// Routes are those that the router knows, as Policies names them.
func (s *Server) Routes() []string {
	out := []string{}
	for _, r := range s.engine.Routes() {
		parts := strings.Split(r.Path, "/")
		for i, part := range parts {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				parts[i] = "{" + name + "}"
			}
		}
		out = append(out, r.Method+" "+strings.Join(parts, "/"))
	}
	return out
}

// Document is the description of the operations. Nothing can be added by it.
func (s *Server) Document() *huma.OpenAPI { return s.huma.OpenAPI() }

// documentPath is where the document is served.
const documentPath = "/api/openapi.json"

// ServeDocument ends the description of the operations, and serves it; pages
// tells whether there is a page for people that is made of it.
func (s *Server) ServeDocument(pages bool) {
	markNullable(s.huma.OpenAPI().Components.Schemas)
	reference := documentPath
	if pages {
		reference = "/docs"
	}
	s.Plain(Public, http.MethodGet, documentPath, s.openAPI)
	// Where people look for it first.
	s.Plain(Public, http.MethodGet, "/openapi.json", s.redirect(documentPath))
	s.Plain(Public, http.MethodGet, "/api", s.redirect(reference))
	s.Plain(Public, http.MethodGet, "/api/docs", s.redirect(reference))
}

func (s *Server) redirect(to string) gin.HandlerFunc {
	return func(c *gin.Context) { c.Redirect(http.StatusFound, s.options.Path+to) }
}

func (s *Server) openAPI(c *gin.Context) {
	s.specOnce.Do(func() {
		var err error
		if s.spec, err = s.OpenAPI(); err != nil {
			s.log.Error("no OpenAPI document", "err", err)
		}
		var packed bytes.Buffer
		compress(&packed, s.spec)
		s.packedSpec = packed.Bytes()
	})
	c.Header("Content-Type", "application/openapi+json")
	if known(c, s.spec) {
		return
	}
	body := s.spec
	if worthCompressing(c, len(body)) {
		c.Header("Content-Encoding", "gzip")
		body = s.packedSpec
	}
	send(c, http.StatusOK, body)
}
