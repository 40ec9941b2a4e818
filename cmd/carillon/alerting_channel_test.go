package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// alertChannelRoutes know one channel, on-call (5), at version 2.
func (s *fakeServer) alertChannelRoutes(mux *http.ServeMux) {
	channel := func(id, name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"carillon/v1","kind":"AlertChannel","id":%q,"name":%q,"spec":{"kind":"slack","enabled":true,"mentions":["U1"],"host":"https://hooks.example"},"secrets":{"url":"fingerprint:1"},"version":%d,
			"createdAt":"2026-11-01T00:00:00.000Z","updatedAt":"2026-11-01T00:00:00.000Z","createdBy":"admin","updatedBy":"admin"}`, id, name, version)
	}
	s.route(mux, "GET /alert-channels", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, channel("5", "on-call", 2))
	})
	s.route(mux, "GET /alert-channels/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if word := r.PathValue("id"); word != "5" && word != "on-call" {
			refuse(w, 404, "not_found", "there is no alert channel")
			return
		}
		fmt.Fprint(w, channel("5", "on-call", 2))
	})
	s.route(mux, "POST /alert-channels", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, channel("6", body["name"].(string), 1))
	})
	s.route(mux, "PUT /alert-channels/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.Header.Get("If-Match") != `"2"` {
			refuse(w, 412, "revision_mismatch", "the channel was changed meanwhile")
			return
		}
		fmt.Fprint(w, channel("5", "on-call", 3))
	})
	s.route(mux, "POST /alert-channels/{id}/test", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"delivered":false,"permanent":true,"message":"no_service\u001b[31m","durationMs":12,"rendered":{}}`)
	})
	s.route(mux, "POST /alert-channels/preview", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprint(w, `{"title":"Failed: x","contentType":"application/json","body":"{\n  \"a\": \"\u001b[31m\"\n}"}`)
	})
	s.route(mux, "DELETE /alert-channels/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		s.removed = append(s.removed, "alert channel "+r.PathValue("id"))
		w.WriteHeader(204)
	})
}

func TestAlertChannelCommands(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("alert", "channel", "list")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, spaced(r.stdout), "on-call slack yes https://hooks.example")

	url := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(url, []byte("https://hooks.example/t0ken\n"), 0o600))
	file := filepath.Join(t.TempDir(), "channel.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: nights\nspec: {kind: slack, mentions: [U1, U2], enabled: false}\n"), 0o600))
	r = term.run("alert", "channel", "apply", "-f", file, "--url-file", url)
	require.Equal(t, 0, r.code, r.stderr)
	require.NotContains(t, r.stdout+r.stderr, "t0ken")
	require.Equal(t, map[string]any{"name": "nights", "spec": map[string]any{"kind": "slack", "mentions": []any{"U1", "U2"}, "enabled": false}, "secrets": map[string]any{"url": "https://hooks.example/t0ken"}},
		server.lastBody("POST /alert-channels"))

	require.NoError(t, os.WriteFile(file, []byte("name: on-call\nspec: {kind: slack, language: zh}\n"), 0o600))
	r = term.run("alert", "channel", "apply", "-f", file)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, map[string]any{"name": "on-call", "spec": map[string]any{"kind": "slack", "language": "zh"}}, server.lastBody("PUT /alert-channels/{id}"))

	r = term.run("alert", "channel", "test", "on-call")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "not delivered: no_service")
	require.NotContains(t, r.stderr, "\x1b[31m")
	r = term.run("alert", "channel", "preview", "on-call", "--alert", "run_lost")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stdout, "Title: Failed: x\nContent-Type: application/json\n\n{\n  \"a\": ")
	require.NotContains(t, r.stdout, "\x1b[31m")
	require.Equal(t, map[string]any{"channel": "5", "alert": "run_lost", "spec": map[string]any{}}, server.lastBody("POST /alert-channels/preview"))
	r = term.run("alert", "channel", "get", "oncall")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "on-call", "what is near is named")
	r = term.run("alert", "channel", "delete", "on-call", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, []string{"alert channel 5"}, server.removed)
}
