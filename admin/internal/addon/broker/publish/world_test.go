//go:build proof

package publish

import (
	"crypto/tls"
	"encoding/pem"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

const user, password = "carillon", "hemmelig"

// world is a broker that tests publish to, by way of a proxy.
type world struct {
	spec    noun.ConnectionSpec // leads to the proxy
	secrets map[string]string
	proxy   *proxy.Proxy
	target  noun.MessageTarget
	missing noun.MessageTarget // nothing takes what goes there
	// dedupes: the broker keeps one message of an id.
	dedupes bool
	// read returns what target has got, when that are at least n messages.
	read  func(t *testing.T, n int) []received
	kafka *kfake.Cluster
}

// worldCount keeps what worlds share a broker for apart.
var worldCount atomic.Int64

func uniqueName() string { return "orders " + strconv.FormatInt(worldCount.Add(1), 10) }

type received struct {
	body    string
	headers map[string]string
}

// worlds are all brokers. Kafka's is not a real one: kfake speaks its wire
// protocol, and checks the sequence numbers of idempotent producers.
var worlds = map[noun.Broker]func(t *testing.T) *world{
	noun.BrokerNATS: natsWorld, noun.BrokerRabbitMQ: rabbitWorld, noun.BrokerKafka: kafkaWorld, noun.BrokerRedis: redisWorld,
}

// eachBroker runs a test on all of them, beside one another.
func eachBroker(t *testing.T, test func(t *testing.T, w *world)) {
	for name, start := range worlds {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func through(t *testing.T, upstream string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(upstream, proxy.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// certificate is a server's, for 127.0.0.1, and the same in PEM.
func certificate(t *testing.T) (pair tls.Certificate, text string) {
	t.Helper()
	pair, _ = testenv.Certificate(t)
	return pair, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))
}

// nats.

func startNATS(t *testing.T, change func(*natsserver.Options)) *natsserver.Server {
	t.Helper()
	options := &natsserver.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Users: []*natsserver.User{
			{Username: user, Password: password},
			{Username: "guest", Password: password, Permissions: &natsserver.Permissions{Publish: &natsserver.SubjectPermission{Deny: []string{"orders.>"}}}},
		},
	}
	if change != nil {
		change(options)
	}
	server, err := natsserver.NewServer(options)
	require.NoError(t, err)
	server.Start()
	t.Cleanup(func() { server.Shutdown(); server.WaitForShutdown() })
	require.True(t, server.ReadyForConnections(10*time.Second))
	return server
}

func natsClient(t *testing.T, server *natsserver.Server, options ...nats.Option) nats.JetStreamContext {
	t.Helper()
	conn, err := nats.Connect(server.ClientURL(), append(options, nats.UserInfo(user, password))...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	require.NoError(t, err)
	return js
}

func natsWorld(t *testing.T) *world {
	server := startNATS(t, nil)
	js := natsClient(t, server)
	_, err := js.AddStream(&nats.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.*"}})
	require.NoError(t, err)
	p := through(t, server.Addr().String())
	return &world{
		spec:    noun.ConnectionSpec{Broker: noun.BrokerNATS, Addresses: []string{p.Addr()}, Username: user},
		secrets: map[string]string{noun.SecretPassword: password}, proxy: p, dedupes: true,
		target:  noun.MessageTarget{Subject: "orders.cancelled", Stream: "ORDERS"},
		missing: noun.MessageTarget{Subject: "nobody.cares"},
		read: func(t *testing.T, _ int) (out []received) {
			info, err := js.StreamInfo("ORDERS")
			require.NoError(t, err)
			for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
				m, err := js.GetMsg("ORDERS", seq)
				require.NoError(t, err)
				got := received{string(m.Data), map[string]string{}}
				for name := range m.Header {
					got.headers[name] = m.Header.Get(name)
				}
				out = append(out, got)
			}
			return out
		},
	}
}

// RabbitMQ.

func rabbitClient(t *testing.T) *amqp.Channel {
	t.Helper()
	broker := testenv.RabbitMQ(t)
	conn, err := amqp.DialConfig("amqp://"+broker.Addr, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: broker.User, Password: broker.Password}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	channel, err := conn.Channel()
	require.NoError(t, err)
	return channel
}

func rabbitWorld(t *testing.T) *world {
	broker := testenv.RabbitMQ(t)
	channel := rabbitClient(t)
	exchange := uniqueName()
	require.NoError(t, channel.ExchangeDeclare(exchange, "topic", true, true, false, false, nil))
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, channel.QueueBind(queue.Name, "orders.*", exchange, false, nil))
	p := through(t, broker.Addr)
	return &world{
		spec:    noun.ConnectionSpec{Broker: noun.BrokerRabbitMQ, Addresses: []string{p.Addr()}, Username: broker.User, VirtualHost: "/"},
		secrets: map[string]string{noun.SecretPassword: broker.Password}, proxy: p,
		target:  noun.MessageTarget{Exchange: exchange, RoutingKey: "orders.cancelled"},
		missing: noun.MessageTarget{Exchange: "no such exchange", RoutingKey: "orders.cancelled"},
		read: func(t *testing.T, _ int) (out []received) {
			for {
				m, ok, err := channel.Get(queue.Name, true)
				require.NoError(t, err)
				if !ok {
					return out
				}
				require.EqualValues(t, amqp.Persistent, m.DeliveryMode)
				require.Equal(t, m.MessageId, m.Headers["x-deduplication-header"])
				got := received{string(m.Body), map[string]string{"Content-Type": m.ContentType}}
				for name, value := range m.Headers {
					got.headers[name] = value.(string)
				}
				out = append(out, got)
			}
		},
	}
}

// Kafka.

// advertised is a listener that tells clients to come by way of a proxy.
type advertised struct {
	net.Listener
	address net.Addr
}

func (l advertised) Addr() net.Addr { return l.address }

func startKafka(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append(options, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", user, password))...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

func kafkaSpec(address string) noun.ConnectionSpec {
	return noun.ConnectionSpec{Broker: noun.BrokerKafka, Addresses: []string{address}, Username: user, Mechanism: noun.MechanismScram256}
}

func kafkaWorld(t *testing.T) *world {
	var p *proxy.Proxy
	var direct string
	cluster := startKafka(t, kfake.ListenFn(func(network, address string) (net.Listener, error) {
		listener, err := net.Listen(network, address)
		if err != nil {
			return nil, err
		}
		direct = listener.Addr().String()
		p = through(t, direct)
		via, err := net.ResolveTCPAddr("tcp", p.Addr())
		return advertised{listener, via}, err
	}))
	return &world{
		kafka: cluster, spec: kafkaSpec(cluster.ListenAddrs()[0]), secrets: map[string]string{noun.SecretPassword: password}, proxy: p,
		target: noun.MessageTarget{Topic: "orders"}, missing: noun.MessageTarget{Topic: "no-such-topic"},
		read: func(t *testing.T, n int) []received { return readKafka(t, kafkaSpec(p.Addr()), n) },
	}
}

func readKafka(t *testing.T, spec noun.ConnectionSpec, n int, more ...kgo.Opt) (out []received) {
	t.Helper()
	e, err := newEndpoint(spec, map[string]string{noun.SecretPassword: password}, (&net.Dialer{}).DialContext)
	require.NoError(t, err)
	options := append([]kgo.Opt{kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, more...)
	client, err := kgo.NewClient(append(options, kafkaLogin(e)...)...)
	require.NoError(t, err)
	defer client.Close()
	for len(out) < n {
		fetches := client.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			got := received{string(r.Value), map[string]string{"key": string(r.Key)}}
			for _, h := range r.Headers {
				got.headers[h.Key] = string(h.Value)
			}
			out = append(out, got)
		})
	}
	return out
}

// Redis.

func redisClient(t *testing.T) *redis.Client {
	t.Helper()
	broker := testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: broker.Addr, Password: broker.Password})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func redisWorld(t *testing.T) *world {
	broker := testenv.Redis(t)
	client := redisClient(t)
	stream := uniqueName()
	require.NoError(t, client.XGroupCreateMkStream(t.Context(), stream, "readers", "$").Err())
	p := through(t, broker.Addr)
	return &world{
		spec:    noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{p.Addr()}},
		secrets: map[string]string{noun.SecretPassword: broker.Password}, proxy: p, dedupes: true,
		target: noun.MessageTarget{Stream: stream}, missing: noun.MessageTarget{Stream: stream + " of nobody"},
		read: func(t *testing.T, _ int) (out []received) {
			entries, err := client.XRange(t.Context(), stream, "-", "+").Result()
			require.NoError(t, err)
			for _, e := range entries {
				got := received{headers: map[string]string{}}
				for name, value := range e.Values {
					got.headers[name] = value.(string)
				}
				got.body = got.headers["body"]
				out = append(out, got)
			}
			return out
		},
	}
}

// publish is a publisher with the one connection "broker".
func (w *world) publisher(t *testing.T) *Publisher {
	t.Helper()
	var r rows
	r.put(t, 1, "broker", w.spec, w.secrets)
	return publisher(t, &r, nil)
}

func (w *world) message(id string) noun.Message {
	return noun.Message{Tenant: 1, Connection: "broker", Target: w.target, ID: id, Body: []byte(`{"id":` + strconv.Quote(id) + `}`)}
}

func bodies(got []received) []string {
	var out []string
	for _, r := range got {
		out = append(out, r.body)
	}
	slices.Sort(out)
	return out
}
