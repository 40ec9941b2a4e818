package api

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// documentPath is where the checked-in document is; the UI's types and other
// clients are made from it.
var documentPath = filepath.Join("..", "..", "..", "docs", "openapi.json")

func TestDocumentIsCheckedIn(t *testing.T) {
	got, err := Document()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(documentPath, got, 0o644))
	}
	want, err := os.ReadFile(documentPath)
	require.NoError(t, err)
	if string(want) != string(got) { // require.Equal would print both documents
		t.Fatalf("the API changed: run make generate, and look at what it means for clients; %s",
			cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}

func TestDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	a := w.call("", "GET", "/api/openapi.json", nil).is(http.StatusOK)
	want, err := Document()
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(a.body))
	require.Equal(t, "application/openapi+json", a.header.Get("Content-Type"))
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
	operations(w.api.huma.OpenAPI(), func(method, path string, op *huma.Operation) {
		seen++
		name, _ := op.Extensions["x-policy"].(string)
		require.NotEmpty(t, name, "%s %s has no policy", method, path)
		require.Equal(t, w.api.policies[method+" "+path].name, name, "%s %s", method, path)
		require.NotNil(t, op.Security, "%s %s: security in the document", method, path)
		require.Equal(t, name != public.name, slices.ContainsFunc(op.Security, func(s map[string][]string) bool { return s["bearer"] != nil }),
			"%s %s: security in the document", method, path)
		require.NotEmpty(t, op.Summary, "%s %s", method, path)
		require.NotEmpty(t, op.Tags, "%s %s", method, path)
	})
	require.Greater(t, seen, 35)

	// The router knows no route that went past register and plain.
	for _, r := range w.api.engine.Routes() {
		path := r.Path
		for _, part := range strings.Split(r.Path, "/") {
			if name, ok := strings.CutPrefix(part, ":"); ok {
				path = strings.Replace(path, part, "{"+name+"}", 1)
			}
		}
		_, ok := w.api.policies[r.Method+" "+path]
		require.True(t, ok, "%s %s has no policy", r.Method, path)
	}
}

func TestPublicRoutesAreThese(t *testing.T) {
	w := newWorld(t)
	var found []string
	for route, p := range w.api.policies {
		if p.name == public.name {
			found = append(found, route)
		}
	}
	require.ElementsMatch(t, []string{
		"POST /api/v1/auth/login", "POST /api/v1/auth/refresh", "POST /api/v1/auth/logout",
		"GET /healthz", "GET /readyz", "GET /metrics", "GET /api/openapi.json",
	}, found, "a new public route is a decision: add it here with the reason in the commit")
}

func TestRegisteringWithoutAPolicyPanics(t *testing.T) {
	w := newWorld(t)
	require.PanicsWithValue(t, "api: GET /x has no policy", func() { w.api.plain(policy{}, "GET", "/x", nil) })
}
