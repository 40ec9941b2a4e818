//go:build proof

package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/internal/egress"
)

func TestAMessageArrivesWithItsHeaders(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		m := w.message("run 7")
		m.Headers = map[string]string{"Region": "Zürich"}
		m.PlannedAt, m.Key, m.RunID, m.Attempt = time.Date(2026, 11, 25, 20, 0, 0, 250e6, time.FixedZone("", 3600)), "order-77", "4711", 2
		require.NoError(t, p.Publish(t.Context(), m))
		got := w.read(t, 1)
		require.Len(t, got, 1)
		require.Equal(t, string(m.Body), got[0].body)
		for name, want := range map[string]string{
			"Content-Type": "application/json", "Region": "Zürich", "Carillon-Dedupe-Key": "run 7",
			"Carillon-Planned-At": "2026-11-25T19:00:00.250Z", "Carillon-Key": "order-77", "Carillon-Run-Id": "4711", "Carillon-Attempt": "2",
		} {
			require.Equal(t, want, got[0].headers[name], name)
		}
		if w.spec.Broker == noun.BrokerKafka {
			require.Equal(t, "order-77", got[0].headers["key"], "messages of one key stay in order")
		}
	})
}

func TestTheSameIDAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		for _, id := range []string{"a", "a", "b", "a"} {
			require.NoError(t, p.Publish(t.Context(), w.message(id)))
		}
		want := []string{`{"id":"a"}`, `{"id":"b"}`}
		if !w.dedupes { // then consumers do, by the header
			want = []string{`{"id":"a"}`, `{"id":"a"}`, `{"id":"a"}`, `{"id":"b"}`}
		}
		require.Equal(t, want, bodies(w.read(t, len(want))))
	})
}

func TestManyAtOnceArriveOnce(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		const n = 300
		var want []string
		var work sync.WaitGroup
		errs := make([]error, n)
		for i := range n {
			m := w.message(strconv.Itoa(i))
			want = append(want, string(m.Body))
			work.Go(func() { errs[i] = p.Publish(t.Context(), m) })
		}
		work.Wait()
		require.NoError(t, errors.Join(errs...))
		slices.Sort(want)
		require.Equal(t, want, bodies(w.read(t, n)))
	})
}

func TestNothingTakesIt(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		m := w.message("1")
		m.Target = w.missing
		err := p.Publish(t.Context(), m)
		require.True(t, IsPermanent(err) && !IsSilent(err), "%v", err)
		require.NoError(t, p.Publish(t.Context(), w.message("2")), "the connection is as good as before")
		require.Equal(t, []string{`{"id":"2"}`}, bodies(w.read(t, 1)))
	})
}

func TestAWrongPassword(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		right := w.secrets
		w.secrets = map[string]string{noun.SecretPassword: "not " + right[noun.SecretPassword]}
		var welcome atomic.Bool
		if w.kafka != nil { // kfake hangs up, and real ones answer
			w.kafka.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
				w.kafka.KeepControl()
				response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				response.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return response, nil, !welcome.Load()
			})
		}
		var r rows
		r.put(t, 1, "broker", w.spec, w.secrets)
		p := publisher(t, &r, nil)
		err := p.Publish(t.Context(), w.message("1"))
		require.True(t, IsPermanent(err), "%v", err)
		require.NotContains(t, err.Error(), w.secrets[noun.SecretPassword])
		require.Zero(t, p.opened(), "what failed is not kept")

		welcome.Store(true)
		r.put(t, 1, "broker", w.spec, right)
		p.forgetRows()
		require.NoError(t, p.Publish(t.Context(), w.message("2")))
	})
}

// opened counts the connections that are kept.
func (p *Publisher) opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

// forgetRows is what rowAge does.
func (p *Publisher) forgetRows() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.rows)
}

func TestAnAddressThatMayNotBeReached(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		var r rows
		r.put(t, 1, "broker", w.spec, w.secrets)
		p := publisher(t, &r, func(o *Options) { o.AllowPrefixes = nil })
		err := p.Publish(t.Context(), w.message("1"))
		require.True(t, IsPermanent(err), "%v", err)
		require.EqualError(t, err, "the host leads to a network that may not be reached (--connection-allow)")
		require.Zero(t, w.proxy.Accepted())
	})
}

