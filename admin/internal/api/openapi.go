package api

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

//go:generate go test -run ^TestDocumentIsCheckedIn$ -update .

// APIVersion is the version of the document, apart from the server's.
const APIVersion = "1.0.0"

// humaConfig describes the API. It is not huma's default: no pages that load
// scripts from elsewhere, no $schema in answers, JSON only.
func humaConfig() huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Carillon", Version: APIVersion,
				Description: "Jobs, runs and executors. Errors are application/problem+json with a stable code; ids are strings; instants are RFC 3339 UTC with milliseconds; lists are paged by cursor.",
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			// Whoever reads it has it from the server that it speaks of.
			Servers: []*huma.Server{{URL: "/", Description: "The server that this document comes from"}},
			Components: &huma.Components{
				Schemas: registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"bearer":        {Type: "http", Scheme: "bearer", Description: "An access token from POST /api/v1/auth/login, or an API key (ck_…)."},
					"refreshCookie": {Type: "apiKey", In: "cookie", Name: refreshCookie, Description: "Set by login, exchanged by refresh; scripts in pages cannot read it."},
				},
			},
			Tags: []*huma.Tag{
				{Name: "session", Description: "Log in, and who am I"}, {Name: "jobs", Description: "Definitions and schedules"},
				{Name: "runs", Description: "What ran, runs and will run"}, {Name: "executors", Description: "Applications and their processes"},
				{Name: "calls", Description: "Handlers, called by programs"}, {Name: "calendars", Description: "Days and windows without fires"},
				{Name: "scripts", Description: "What agents run"}, {Name: "access", Description: "Users, API keys, join tokens"}, {Name: "system", Description: "The tenant and the cluster at a glance"},
				{Name: "platform", Description: "All tenants"},
			},
		},
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
func (a *API) OpenAPI() ([]byte, error) {
	raw, err := json.Marshal(a.huma.OpenAPI())
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

// documentPath is where the document is served.
const documentPath = "/api/openapi.json"

// referencePath is what people read: the page that is made of the document, or
// the document itself where there are no pages.
func (a *API) referencePath() string {
	if a.deps.UI == nil {
		return documentPath
	}
	return "/docs"
}

func redirect(to string) gin.HandlerFunc {
	return func(c *gin.Context) { c.Redirect(http.StatusFound, to) }
}

func (a *API) openAPI(c *gin.Context) {
	a.specOnce.Do(func() {
		var err error
		if a.spec, err = a.OpenAPI(); err != nil {
			a.log.Error("no OpenAPI document", "err", err)
		}
	})
	c.Header("Content-Type", "application/openapi+json")
	send(c, http.StatusOK, a.spec)
}
