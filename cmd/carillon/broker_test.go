package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { addOnRoutes = append(addOnRoutes, (*fakeServer).connectionRoutes) }

// connectionRoutes know one connection, orders (3), at version 2.
func (s *fakeServer) connectionRoutes(mux *http.ServeMux) {
	connection := func(id, name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"carillon/v1","kind":"Connection","id":%q,"name":%q,"version":%d,"spec":{"broker":"rabbitmq","addresses":["mq1.example:5671","mq2.example:5671"],
			"username":"shop","mechanism":"password","tls":{"enabled":true},"virtualHost":"/"},"secrets":{"password":"fingerprint:0123"},"createdAt":"2026-11-01T00:00:00.000Z",
			"updatedAt":"2026-11-01T00:00:00.000Z","createdBy":"admin","updatedBy":"admin"}`, id, name, version)
	}
	s.route(mux, "GET /connections", func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
		fmt.Fprintf(w, `{"items":[%s],"nextCursor":null}`, connection("3", "orders", 2))
	})
	s.route(mux, "GET /connections/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if word := r.PathValue("id"); word == "3" || word == "orders" {
			fmt.Fprint(w, connection("3", "orders", 2))
			return
		}
		refuse(w, 404, "not_found", "there is no connection "+r.PathValue("id"))
	})
	s.route(mux, "POST /connections", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		w.WriteHeader(201)
		fmt.Fprint(w, connection("4", body["name"].(string), 1))
	})
	s.route(mux, "PUT /connections/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		if r.Header.Get("If-Match") != `"2"` {
			refuse(w, 412, "revision_mismatch", "the connection was changed meanwhile")
			return
		}
		fmt.Fprint(w, connection("3", "orders", 3))
	})
	s.route(mux, "POST /connections/{id}/test", func(w http.ResponseWriter, _ *http.Request, body map[string]any) {
		if body["target"].(map[string]any)["exchange"] == "shop" {
			fmt.Fprint(w, `{"delivered":true,"permanent":false,"message":"","messageId":"test-7","durationMs":12}`)
			return
		}
		fmt.Fprint(w, `{"delivered":false,"permanent":true,"message":"there is no such exchange","messageId":"test-7","durationMs":12}`)
	})
	s.route(mux, "DELETE /connections/{id}", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		s.removed = append(s.removed, "connection "+r.PathValue("id"))
		w.WriteHeader(204)
	})
}

func TestConnectionRead(t *testing.T) {
	term := keyed(t, newFakeServer(t))
	r := term.run("connection", "list")
	require.Equal(t, 0, r.code, r.stderr)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	require.Len(t, lines, 2)
	require.True(t, strings.HasPrefix(spaced(lines[1]), "orders rabbitmq mq1.example:5671,mq2.example:5671 yes shop"), lines[1])
	r = term.run("connection", "get", "order")
	require.Equal(t, 3, r.code)
	require.Contains(t, r.stderr, "orders", "what is near is named")
	require.Equal(t, 3, term.run("connection", "get", "99").code)
}

// A connection can be got, edited and put back; its secrets stay.
func TestConnectionApply(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	got := term.run("connection", "get", "orders", "-o", "yaml")
	require.Equal(t, 0, got.code, got.stderr)
	r := term.pipe(got.stdout, "connection", "apply", "-f", "-")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "is at version 3")
	sent := server.lastBody("PUT /connections/{id}")
	require.Equal(t, "rabbitmq", sent["spec"].(map[string]any)["broker"])
	require.Equal(t, map[string]any{"password": "fingerprint:0123"}, sent["secrets"], "it stands for the password")
	for _, field := range []string{"version", "id", "createdAt"} {
		require.NotContains(t, sent, field)
	}

	secret := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(secret, []byte("pass word\n"), 0o600))
	r = term.pipe("name: other\nspec:\n  broker: nats\n  addresses: [\"nats.example:4222\"]\n", "connection", "apply", "-f", "-", "--password-file", secret)
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, map[string]any{"password": "pass word"}, server.lastBody("POST /connections")["secrets"])

	for text, want := range map[string]string{
		"name: x\npassword: y\n": `a connection has no field "password"`,
		"kind: Connection\n":     "needs a name",
	} {
		r = term.pipe(text, "connection", "apply", "-f", "-")
		require.Equal(t, 2, r.code, text)
		require.Contains(t, r.stderr, want)
	}
	require.Equal(t, 2, term.run("connection", "apply").code, "no file")
}

// A document of one kind is read as carillon apply reads it: ${{ }} stands for values.
func TestConnectionApplyFillsValues(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t, "CARILLON_URL="+server.url, "CARILLON_API_KEY=ck_good", "MQ_PASSWORD=pass word")
	const spec = "name: other\nspec:\n  broker: nats\n  addresses: [\"${{ %s }}\"]\nsecrets:\n  password: ${{ %s }}\n"
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte("address: nats.example:4222\n"), 0o600))
	r := term.pipe(fmt.Sprintf(spec, "address", "env:MQ_PASSWORD"), "connection", "apply", "-f", "-", "--values", values)
	require.Equal(t, 0, r.code, r.stderr)
	sent := server.lastBody("POST /connections")
	require.Equal(t, map[string]any{"password": "pass word"}, sent["secrets"])
	require.Equal(t, []any{"nats.example:4222"}, sent["spec"].(map[string]any)["addresses"])

	r = term.pipe(fmt.Sprintf(spec, "address", "env:MQ_PASSWROD"), "connection", "apply", "-f", "-")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "standard input:4 other: spec.addresses[0]: ${{ address }} has no value: add it to the file of --values")
	require.Contains(t, r.stderr, "standard input:6 other: secrets.password: ${{ env:MQ_PASSWROD }}: the variable is not set")
	require.Equal(t, sent, server.lastBody("POST /connections"), "nothing was sent")
}

func TestConnectionTestAndDelete(t *testing.T) {
	server := newFakeServer(t)
	term := keyed(t, server)
	r := term.run("connection", "test", "orders", "--exchange", "shop", "--routing-key", "k", "--body", "{}")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "has the message test-7")
	require.Equal(t, map[string]any{"target": map[string]any{"exchange": "shop", "routingKey": "k"}, "body": "{}"}, server.lastBody("POST /connections/{id}/test"))
	r = term.run("connection", "test", "orders", "--exchange", "none")
	require.NotEqual(t, 0, r.code)
	require.Contains(t, r.stderr, "not delivered: there is no such exchange")

	r = term.run("connection", "delete", "orders", "--yes")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, []string{"connection 3"}, server.removed)
}