// An address that is refused says nothing of messages once another one has let us in.
func TestOneOfTheAddressesMayNotBeReached(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) *world{
		"nats": func(t *testing.T) *world {
			server := startNATS(t, nil)
			_, err := natsClient(t, server).AddStream(&nats.StreamConfig{Name: "FULL", Subjects: []string{"full"}, MaxMsgs: 1, Discard: nats.DiscardNew})
			require.NoError(t, err)
			return &world{
				spec:    noun.ConnectionSpec{Broker: noun.BrokerNATS, Addresses: []string{server.Addr().String()}, Username: user},
				secrets: map[string]string{noun.SecretPassword: password}, target: noun.MessageTarget{Subject: "full"},
			}
		},
		"rabbitmq": func(t *testing.T) *world {
			w := rabbitWorld(t)
			full, err := rabbitClient(t).QueueDeclare("", false, true, true, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
			require.NoError(t, err)
			w.target = noun.MessageTarget{RoutingKey: full.Name}
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.spec.Addresses = append([]string{"10.0.0.1:1"}, w.spec.Addresses...)
			full := false
			for refused := false; !refused; { // NATS's library takes them in any order
				p := w.publisher(t)
				dial := p.dial
				p.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					c, err := dial(ctx, network, address)
					refused = refused || egress.Refused(err)
					return c, err
				}
				err := p.Publish(t.Context(), w.message(uniqueName()))
				require.False(t, IsPermanent(err), "%v", err)
				require.Equal(t, full, err != nil, "%v", err)
				full = true
				err = p.Publish(t.Context(), w.message(uniqueName()))
				require.Error(t, err)
				require.False(t, IsPermanent(err) || IsSilent(err), "consumers make room: %v", err)
			}
		})
	}
}

func TestABrokerThatIsNotThere(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		require.NoError(t, w.proxy.Close())
		err := p.Publish(t.Context(), w.message("1"))
		require.Error(t, err)
		require.False(t, IsPermanent(err), "%v", err)
		require.True(t, IsSilent(err), "%v", err)
	})
}

// again publishes until it goes; each failure must be one that can be retried.
func again(t *testing.T, p *Publisher, m noun.Message) {
	t.Helper()
	for {
		err := p.Publish(t.Context(), m)
		if err == nil {
			return
		}
		require.NoError(t, t.Context().Err())
		require.False(t, IsPermanent(err), "%v", err)
	}
}

func TestABrokenConnectionIsMadeAgain(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		p := w.publisher(t)
		var want []string
		for i := range 4 {
			m := w.message(strconv.Itoa(i))
			want = append(want, string(m.Body))
			again(t, p, m)
			require.Positive(t, w.proxy.Reset())
		}
		got := bodies(w.read(t, len(want)))
		require.Equal(t, want, slices.Compact(got))
	})
}

// Of the connections that Redis's client keeps, all die at once; one message finds
// out.
func TestDeadConnectionsToRedisCostOneAttempt(t *testing.T) {
	w := redisWorld(t)
	p := w.publisher(t)
	w.proxy.Delay(20 * time.Millisecond) // so that it opens some
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() { assert.NoError(t, p.Publish(t.Context(), w.message(strconv.Itoa(i)))) })
	}
	work.Wait()
	require.Greater(t, w.proxy.Reset(), 2)
	require.True(t, IsSilent(p.Publish(t.Context(), w.message("first"))))
	for i := range 20 {
		require.NoError(t, p.Publish(t.Context(), w.message("later "+strconv.Itoa(i))))
	}
}

// A broker that says nothing costs a message its context, and others nothing.
func TestABrokerThatHangs(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		other := redisWorld(t)
		var r rows
		r.put(t, 1, "broker", w.spec, w.secrets)
		r.put(t, 2, "other", other.spec, other.secrets)
		p := publisher(t, &r, nil)
		require.NoError(t, p.Publish(t.Context(), w.message("1")))
		w.proxy.Silence()
		ctx, cancel := context.WithCancel(t.Context())
		hung := make(chan error, 100)
		for i := range cap(hung) {
			go func() { hung <- p.Publish(ctx, w.message("hung "+strconv.Itoa(i))) }()
		}
		for i := range 100 {
			m := other.message(strconv.Itoa(i))
			m.Connection = "other"
			require.NoError(t, p.Publish(t.Context(), m))
		}
		require.Empty(t, hung)
		cancel()
		for range cap(hung) {
			err := <-hung
			require.Error(t, err)
			require.True(t, !IsPermanent(err) && IsSilent(err), "%v", err)
		}
		w.proxy.Heal()
		again(t, p, w.message("2"))
		require.Contains(t, bodies(w.read(t, 2)), `{"id":"2"}`)
	})
}

