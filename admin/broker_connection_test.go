//go:build proof

package admin_test

import (
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

// A node publishes to a tenant's broker, where the operator lets it.
func TestAConnectionIsTried(t *testing.T) {
	t.Parallel()
	broker, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Authorization: "s3cret"})
	require.NoError(t, err)
	broker.Start()
	t.Cleanup(func() { broker.Shutdown(); broker.WaitForShutdown() })
	require.True(t, broker.ReadyForConnections(10*time.Second))
	conn, err := nats.Connect(broker.ClientURL(), nats.Token("s3cret"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	require.NoError(t, err)
	_, err = js.AddStream(&nats.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.*"}})
	require.NoError(t, err)

	type result struct {
		Delivered, Permanent bool
		Message, MessageID   string
	}
	try := func(n *node, password, subject string) (r result) {
		var c struct{ ID string }
		n.do("POST", "/api/v1/connections", map[string]any{
			"name": password + subject, "spec": map[string]any{"broker": "nats", "addresses": []string{broker.Addr().String()}}, "secrets": map[string]any{"password": password},
		}, &c, 201)
		n.do("POST", "/api/v1/connections/"+c.ID+"/test", map[string]any{"target": map[string]any{"subject": subject}, "body": "hello"}, &r, 200)
		return r
	}
	trusting := startNode(t, func(c *admin.Config) {
		c.AddOns = admin.Settings{"connection-allow": {"127.0.0.0/8"}}
	})
	r := try(trusting, "s3cret", "orders.test")
	require.True(t, r.Delivered, r.Message)
	m, err := js.GetMsg("ORDERS", 1)
	require.NoError(t, err)
	require.Equal(t, "hello", string(m.Data))
	require.Equal(t, r.MessageID, m.Header.Get("Carillon-Dedupe-Key"))
	for _, wrong := range []result{try(trusting, "wrong", "orders.test"), try(trusting, "s3cret", "nobody.cares"), try(startNode(t, nil), "s3cret", "orders.test")} {
		require.True(t, !wrong.Delivered && wrong.Permanent, "%+v", wrong)
	}
	info, err := js.StreamInfo("ORDERS")
	require.NoError(t, err)
	require.EqualValues(t, 1, info.State.Msgs)
}
