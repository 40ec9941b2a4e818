package web

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// pages answer as web-ui does, in plain text where there is no page.
func pages(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		_, _ = io.WriteString(w, "<!doctype html>")
	case r.URL.Path == "/notes.txt":
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "notes")
	case r.URL.Path == "/packed":
		http.Error(w, "", http.StatusNotAcceptable)
	case r.URL.Path == "/broken":
		http.Error(w, strings.Repeat("x", 10_000), http.StatusInternalServerError)
	default:
		http.Error(w, "not found", http.StatusNotFound)
	}
}

// TestErrorsOfPagesAreProblems: each error of our own code has a code, at any address and with
// any method.
func TestErrorsOfPagesAreProblems(t *testing.T) {
	for _, ui := range []http.Handler{http.HandlerFunc(pages), nil} {
		s := New(Options{
			Document: &huma.OpenAPI{Info: &huma.Info{}}, Closing: func() bool { return false }, UI: ui, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		})
		ask := func(method, address string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), method, "http://h/", nil)
			r.URL.Path, r.RequestURI = address, address
			s.ServeHTTP(w, r)
			return w
		}
		for _, r := range []struct {
			method, address string
			status          int
			code            string
		}{
			{"GET", "/x.js", 404, "not_found"}, {"GET", "//x.js", 404, "not_found"}, {"GET", `\x.js`, 404, "not_found"}, {"GET", "/api/x", 404, "not_found"},
			{"POST", "/x", 405, "not_found"}, {"CONNECT", "", 405, "not_found"}, {"PRI", "*", 405, "not_found"}, {"TRACE", "/x", 405, "not_found"}, {strings.Repeat("A", 5000), "/x", 405, "not_found"},
			{"GET", "/packed", 406, "validation_failed"}, {"GET", "/broken", 500, "internal"},
		} {
			w := ask(r.method, r.address)
			where := r.method[:min(len(r.method), 10)] + " " + r.address
			if ui == nil {
				r.status, r.code = 404, "not_found"
			}
			require.Equal(t, r.status, w.Code, where)
			require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), where)
			require.Less(t, w.Body.Len(), 2000, where)
			var p Problem
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), where)
			require.Equal(t, []any{r.code, r.status}, []any{p.Code, p.Status}, where)
			require.NotEmpty(t, p.Detail, where)
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"), where)
		}
		if ui != nil {
			require.Equal(t, "<!doctype html>", ask("GET", "/").Body.String())
			require.Equal(t, "notes", ask("GET", "/notes.txt").Body.String())
			require.Equal(t, "GET", ask("POST", "/x").Header().Get("Allow"))
		}
	}
}
