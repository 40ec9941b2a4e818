//go:build proof

package admin_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
	faults "github.com/carillon-sched/carillon/internal/testenv/proxy"
)

// broker is a real one that runs publish to, by way of a proxy.
type broker struct {
	connection map[string]any                  // where it is; through adds the address of the proxy
	addr       string                          // of the broker itself
	target     func(place string) fields       // of the message
	create     func(place string)              // the stream or queue, which are not there at first
	read       func(place string) []brokerRead // what it has
	dedupes    bool
}

type fields = map[string]any

type brokerRead struct {
	body    string
	headers map[string]string
}

var brokers = map[string]func(t *testing.T) *broker{"nats": natsBroker, "rabbitmq": rabbitBroker, "redis": redisBroker}

// natsOn runs a NATS server with JetStream; port -1: any.
func natsOn(t *testing.T, dir string, port int) (server *natsserver.Server, stop func()) {
	t.Helper()
	server, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true, Authorization: "s3cret"})
	require.NoError(t, err)
	server.Start()
	stop = func() { server.Shutdown(); server.WaitForShutdown() }
	t.Cleanup(stop)
	require.True(t, server.ReadyForConnections(10*time.Second))
	return server, stop
}

func jetStreamOf(t *testing.T, server *natsserver.Server) nats.JetStreamContext {
	t.Helper()
	conn, err := nats.Connect(server.ClientURL(), nats.Token("s3cret"))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := conn.JetStream()
	require.NoError(t, err)
	return js
}

func readJetStream(t *testing.T, js nats.JetStreamContext, stream string) (out []brokerRead) {
	t.Helper()
	info, err := js.StreamInfo(stream)
	require.NoError(t, err)
	for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
		m, err := js.GetMsg(stream, seq)
		require.NoError(t, err)
		got := brokerRead{string(m.Data), map[string]string{}}
		for name := range m.Header {
			got.headers[name] = m.Header.Get(name)
		}
		out = append(out, got)
	}
	return out
}

func natsBroker(t *testing.T) *broker {
	server, _ := natsOn(t, t.TempDir(), -1)
	js := jetStreamOf(t, server)
	return &broker{
		connection: fields{"broker": "nats", "password": "s3cret"}, addr: server.Addr().String(), dedupes: true,
		target: func(place string) fields { return fields{"subject": place + ".new", "stream": place} },
		create: func(place string) {
			_, err := js.AddStream(&nats.StreamConfig{Name: place, Subjects: []string{place + ".*"}})
			require.NoError(t, err)
		},
		read: func(place string) []brokerRead { return readJetStream(t, js, place) },
	}
}

func rabbitBroker(t *testing.T) *broker {
	b := testenv.RabbitMQ(t)
	conn, err := amqp.DialConfig("amqp://"+b.Addr, amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{Username: b.User, Password: b.Password}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	channel, err := conn.Channel()
	require.NoError(t, err)
	taken := map[string][]brokerRead{}
	return &broker{
		connection: fields{"broker": "rabbitmq", "username": b.User, "password": b.Password}, addr: b.Addr,
		target: func(place string) fields { return fields{"routingKey": place} },
		create: func(place string) {
			_, err := channel.QueueDeclare(place, false, true, true, false, nil)
			require.NoError(t, err)
		},
		read: func(place string) []brokerRead {
			for {
				m, ok, err := channel.Get(place, true)
				require.NoError(t, err)
				if !ok {
					return taken[place]
				}
				got := brokerRead{string(m.Body), map[string]string{"Content-Type": m.ContentType}}
				for name, value := range m.Headers {
					got.headers[name] = fmt.Sprint(value)
				}
				taken[place] = append(taken[place], got)
			}
		},
	}
}

func redisBroker(t *testing.T) *broker {
	b := testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: b.Addr, Password: b.Password})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return &broker{
		connection: fields{"broker": "redis", "password": b.Password}, addr: b.Addr, dedupes: true,
		target: func(place string) fields { return fields{"stream": place} },
		create: func(place string) {
			require.NoError(t, client.XGroupCreateMkStream(t.Context(), place, "readers", "$").Err())
		},
		read: func(place string) (out []brokerRead) {
			entries, err := client.XRange(t.Context(), place, "-", "+").Result()
			require.NoError(t, err)
			for _, e := range entries {
				got := brokerRead{headers: map[string]string{}}
				for name, value := range e.Values {
					got.headers[name] = fmt.Sprint(value)
				}
				got.body = got.headers["body"]
				out = append(out, got)
			}
			return out
		},
	}
}

