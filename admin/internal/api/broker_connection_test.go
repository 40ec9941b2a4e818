package api

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// rabbit is the body of a connection. Changes of password and clientKey are its secrets, and a
// secret that is nil is left out.
func rabbit(change ...any) map[string]any {
	spec := map[string]any{"broker": "rabbitmq", "addresses": []string{"mq.example:5671"}, "username": "shop"}
	secrets := map[string]any{"password": "s3cret-1"}
	for i := 0; i < len(change); i += 2 {
		switch name := change[i].(string); {
		case name != "password" && name != "clientKey":
			spec[name] = change[i+1]
		case change[i+1] == nil:
			delete(secrets, name)
		default:
			secrets[name] = change[i+1]
		}
	}
	return map[string]any{"name": "orders", "spec": spec, "secrets": secrets}
}

// connection is a document of a connection, as the API shows it.
type connection struct {
	document.Answer
	Spec noun.ConnectionSpec `json:"spec"`
}

func (w *world) secretsOf(id string) map[string]string {
	w.t.Helper()
	row, err := w.connections().Find(w.t.Context(), w.tenants["acme"], int64(mustID[domain.JobID](w.t, id)))
	require.NoError(w.t, err)
	require.NotContains(w.t, string(row.Sealed)+string(row.Spec), "s3cret")
	s, err := resource.OpenSecrets(w.box, secret.PurposeConnection, &row.Meta)
	require.NoError(w.t, err)
	return s
}

func TestConnectionLifecycle(t *testing.T) {
	w := newWorld(t)
	w.call("acme/operator", "POST", "/connections", rabbit()).problem(403, "permission_denied")
	created := w.call("acme/editor", "POST", "/connections", rabbit()).is(201)
	require.NotContains(t, string(created.body), "s3cret")
	c := into[connection](created)
	require.Equal(t, []any{int64(1), "/", "password", "Connection", "carillon/v1"}, []any{c.Version, c.Spec.VirtualHost, c.Spec.Mechanism, c.Kind, c.APIVersion})
	require.Regexp(t, "^fingerprint:[0-9a-f]{24}$", c.Secrets["password"])
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID)["password"])
	w.call("acme/editor", "POST", "/connections", rabbit()).problem(409, "conflict")

	path := "/connections/" + c.ID
	got := w.call("acme/viewer", "GET", path, nil).is(200)
	require.NotContains(t, string(got.body), "s3cret")
	require.Equal(t, `"1"`, got.header.Get("ETag"))

	// Secrets that are left out stay.
	change := rabbit("description", "of the shop", "password", nil)
	w.call("acme/editor", "PUT", path, change).problem(428, "validation_failed")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	c = into[connection](w.call("acme/editor", "PUT", path, change, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, []any{int64(2), "of the shop", 1}, []any{c.Version, c.Spec.Description, len(c.Secrets)})
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID)["password"])

	list := w.call("acme/viewer", "GET", "/connections", nil).is(200)
	require.NotContains(t, string(list.body), "s3cret")
	require.Equal(t, []connection{c}, into[web.Page[connection]](list).Items)

	w.call("acme/operator", "DELETE", path, nil).problem(403, "permission_denied")
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
	w.call("acme/editor", "PUT", path, change, header{"If-Match": "*"}).problem(404, "not_found")
}

// Who may edit a connection cannot have its password sent to a server of theirs.
func TestConnectionPasswordIsNotRedirected(t *testing.T) {
	w := newWorld(t)
	c := into[connection](w.call("acme/editor", "POST", "/connections", rabbit("tls", map[string]any{"enabled": true})).is(201))
	path := "/connections/" + c.ID
	anyVersion := header{"If-Match": "*"}
	elsewhere := rabbit("addresses", []string{"thief.example:5671"}, "tls", map[string]any{"enabled": true}, "password", nil)
	p := w.call("acme/editor", "PUT", path, elsewhere, anyVersion).problem(422, "validation_failed")
	require.Equal(t, "body.secrets.password", p.Errors[0].Location)
	inClear := rabbit("password", nil)
	w.call("acme/editor", "PUT", path, inClear, anyVersion).problem(422, "validation_failed")
	require.Equal(t, "s3cret-1", w.secretsOf(c.ID)["password"])

	elsewhere["secrets"] = map[string]any{"password": c.Secrets["password"]}
	w.call("acme/editor", "PUT", path, elsewhere, anyVersion).problem(422, "validation_failed")
	elsewhere["secrets"] = map[string]any{"password": "s3cret-2"}
	w.call("acme/editor", "PUT", path, elsewhere, anyVersion).is(200)
	require.Equal(t, "s3cret-2", w.secretsOf(c.ID)["password"])
	p = w.call("acme/editor", "PUT", path, rabbit("broker", "nats"), anyVersion).problem(422, "validation_failed")
	require.Equal(t, "body.spec.broker", p.Errors[0].Location)
}

func TestConnectionMistakes(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		body map[string]any
		want string
	}{
		"no port":                {rabbit("addresses", []string{"mq.example"}), "body.spec.addresses[0]"},
		"a scheme":               {rabbit("addresses", []string{"amqp://mq.example:5672"}), "body.spec.addresses[0]"},
		"nobody":                 {rabbit("username", ""), "body.spec.username"},
		"a broker that is none":  {rabbit("broker", "activemq"), "body.spec.broker"},
		"another's mechanism":    {rabbit("mechanism", "scram_sha_256"), "body.spec.mechanism"},
		"no PEM":                 {rabbit("tls", map[string]any{"enabled": true, "authorities": "x"}), "body.spec.tls.authorities"},
		"a key alone":            {rabbit("clientKey", "s3cret"), "body.secrets.clientKey"},
		"a password that is big": {rabbit("password", strings.Repeat("s3cret", 2000)), "body.secrets.password"},
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
		d.AddOns = func(s *web.Server, _ *Actions) {
			broker.Routes(s, broker.Deps{
				Table: tableOf(d), Secrets: sealerOf(d), NewID: d.NewID, Changed: func(context.Context, domain.TenantID) {}, Log: d.Logger,
				Publish: func(_ context.Context, m noun.Message) (bool, error) {
					sent = append(sent, m)
					return permanent, says
				},
			})
		}
	})
	c := into[connection](w.call("acme/editor", "POST", "/connections", rabbit()).is(201))
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

// A plan compares secrets, and tells none.
func TestSecretsOfDocumentsAreCompared(t *testing.T) {
	w := newWorld(t)
	connection := natsConnection("events")
	connection["kind"], connection["secrets"] = "Connection", map[string]any{"password": "s3cret-1"}
	planned := w.call("acme/editor", "POST", "/plan", documentsBody(connection)).is(200)
	require.NotContains(t, string(planned.body), "s3cret")
	require.Equal(t, 1, w.applied("acme/editor", documentsBody(connection)).Create)

	stored := into[map[string]any](w.call("acme/viewer", "GET", "/connections/events", nil).is(200))
	require.Equal(t, 1, into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(stored)).is(200)).Same)
	stored["secrets"] = map[string]any{"password": "s3cret-2"}
	other := into[apply.Plan](w.call("acme/editor", "POST", "/plan", documentsBody(stored)).is(200))
	require.Equal(t, "secrets.password", other.Items[0].Changes[0].Path)
}