// Silence does not keep a node from stopping, nor leave anything behind (goleak).
func TestTheEndWhileABrokerHangs(t *testing.T) {
	eachBroker(t, func(t *testing.T, w *world) {
		var r rows
		r.put(t, 1, "broker", w.spec, w.secrets)
		p := New(Options{Connections: &r, Secrets: box(t), AllowPrefixes: loopback, Logger: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		require.NoError(t, p.Publish(t.Context(), w.message("1")))
		w.proxy.Silence()
		under, give := context.WithCancel(t.Context())
		hung := make(chan error, 1)
		go func() { hung <- p.Publish(under, w.message("2")) }()
		stop()
		give()
		require.Error(t, <-hung)
		require.NoError(t, <-ended)
	})
}

func TestTLS(t *testing.T) {
	pair, authority := certificate(t)
	server := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	_, stranger := certificate(t)
	for name, start := range map[string]func(t *testing.T) *world{
		"nats": func(t *testing.T) *world {
			s := startNATS(t, func(o *natsserver.Options) { o.TLSConfig, o.TLS, o.TLSTimeout = server, true, 10 })
			_, err := natsClient(t, s, nats.Secure(&tls.Config{InsecureSkipVerify: true})).AddStream(&nats.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.*"}})
			require.NoError(t, err)
			return &world{
				spec:   noun.ConnectionSpec{Broker: noun.BrokerNATS, Addresses: []string{s.Addr().String()}, Username: user},
				target: noun.MessageTarget{Subject: "orders.cancelled"},
			}
		},
		"kafka": func(t *testing.T) *world { // the others open TLS in the same way
			return &world{spec: kafkaSpec(startKafka(t, kfake.TLS(server)).ListenAddrs()[0]), target: noun.MessageTarget{Topic: "orders"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.secrets = map[string]string{noun.SecretPassword: password}
			w.spec.TLS = noun.ConnectionTLS{Enabled: true, Authorities: authority}
			require.NoError(t, w.publisher(t).Publish(t.Context(), w.message("1")))

			w.spec.TLS.ServerName = "another.example"
			require.Error(t, w.publisher(t).Publish(t.Context(), w.message("2")))
			w.spec.TLS = noun.ConnectionTLS{Enabled: true, Authorities: stranger}
			require.Error(t, w.publisher(t).Publish(t.Context(), w.message("3")))
			w.spec.TLS = noun.ConnectionTLS{}
			require.Error(t, w.publisher(t).Publish(t.Context(), w.message("4")))
		})
	}
}

func TestNATSRefusals(t *testing.T) {
	server := startNATS(t, nil)
	js := natsClient(t, server)
	_, err := js.AddStream(&nats.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.*"}})
	require.NoError(t, err)
	_, err = js.AddStream(&nats.StreamConfig{Name: "FULL", Subjects: []string{"full"}, MaxMsgs: 1, Discard: nats.DiscardNew})
	require.NoError(t, err)
	_, err = js.AddStream(&nats.StreamConfig{Name: "SMALL", Subjects: []string{"small"}, MaxMsgSize: 10})
	require.NoError(t, err)
	w := &world{spec: noun.ConnectionSpec{Broker: noun.BrokerNATS, Addresses: []string{server.Addr().String()}, Username: user}, secrets: map[string]string{noun.SecretPassword: password}}
	p := w.publisher(t)
	send := func(p *Publisher, id string, target noun.MessageTarget) error {
		w.target = target
		return p.Publish(t.Context(), w.message(id))
	}
	require.NoError(t, send(p, "1", noun.MessageTarget{Subject: "full"}))
	err = send(p, "2", noun.MessageTarget{Subject: "full"})
	require.Error(t, err)
	require.False(t, IsPermanent(err), "consumers make room: %v", err)
	require.True(t, IsPermanent(send(p, "3", noun.MessageTarget{Subject: "small"})))
	require.True(t, IsPermanent(send(p, "4", noun.MessageTarget{Subject: "orders.new", Stream: "SMALL"})), "another stream has the subject")

	w.spec.Username = "guest"
	err = send(w.publisher(t), "5", noun.MessageTarget{Subject: "orders.new"})
	require.True(t, IsPermanent(err), "%v", err)
	require.ErrorContains(t, err, "refuses")
}

func TestRabbitMQRefusals(t *testing.T) {
	w := rabbitWorld(t)
	channel := rabbitClient(t)
	full, err := channel.QueueDeclare("", false, true, true, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	require.NoError(t, err)
	p := w.publisher(t)
	send := func(id string, target noun.MessageTarget) error {
		m := w.message(id)
		m.Target = target
		return p.Publish(t.Context(), m)
	}
	err = send("1", noun.MessageTarget{Exchange: w.target.Exchange, RoutingKey: "nobody.is.bound"})
	require.True(t, IsPermanent(err), "%v", err)
	require.ErrorContains(t, err, "no queue takes the message")
	require.ErrorContains(t, send("2", noun.MessageTarget{RoutingKey: "no such queue"}), "no queue takes the message")

	require.NoError(t, send("3", noun.MessageTarget{RoutingKey: full.Name}), "by the default exchange")
	err = send("4", noun.MessageTarget{RoutingKey: full.Name})
	require.ErrorContains(t, err, "nack")
	require.False(t, IsPermanent(err), "consumers make room")

	w.spec.VirtualHost = "nowhere"
	err = w.publisher(t).Publish(t.Context(), w.message("5"))
	require.True(t, IsPermanent(err), "%v", err)
}

// A missing exchange closes the channel, which is the message's own.
func TestOneRefusalCostsNoOtherMessage(t *testing.T) {
	w := rabbitWorld(t)
	p := w.publisher(t)
	const n = 100
	var work sync.WaitGroup
	errs, refused := make([]error, n), make([]error, n)
	for i := range n {
		work.Go(func() { errs[i] = p.Publish(t.Context(), w.message(strconv.Itoa(i))) })
		work.Go(func() {
			m := w.message(fmt.Sprint("lost ", i))
			m.Target = w.missing
			refused[i] = p.Publish(t.Context(), m)
		})
	}
	work.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, err := range refused {
		require.True(t, IsPermanent(err), "%v", err)
	}
	require.Len(t, w.read(t, n), n)
}

func TestKafkaRefusals(t *testing.T) {
	cluster := startKafka(t)
	w := &world{spec: kafkaSpec(cluster.ListenAddrs()[0]), secrets: map[string]string{noun.SecretPassword: password}, target: noun.MessageTarget{Topic: "orders"}}
	p := w.publisher(t)
	answer := func(code *kerr.Error, times int) {
		for range times {
			cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
				asked := request.(*kmsg.ProduceRequest)
				response := asked.ResponseKind().(*kmsg.ProduceResponse)
				for _, topic := range asked.Topics {
					partition := kmsg.NewProduceResponseTopicPartition()
					partition.ErrorCode = code.Code
					response.Topics = append(response.Topics, kmsg.ProduceResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID, Partitions: []kmsg.ProduceResponseTopicPartition{partition}})
				}
				return response, nil, true
			})
		}
	}
	for _, code := range []*kerr.Error{kerr.MessageTooLarge, kerr.TopicAuthorizationFailed, kerr.PolicyViolation} {
		answer(code, 1)
		err := p.Publish(t.Context(), w.message(code.Message))
		require.True(t, IsPermanent(err), "%s: %v", code.Message, err)
	}
	answer(kerr.NotEnoughReplicas, 2)
	require.NoError(t, p.Publish(t.Context(), w.message("later")), "the client tries again itself")
	require.Equal(t, []string{`{"id":"later"}`}, bodies(readKafka(t, w.spec, 1)))
}

// The broker has it and its answer is lost: what the client sends again is known
// by its sequence number.
func TestKafkaLosesAnAnswer(t *testing.T) {
	w := kafkaWorld(t)
	p := w.publisher(t)
	require.NoError(t, p.Publish(t.Context(), w.message("first")))
	var requests atomic.Int64
	w.kafka.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		if requests.Add(1) == 1 {
			w.proxy.Reset()
		}
		return nil, nil, false // it is handled as usual
	})
	require.NoError(t, p.Publish(t.Context(), w.message("once")))
	require.EqualValues(t, 2, requests.Load())
	require.NoError(t, p.Publish(t.Context(), w.message("last")))
	require.Equal(t, []string{`{"id":"first"}`, `{"id":"last"}`, `{"id":"once"}`}, bodies(w.read(t, 3)))
}

func TestRedisRefusals(t *testing.T) {
	w := redisWorld(t)
	client := redisClient(t)
	p := w.publisher(t)
	send := func(id string, target noun.MessageTarget) error {
		m := w.message(id)
		m.Target = target
		return p.Publish(t.Context(), m)
	}
	require.NoError(t, client.Set(t.Context(), "text:"+t.Name(), "x", 0).Err())
	err := send("1", noun.MessageTarget{Stream: "text:" + t.Name()})
	require.True(t, IsPermanent(err), "%v", err)

	require.True(t, IsPermanent(send("2", w.missing)))
	created := w.missing
	created.Create, created.MaxLength = true, 1000
	require.NoError(t, send("2", created), "the first try has left no trace of its id")
	length, err := client.XLen(t.Context(), created.Stream).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, length)

	key := dedupeKey(w.target.Stream, "3")
	require.NoError(t, send("3", w.target))
	left, err := client.PTTL(t.Context(), key).Result()
	require.NoError(t, err)
	require.Positive(t, left, "the id is forgotten some time")
	require.LessOrEqual(t, left, DedupeWindow)

	require.Equal(t, "carillon:dedupe:{a}:b{a}c:1", dedupeKey("b{a}c", "1"))
}
