package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

const subpath = "/ops/carillon"

var parameters = regexp.MustCompile(`\{[^}]*\}`)

// below sends a request to a world's API as it is at the path.
func (w *world) below(who, method, path, body string) answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("X-Request-Id", "the-same-for-all")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := w.as(who); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	rec := httptest.NewRecorder()
	web.Below(subpath, w.handler).ServeHTTP(rec, req)
	return answer{t: w.t, status: rec.Code, header: rec.Result().Header, body: rec.Body.Bytes()}
}

func TestEveryRouteAnswersBelowAPath(t *testing.T) {
	at := func(d *Deps) { d.Path = subpath }
	w := newWorld(t, at)
	seen := 0
	for _, route := range w.api.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if path == "/metrics" {
			continue // its figures count these requests
		}
		seen++
		path = parameters.ReplaceAllString(path, "1")
		who := "" // a request without a key changes nothing
		if method == http.MethodGet {
			who = "acme/admin"
		}
		plain, below := w.below(who, method, path, ""), w.below(who, method, subpath+path, "")
		require.Equal(t, plain.status, below.status, "%s: %s", route, below.body)
		if below.status >= 400 { // other answers have times in them
			require.Equal(t, string(plain.body), string(below.body), route)
		}
		require.NotContains(t, string(below.body), "there is nothing at this address", route)
		for _, name := range []string{"Content-Type", "Cache-Control", "Content-Security-Policy", "Location"} {
			require.Equal(t, plain.header.Get(name), below.header.Get(name), "%s: %s", route, name)
		}
	}
	require.Greater(t, seen, 150)
}

func TestAddressesInAnswersHaveThePath(t *testing.T) {
	w := newWorld(t, func(d *Deps) { d.Path, d.UI = subpath, http.NotFoundHandler() })
	for path, want := range map[string]string{"/openapi.json": "/api/openapi.json", "/api": "/docs", "/api/docs": "/docs"} {
		a := w.below("", "GET", subpath+path, "").is(http.StatusFound)
		require.Equal(t, subpath+want, a.header.Get("Location"), path)
	}
	var document struct{ Servers []struct{ URL string } }
	require.NoError(t, json.Unmarshal(w.below("", "GET", subpath+"/api/openapi.json", "").is(http.StatusOK).body, &document))
	require.Equal(t, subpath, document.Servers[0].URL)

	login := w.below("", "POST", subpath+"/api/v1/auth/login", `{"username":"admin","password":"`+adminPassword+`"}`).is(http.StatusOK)
	require.Contains(t, login.header.Get("Set-Cookie"), "; Path="+subpath+"/api/v1/auth;")
}
