package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// documentFile is where the checked-in document is; the UI's types and other
// clients are made from it.
var documentFile = filepath.Join("..", "..", "..", "docs", "openapi.json")

// describedAPI returns the OpenAPI document without a server: it depends on
// nothing but this package.
func describedAPI() ([]byte, error) {
	return New(describedDeps()).OpenAPI()
}

func TestDocumentIsCheckedIn(t *testing.T) {
	got, err := describedAPI()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(documentFile, got, 0o644))
	}
	want, err := os.ReadFile(documentFile)
	require.NoError(t, err)
	if string(want) != string(got) { // require.Equal would print both documents
		t.Fatalf("the API changed: run make generate, and look at what it means for clients; %s",
			cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

func TestDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	a := w.call("", "GET", "/api/openapi.json", nil).is(http.StatusOK)
	want, err := describedAPI()
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(a.body))
	require.Equal(t, "application/openapi+json", a.header.Get("Content-Type"))
}

func TestTheDocumentIsFoundWherePeopleLook(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{"/openapi.json": "/api/openapi.json", "/api": "/api/openapi.json", "/api/docs": "/api/openapi.json"} {
		a := w.send(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)).is(http.StatusFound)
		require.Equal(t, want, a.header.Get("Location"), path)
	}
	// With pages there is one for people.
	w = newWorld(t, func(d *Deps) { d.UI = http.NotFoundHandler() })
	for path, want := range map[string]string{"/openapi.json": "/api/openapi.json", "/api": "/docs", "/api/docs": "/docs"} {
		a := w.send(httptest.NewRequestWithContext(t.Context(), "GET", path, nil)).is(http.StatusFound)
		require.Equal(t, want, a.header.Get("Location"), path)
	}
}

// operations calls f for every operation of the document.
func operations(doc *huma.OpenAPI, f func(method, path string, op *huma.Operation)) {
	for path, item := range doc.Paths {
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
			"HEAD": item.Head, "OPTIONS": item.Options, "TRACE": item.Trace,
		} {
			if op != nil {
				f(method, path, op)
			}
		}
	}
}

func TestEveryRouteHasAPolicy(t *testing.T) {
	w := newWorld(t)
	seen := 0
	operations(w.api.Document(), func(method, path string, op *huma.Operation) {
		seen++
		name, _ := op.Extensions["x-policy"].(string)
		require.NotEmpty(t, name, "%s %s has no policy", method, path)
		require.Equal(t, w.api.Policies()[method+" "+path], name, "%s %s", method, path)
		require.NotNil(t, op.Security, "%s %s: security in the document", method, path)
		require.Equal(t, name != "public", slices.ContainsFunc(op.Security, func(s map[string][]string) bool { return s["bearer"] != nil }),
			"%s %s: security in the document", method, path)
		require.NotEmpty(t, op.Summary, "%s %s", method, path)
		require.NotEmpty(t, op.Tags, "%s %s", method, path)
	})
	require.Greater(t, seen, 35)

	// The router knows no route that went past Register and Plain.
	policies := w.api.Policies()
	for _, route := range w.api.Routes() {
		require.NotEmpty(t, policies[route], "%s has no policy", route)
	}
}

// Who makes a client of the document has nothing else to read.
func TestEverythingIsDescribed(t *testing.T) {
	raw, err := describedAPI()
	require.NoError(t, err)
	type described struct{ Name, Description string }
	var doc struct {
		Tags  []described
		Paths map[string]map[string]struct {
			OperationID, Description string
			Tags                     []string
			Security                 *[]any
			Parameters               []described
			Responses                map[string]struct {
				Description string
				Headers     map[string]struct{ Description string }
			}
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]described
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &doc))
	var missing []string
	need := func(ok bool, what string, args ...any) {
		if !ok {
			missing = append(missing, fmt.Sprintf(what, args...))
		}
	}
	tags := map[string]bool{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
		need(tag.Description != "", "tag %s", tag.Name)
	}
	for path, item := range doc.Paths {
		for _, op := range item {
			id := op.OperationID
			need(op.Description != "", "operation %s", id)
			for _, tag := range op.Tags {
				need(tags[tag], "tag %s of %s", tag, id)
			}
			for _, p := range op.Parameters {
				need(p.Description != "", "parameter %s of %s", p.Name, id)
			}
			need(op.Security != nil, "security of %s", id)
			statuses := []string{"422", "429", "500", "503"}
			if op.Security != nil && len(*op.Security) > 0 && id != "logout" && id != "refresh" {
				statuses = append(statuses, "401", "403")
			}
			if strings.Contains(path, "{") {
				statuses = append(statuses, "404")
			}
			for _, status := range statuses {
				need(op.Responses[status].Description != "", "status %s of %s", status, id)
			}
			for status, r := range op.Responses {
				for name, h := range r.Headers {
					need(h.Description != "", "header %s of %s %s", name, id, status)
				}
			}
		}
	}
	properties := 0
	for name, schema := range doc.Components.Schemas {
		for property, p := range schema.Properties {
			properties++
			need(p.Description != "", "property %s.%s", name, property)
		}
	}
	require.Greater(t, properties, 850)
	slices.Sort(missing)
	require.Empty(t, missing, "not described:\n%s", strings.Join(missing, "\n"))
}

func TestPublicRoutesAreThese(t *testing.T) {
	w := newWorld(t)
	var found []string
	for route, name := range w.api.Policies() {
		if name == "public" {
			found = append(found, route)
		}
	}
	require.ElementsMatch(t, []string{
		"POST /api/v1/auth/login", "POST /api/v1/auth/refresh", "POST /api/v1/auth/logout",
		"GET /healthz", "GET /readyz", "GET /metrics", "GET /api/openapi.json", "GET /openapi.json", "GET /api", "GET /api/docs",
	}, found, "a new public route is a decision: add it here with the reason in the commit")
}

func TestRegisteringWithoutAPolicyPanics(t *testing.T) {
	w := newWorld(t)
	require.PanicsWithValue(t, "api: GET /x has no policy", func() { w.api.Plain(web.Policy{}, "GET", "/x", nil) })
}