func with(base fields, more ...fields) fields {
	out := fields{}
	for _, m := range append([]fields{base}, more...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func publishingNode(t *testing.T) *node {
	return startNode(t, func(c *admin.Config) {
		c.AddOns = admin.Settings{"connection-allow": {"127.0.0.0/8"}}
	})
}

func (n *node) connect(name string, b *broker, address string) {
	n.t.Helper()
	secrets := fields{}
	if password, has := b.connection["password"]; has {
		secrets["password"] = password
	}
	spec := with(b.connection, fields{"addresses": []string{address}})
	delete(spec, "password")
	n.do("POST", "/api/v1/connections", fields{"name": name, "spec": spec, "secrets": secrets}, nil, 201)
}

// patient runs are tried until the broker is there.
var patient = fields{"retry": fields{"maxAttempts": 100, "delay": "50ms"}}

// TestRunsPublish: by cron jobs, calls and timers. What has no place at the broker
// fails for good, and is delivered by its retry when it has one.
func TestRunsPublish(t *testing.T) {
	t.Parallel()
	for name, start := range brokers {
		t.Run(name, func(t *testing.T) {
			n := publishingNode(t)
			b := start(t)
			way, err := faults.New(b.addr, faults.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = way.Close() })
			n.connect(name, b, way.Addr())
			to := func(place string, more fields) fields {
				return with(b.target(place), fields{"connection": name}, more)
			}
			job := func(label string, input, change fields) string {
				return n.newJob("carillon", "publish", with(fields{"name": name + " " + label, "input": input}, change))
			}

			b.create("orders")
			r := n.until(n.runNow(job("once", to("orders", fields{
				"key": "order-{{input.order}}", "headers": fields{"Region": "{{input.region}}"}, "input": fields{"order": 77, "region": "Zürich"},
				"body": fields{"order": "{{input.order}}", "run": "{{run.id}}"},
			}), nil), nil), "succeeded")
			got := b.read("orders")
			require.Len(t, got, 1)
			require.JSONEq(t, `{"order":77,"run":"`+r.ID+`"}`, got[0].body)
			for header, want := range map[string]string{
				"Content-Type": "application/json", "Region": "Zürich", "Carillon-Key": "order-77", "Carillon-Attempt": "1",
				"Carillon-Dedupe-Key": r.ID, "Carillon-Run-Id": r.ID, "Carillon-Planned-At": r.FireAt.UTC().Format("2006-01-02T15:04:05.000Z"),
			} {
				require.Equal(t, want, got[0].headers[header], header)
			}
			var out struct{ MessageID string }
			require.NoError(t, json.Unmarshal(r.Output, &out))
			require.Equal(t, r.ID, out.MessageID)

			// A call and a timer.
			b.create("calls")
			var call struct {
				State       string
				MaxAttempts int
			}
			n.do("POST", "/api/v1/calls?wait=30s", fields{"executor": "carillon", "handler": "publish", "input": to("calls", fields{"body": "by a call"})}, &call, 201)
			require.Equal(t, []any{"succeeded", 10}, []any{call.State, call.MaxAttempts})
			timer := func(key, place string) {
				n.do("POST", "/api/v1/timers", fields{"executor": "carillon", "handler": "publish", "key": key, "after": "0s", "input": to(place, fields{"body": key})}, nil, 201)
			}
			timer(name+" timer", "calls")
			n.eventually(func() bool { return len(b.read("calls")) == 2 }, func() string { return "the timer has not fired" })

			b.create("cron")
			job("cron", to("cron", fields{"body": "tick"}), fields{"schedule": fields{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC"}})
			n.eventually(func() bool { return len(b.read("cron")) > 1 }, func() string { return "the cron job has not fired" })

			// Dead letters: of a job and of a timer, redriven when the place is there.
			dead := n.until(n.runNow(job("poison", to("later", fields{"body": "poison"}), patient), nil), "failed")
			require.Len(t, dead.Attempts, 1, dead.Error)
			timer(name+" dead", "later")
			var letters struct{ Items []run }
			n.eventually(func() bool {
				n.do("GET", "/api/v1/runs?state=failed&cause=timer", nil, &letters, 200)
				return len(letters.Items) > 0
			}, func() string { return "the timer's run has not failed" })
			b.create("later")
			want := map[string]string{"poison": dead.ID, name + " dead": letters.Items[0].ID}
			for range 2 { // a redrive that is repeated is the same message
				for _, id := range want {
					var again run
					n.do("POST", "/api/v1/runs/"+id+"/retry", nil, &again, 201)
					n.until(again.ID, "succeeded")
				}
			}
			delivered := b.read("later")
			if b.dedupes {
				require.Len(t, delivered, 2)
			} else { // consumers drop the others
				require.Len(t, delivered, 4)
			}
			for _, m := range delivered {
				require.Equal(t, want[m.body], m.headers["Carillon-Dedupe-Key"])
				require.NotEqual(t, want[m.body], m.headers["Carillon-Run-Id"])
			}

			// The broker goes away, and comes back.
			b.create("outage")
			require.NoError(t, way.Close())
			waits := n.runNow(job("outage", to("outage", fields{"body": "late"}), patient), nil)
			n.eventually(func() bool {
				var r run
				n.do("GET", "/api/v1/runs/"+waits, nil, &r, 200)
				return r.Attempt > 1 || r.State == "retry_wait"
			}, func() string { return "it is not tried again" })
			back, err := faults.New(b.addr, faults.Options{Listen: way.Addr()})
			require.NoError(t, err)
			t.Cleanup(func() { _ = back.Close() })
			n.until(waits, "succeeded")
			require.Len(t, b.read("outage"), 1)
		})
	}
}

// A stream that stores and does not answer is what a lost answer is. The next
// attempt has the same id, and JetStream drops it.
func TestAnAnswerOfJetStreamIsLost(t *testing.T) {
	t.Parallel()
	n := publishingNode(t)
	dir := t.TempDir()
	server, stop := natsOn(t, dir, -1)
	js := jetStreamOf(t, server)
	mute := &nats.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.*"}, NoAck: true}
	_, err := js.AddStream(mute)
	require.NoError(t, err)
	n.connect("nats", &broker{connection: fields{"broker": "nats", "password": "s3cret"}}, server.Addr().String())
	publishes := with(patient, fields{"input": fields{"connection": "nats", "subject": "orders.new", "body": "once"}, "timeout": "1s"})
	id := n.runNow(n.newJob("carillon", "publish", publishes), nil)
	n.eventually(func() bool { return len(readJetStream(t, js, "ORDERS")) == 1 }, func() string { return "nothing is stored" })
	var r run
	n.eventually(func() bool {
		n.do("GET", "/api/v1/runs/"+id, nil, &r, 200)
		return r.Attempt > 1
	}, func() string { return "it is not tried again" })
	mute.NoAck = false
	_, err = js.UpdateStream(mute)
	require.NoError(t, err)
	n.until(id, "succeeded")
	require.Len(t, readJetStream(t, js, "ORDERS"), 1)

	// The server itself dies and comes back with what it had.
	port := server.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	stop()
	id = n.runNow(n.newJob("carillon", "publish", with(publishes, fields{"name": "after the outage"})), nil)
	n.eventually(func() bool {
		n.do("GET", "/api/v1/runs/"+id, nil, &r, 200)
		return r.Attempt > 1 || r.State == "retry_wait"
	}, func() string { return "it is not tried again" })
	server, _ = natsOn(t, dir, int(port))
	n.until(id, "succeeded")
	require.Len(t, readJetStream(t, jetStreamOf(t, server), "ORDERS"), 2)
}

// TestPublishingIsChecked: where it is written, and by a tenant without connections.
func TestPublishingIsChecked(t *testing.T) {
	t.Parallel()
	n := publishingNode(t)
	job := fields{"name": "x", "executor": fields{"name": "carillon"}, "handler": "publish", "schedule": fields{"kind": "none", "zone": "UTC"}}
	n.do("POST", "/api/v1/jobs", job, nil, 404) // there is no such executor
	n.connect("orders", &broker{connection: fields{"broker": "nats"}}, "127.0.0.1:1")
	for _, in := range []fields{
		{"connection": "orders"}, {"connection": "orders", "topic": "a"},
		{"connection": "orders", "subject": "a.{{input.b}}"}, {"connection": "orders", "subject": "a", "headers": fields{"Nats-Rollup": "all"}},
	} {
		n.do("POST", "/api/v1/jobs", with(job, fields{"input": in}), nil, 422)
	}
	n.do("POST", "/api/v1/jobs", with(job, fields{"input": fields{"connection": "stranger", "subject": "a"}}), nil, 404)
	r := n.until(n.runNow(n.newJob("carillon", "publish", fields{"input": fields{"connection": "orders", "subject": "a"}}), fields{"connection": "stranger", "subject": "a"}), "failed")
	require.Len(t, r.Attempts, 1)
	require.Contains(t, r.Error, "stranger")

	// It calls nobody: that is the policy's to allow.
	r = n.until(n.runNow(n.newJob("carillon", "publish", fields{"name": "no key", "input": fields{"connection": "orders", "subject": "a", "key": "{{input.x}}"}}), nil), "failed")
	require.Contains(t, r.Error, `has no "x"`)
	n.do("POST", "/api/v1/jobs", with(job, fields{"handler": "http", "input": fields{"url": "http://127.0.0.1/"}}), nil, 403)
}

// A broker that hangs costs other connections' runs nothing.
func TestABrokerThatHangsDelaysNobody(t *testing.T) {
	t.Parallel()
	n := publishingNode(t)
	good := natsBroker(t)
	good.create("orders")
	way, err := faults.New(good.addr, faults.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = way.Close() })
	way.Silence()
	n.connect("good", good, good.addr)
	n.connect("hangs", good, way.Addr())
	jobs := map[string]string{}
	for _, name := range []string{"good", "hangs"} {
		jobs[name] = n.newJob("carillon", "publish", fields{"name": name, "blocking": "parallel", "parallelism": 1000, "input": with(good.target("orders"), fields{"connection": name})})
	}
	var wait []string
	for range 300 {
		n.runNow(jobs["hangs"], nil)
	}
	for range 50 {
		wait = append(wait, n.runNow(jobs["good"], nil))
	}
	for _, id := range wait {
		n.until(id, "succeeded")
	}
	require.Len(t, good.read("orders"), len(wait))
}
