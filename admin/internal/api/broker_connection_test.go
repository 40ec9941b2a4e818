package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

func rabbit(change ...any) map[string]any {
	body := map[string]any{"name": "orders", "broker": "rabbitmq", "addresses": []string{"mq.example:5671"}, "username": "shop", "password": "s3cret-1"}
	for i := 0; i < len(change); i += 2 {
		body[change[i].(string)] = change[i+1]
	}
	return body
}

func (w *world) secretsOf(id string) (s noun.ConnectionSecrets) {
	w.t.Helper()
	c, err := w.connections().FindConnection(w.t.Context(), w.tenants["acme"], mustID[noun.ConnectionID](w.t, id))
	require.NoError(w.t, err)
	if len(c.Secrets) == 0 {
		return s
	}
	require.NotContains(w.t, string(c.Secrets), "s3cret")
	plain, err := w.box.Open(c.TenantID, secret.PurposeConnection, int64(c.ID), c.Secrets)
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(plain, &s))
	return s
}

func TestConnectionLifecycle(t *testing.T) {
	w := newWorld(t)
	w.call("acme/operator", "POST", "/connections", rabbit()).problem(403, "permission_denied")
	created := w.call("acme/editor", "POST", "/connections", rabbit()).is(201)
	require.NotContains(t, string(created.body), "s3cret")
	c := into[broker.Connection](created)
	require.Equal(t, []any{int64(1), "/", "password", true, false}, []any{c.Version, c.VirtualHost, c.Mechanism, c.HasPassword, c.HasClientKey})
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID).Password)
	w.call("acme/editor", "POST", "/connections", rabbit()).problem(409, "conflict")

	path := "/connections/" + c.ID
	got := w.call("acme/viewer", "GET", path, nil).is(200)
	require.NotContains(t, string(got.body), "s3cret")
	require.Equal(t, `"1"`, got.header.Get("ETag"))

	// Secrets that are left out stay.
	change := rabbit("description", "of the shop")
	delete(change, "password")
	w.call("acme/editor", "PUT", path, change).problem(428, "validation_failed")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	c = into[broker.Connection](w.call("acme/editor", "PUT", path, change, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, []any{int64(2), "of the shop", true}, []any{c.Version, c.Description, c.HasPassword})
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID).Password)

	list := w.call("acme/viewer", "GET", "/connections", nil).is(200)
	require.NotContains(t, string(list.body), "s3cret")
	require.Equal(t, []broker.Connection{c}, into[web.Page[broker.Connection]](list).Items)

	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": "*"}).problem(404, "not_found")
}

// Who may edit a connection cannot have its password sent to a server of theirs.
func TestConnectionPasswordIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	c := into[broker.Connection](w.call("acme/editor", "POST", "/connections", rabbit("tls", map[string]any{"enabled": true})).is(201))
	path := "/connections/" + c.ID
	anyVersion := header{"If-Match": "*"}
	elsewhere := rabbit("addresses", []string{"thief.example:5671"}, "tls", map[string]any{"enabled": true})
	delete(elsewhere, "password")
	p := w.call("acme/editor", "PUT", path, elsewhere, anyVersion).problem(422, "validation_failed")
	require.Equal(t, "body.password", p.Errors[0].Location)
	inClear := rabbit()
	delete(inClear, "password")
	w.call("acme/editor", "PUT", path, inClear, anyVersion).problem(422, "validation_failed")
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID).Password)

	elsewhere["password"] = "s3cret-2"
	w.call("acme/editor", "PUT", path, elsewhere, anyVersion).is(200)
	require.Equal(t, "s3cret-2", w.secretsOf(c.ID).Password)
	p = w.call("acme/editor", "PUT", path, rabbit("broker", "nats"), anyVersion).problem(422, "validation_failed")
	require.Equal(t, "body.broker", p.Errors[0].Location)
}

func TestConnectionMistakes(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		body map[string]any
		want string
	}{
		"no port":                {rabbit("addresses", []string{"mq.example"}), "body.addresses[0]"},
		"a scheme":               {rabbit("addresses", []string{"amqp://mq.example:5672"}), "body.addresses[0]"},
		"nobody":                 {rabbit("username", ""), "body.username"},
		"a broker that is none":  {rabbit("broker", "activemq"), "body.broker"},
		"another's mechanism":    {rabbit("mechanism", "scram_sha_256"), "body.mechanism"},
		"no PEM":                 {rabbit("tls", map[string]any{"enabled": true, "authorities": "x"}), "body.tls.authorities"},
		"a key alone":            {rabbit("clientKey", "s3cret"), "body.clientKey"},
		"a password that is big": {rabbit("password", strings.Repeat("s3cret", 2000)), "body.password"},
	} {
		a := w.call("acme/editor", "POST", "/connections", test.body)
		require.NotContains(t, string(a.body), "s3cret", name)
		p := a.problem(422, "validation_failed")
		require.Equal(t, test.want, p.Errors[0].Location, name)
	}
}

func TestConnectionTest(t *testing.T) {
	var sent []noun.Message
	var permanent bool
	var says error
	w := newWorld(t, func(d *Deps) {
		d.AddOns = func(s *web.Server) {
			broker.Routes(s, broker.Deps{
				Table: tableOf(d), Secrets: d.Secrets, NewID: d.NewID, Changed: func(context.Context, domain.TenantID) {}, Log: d.Logger,
				Publish: func(_ context.Context, m noun.Message) (bool, error) {
					sent = append(sent, m)
					return permanent, says
				},
			})
		}
	})
	c := into[broker.Connection](w.call("acme/editor", "POST", "/connections", rabbit()).is(201))
	path := "/connections/" + c.ID + "/test"
	target := map[string]any{"target": map[string]any{"routingKey": "q"}}
	w.call("acme/operator", "POST", path, target).problem(403, "permission_denied")
	got := into[broker.MessageTestResult](w.call("acme/editor", "POST", path, target).is(200))
	require.True(t, got.Delivered)
	require.Len(t, sent, 1)
	require.Equal(t, noun.Message{
		Tenant: w.tenants["acme"], Connection: "orders", Target: noun.MessageTarget{RoutingKey: "q"}, Body: []byte(`{"test":true}`), ID: got.MessageID,
	}, sent[0])

	permanent, says = true, errors.New("no such exchange")
	got = into[broker.MessageTestResult](w.call("acme/editor", "POST", path, target).is(200))
	require.Equal(t, []any{false, true, "no such exchange"}, []any{got.Delivered, got.Permanent, got.Message})
	require.NotEqual(t, sent[0].ID, sent[1].ID)

	p := w.call("acme/editor", "POST", path, map[string]any{"target": map[string]any{"topic": "t"}}).problem(422, "validation_failed")
	require.Equal(t, "body.target.routingKey", p.Errors[0].Location)
	require.Len(t, sent, 2)
}
