package publish

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// A stage plays a broker that behaves, up to the message. Then it calls hostile,
// which has the connection for itself.
type stage func(conn net.Conn, hostile func(net.Conn))

// atOnce is a broker that is hostile from its first byte.
func atOnce(conn net.Conn, hostile func(net.Conn)) { hostile(conn) }

// redisStage answers commands until a script comes.
func redisStage(conn net.Conn, hostile func(net.Conn)) {
	in := bufio.NewReader(conn)
	line := func() string { text, _ := in.ReadString('\n'); return strings.TrimSpace(text) }
	for {
		count, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
		if err != nil {
			return
		}
		words := make([]string, count)
		for i := range words {
			line()
			words[i] = strings.ToLower(line())
		}
		switch words[0] {
		case "hello":
			_, _ = io.WriteString(conn, "%1\r\n+proto\r\n:3\r\n")
		case "evalsha", "eval", "cluster":
			hostile(conn)
			return
		default:
			_, _ = io.WriteString(conn, "+OK\r\n")
		}
	}
}

// natsStage lets the client in and waits for a message.
func natsStage(conn net.Conn, hostile func(net.Conn)) {
	_, _ = io.WriteString(conn, `INFO {"server_id":"A","version":"2.11.0","proto":1,"headers":true,"max_payload":1048576}`+"\r\n")
	for in := bufio.NewReader(conn); ; {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return
		case strings.HasPrefix(line, "PING"):
			_, _ = io.WriteString(conn, "PONG\r\n")
		case strings.HasPrefix(line, "HPUB"):
			hostile(conn)
			return
		}
	}
}

// ping sends so many pings, and waits for the answers.
func ping(conn net.Conn, n int) error {
	_, err := io.WriteString(conn, strings.Repeat("PING\r\n", n))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, n*len("PONG\r\n")))
	}
	return err
}

// kafkaStage answers which versions it speaks, and is hostile to any other request.
// With a login it asks for that.
func kafkaStage(conn net.Conn, hostile func(net.Conn)) {
	for {
		key, version, number, _, err := kafkaRequest(conn)
		if err != nil {
			return
		}
		var answer kmsg.Response
		switch key {
		case int16(kmsg.ApiVersions):
			versions := kmsg.NewPtrApiVersionsResponse()
			for key, most := range map[kmsg.Key]int16{kmsg.Produce: 9, kmsg.Metadata: 9, kmsg.InitProducerID: 4, kmsg.ApiVersions: 3, kmsg.SASLHandshake: 1, kmsg.SASLAuthenticate: 2} {
				versions.ApiKeys = append(versions.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: int16(key), MaxVersion: most})
			}
			answer = versions
		case int16(kmsg.SASLHandshake):
			answer = kmsg.NewPtrSASLHandshakeResponse()
		default:
			hostile(&numbered{conn, number})
			return
		}
		answer.SetVersion(min(version, 3))
		_, _ = conn.Write(kafkaAnswer(number, answer.AppendTo(nil)))
	}
}

// numbered knows the number of the request that waits for its answer.
type numbered struct {
	net.Conn
	number uint32
}

func kafkaRequest(conn io.Reader) (key, version int16, number uint32, rest []byte, err error) {
	head := make([]byte, 12)
	if _, err = io.ReadFull(conn, head); err != nil {
		return key, version, number, nil, err
	}
	rest = make([]byte, binary.BigEndian.Uint32(head)-8)
	_, err = io.ReadFull(conn, rest)
	return int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:])), binary.BigEndian.Uint32(head[8:]), rest, err
}

func kafkaAnswer(number uint32, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))
	return append(binary.BigEndian.AppendUint32(out, number), body...)
}

// metadata answers a request with this body.
func metadata(body string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Write(kafkaAnswer(conn.(*numbered).number, []byte(body)))
		_, _ = io.Copy(io.Discard, conn)
	}
}

// iterate asks for so many iterations.
func iterate(iterations int) func(net.Conn) {
	return func(conn net.Conn) {
		// The request was read already; its nonce is not needed to refuse the answer.
		answer := kmsg.NewPtrSASLAuthenticateResponse()
		answer.SASLAuthBytes = fmt.Appendf(nil, "r=x,s=c2FsdA==,i=%d", iterations)
		answer.SetVersion(2)
		_, _ = conn.Write(kafkaAnswer(conn.(*numbered).number, append([]byte{0}, answer.AppendTo(nil)...)))
		_, _ = io.Copy(io.Discard, conn)
	}
}

func amqpFrame(kind byte, channel uint16, payload string) string {
	head := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	return string(binary.BigEndian.AppendUint32(head, uint32(len(payload)))) + payload + "\xce"
}

func amqpMethod(channel, class, number uint16, fields string) string {
	head := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), number)
	return amqpFrame(1, channel, string(head)+fields)
}

func amqpLong(s string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// rabbitStart begins the handshake.
var rabbitStart = amqpMethod(0, 10, 10, "\x00\x09"+amqpLong("")+amqpLong("PLAIN")+amqpLong("en_US"))

// rabbitStage opens connection and channel, and waits for a message.
func rabbitStage(conn net.Conn, hostile func(net.Conn)) {
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		return
	}
	_, _ = io.WriteString(conn, rabbitStart)
	for in := bufio.NewReader(conn); ; {
		head := make([]byte, 7)
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(in, rest); err != nil {
			return
		}
		answer := ""
		switch {
		case head[0] == 3: // the body of a message
			hostile(conn)
			return
		case bytes.HasPrefix(rest, []byte{0, 10, 0, 11}):
			answer = amqpMethod(0, 10, 30, "\x00\x40\x00\x02\x00\x00\x00\x05")
		case bytes.HasPrefix(rest, []byte{0, 10, 0, 40}):
			answer = amqpMethod(0, 10, 41, "\x00")
		case bytes.HasPrefix(rest, []byte{0, 20, 0, 10}):
			answer = amqpMethod(1, 20, 11, amqpLong(""))
		case bytes.HasPrefix(rest, []byte{0, 85, 0, 10}):
			answer = amqpMethod(1, 85, 11, "")
		}
		_, _ = io.WriteString(conn, answer)
	}
}

// says is a hostile broker that repeats a text.
func says(text string, times int) func(net.Conn) {
	return func(conn net.Conn) { testenv.Speak(conn, text, times) }
}

// stages are those in which a message is under way.
var stages = map[noun.Broker]stage{
	noun.BrokerRedis: redisStage, noun.BrokerNATS: natsStage, noun.BrokerKafka: kafkaStage, noun.BrokerRabbitMQ: rabbitStage,
}

// hostileWorld is a publisher with connections to hostile peers.
type hostileWorld struct {
	p     *Publisher
	stop  context.CancelFunc
	ended chan error // of Run
}

// hostilePeer is one kind of it.
type hostilePeer struct {
	broker  noun.Broker
	login   bool
	play    func(net.Conn)
	cluster bool // there is another address, where nobody listens
}

// besideHostile makes connections "0" and so on to peers.
func besideHostile(t *testing.T, peers ...hostilePeer) *hostileWorld {
	t.Helper()
	var r rows
	for i, h := range peers {
		spec := noun.ConnectionSpec{Broker: h.broker, Addresses: []string{testenv.Peer(t, h.play).String()}}
		if h.cluster {
			spec.Addresses = append(spec.Addresses, "127.0.0.1:1")
		}
		var secrets map[string]string
		if h.broker == noun.BrokerRabbitMQ || h.login {
			spec.Username, secrets = "carillon", map[string]string{noun.SecretPassword: "hemmelig"}
		}
		switch {
		case h.broker == noun.BrokerRabbitMQ:
			spec.VirtualHost = "/"
		case h.login:
			spec.Mechanism = noun.MechanismScram256
		}
		r.put(t, int64(i+1), strconv.Itoa(i), spec, secrets)
	}
	w := &hostileWorld{
		p:     New(Options{Connections: &r, Secrets: box(t), AllowPrefixes: loopback, Logger: slog.New(slog.DiscardHandler)}),
		ended: make(chan error, 1),
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(t.Context())
	go func() { w.ended <- w.p.Run(ctx) }()
	return w
}

// publish sends a message by connection i.
func (w *hostileWorld) publish(ctx context.Context, i int, to noun.Broker) error {
	targets := map[noun.Broker]noun.MessageTarget{
		noun.BrokerRedis: {Stream: "s"}, noun.BrokerNATS: {Subject: "s"}, noun.BrokerKafka: {Topic: "s"}, noun.BrokerRabbitMQ: {RoutingKey: "s"},
	}
	return w.p.Publish(ctx, noun.Message{Tenant: 1, Connection: strconv.Itoa(i), Target: targets[to], ID: "1", Body: []byte("{}")})
}

// Brokers that break a bound cost no memory, and the message's error says which.
func TestHostileBrokers(t *testing.T) {
	brokers := strings.Repeat("\x00\x00\x00\x01\x01\x00\x00\x23\x84\x00\x00", 20_000)
	for _, r := range []struct {
		name    string
		broker  noun.Broker
		stage   stage
		hostile func(net.Conn)
		cause   string
	}{
		{"a long list", noun.BrokerRedis, atOnce, says("*2000000000\r\n", 1), "a list of 2000000000 elements"},
		{"lists in lists", noun.BrokerRedis, atOnce, says(strings.Repeat("*1000000\r\n", 1000), 1), "a list of 1000000 elements"},
		{"a long answer to a script", noun.BrokerRedis, redisStage, says("*2000000000\r\n", 1), "a list of 2000000000 elements"},
		{"short lists in lists", noun.BrokerRedis, redisStage, says("*1\r\n", testenv.Endless), "to more than 8 levels"},
		{"a long text", noun.BrokerRedis, redisStage, says("$2000000000\r\n", 1), "a text of 2000000000 bytes"},
		{"an endless line", noun.BrokerRedis, redisStage, says("+"+strings.Repeat("x", 1000), testenv.Endless), "a line has more than 4096 bytes"},
		{"endless pushes", noun.BrokerRedis, atOnce, says(">2\r\n+a\r\n+b\r\n", testenv.Endless), "more than 256 push messages"},
		{"endless pushes as an answer to a script", noun.BrokerRedis, redisStage, says(">2\r\n+a\r\n+b\r\n", testenv.Endless), "more than 256 push messages"},
		{"a long map", noun.BrokerRedis, atOnce, says("%900000000\r\n", 1), "a list of 900000000 elements"},
		{"a long attribute", noun.BrokerRedis, redisStage, says("|900000000\r\n", 1), "a list of 900000000 elements"},
		{"another protocol", noun.BrokerRedis, atOnce, says("HTTP/1.1 400 Bad Request\r\n", 1), "no type of its protocol"},

		{"endless INFO", noun.BrokerNATS, atOnce, says("INFO "+strings.Repeat("x", 1000), testenv.Endless), "a line has more than 65536 bytes"},
		{"another protocol", noun.BrokerNATS, atOnce, says("HTTP/1.1 400 Bad Request\r\n", 1), "a server begins with INFO"},
		{"a long payload", noun.BrokerNATS, natsStage, says("MSG a 1 2000000000\r\n", 1), `a payload of "2000000000" bytes`},
		{"an endless line", noun.BrokerNATS, natsStage, says("-ERR "+strings.Repeat("x", 1000), testenv.Endless), "a line has more than 4096 bytes"},
		{"endless errors", noun.BrokerNATS, natsStage, says("-ERR 'Permissions Violation for Publish to \""+strings.Repeat("x", 1000)+"\"'\r\n", testenv.Endless), "without a request"},
		{"endless payloads", noun.BrokerNATS, natsStage, says("MSG a 99 1000\r\n"+strings.Repeat("x", 1000)+"\r\n", testenv.Endless), "without a request"},
		{"endless INFOs", noun.BrokerNATS, natsStage, says(`INFO {"connect_urls":["`+strings.Repeat(`10.0.0.1:1","`, 4000)+`10.0.0.1:1"]}`+"\r\n", testenv.Endless), "without a request"},

		{"95 MiB", noun.BrokerKafka, atOnce, afterRequest(says("\x05\xf0\x00\x00", 1)), "an answer of 99614720 bytes"},
		{"another protocol", noun.BrokerKafka, atOnce, afterRequest(says("HTTP/1.1 400 Bad Request\r\n", 1)), "an answer of 1213486160 bytes"},
		{"topics that are not there", noun.BrokerKafka, kafkaStage, metadata("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\xff\xff\x3f" + strings.Repeat("x", 1<<20-100)), "the metadata list"},
		{"many brokers", noun.BrokerKafka, kafkaStage, metadata("\x00\x00\x00\x00\x00\xa1\x9c\x01" + brokers + "\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00"), "the metadata list"},

		{"a long frame", noun.BrokerRabbitMQ, atOnce, says("\x01\x00\x00\x7f\xff\xff\xff", 1), "a frame of 2147483647 bytes"},
		{"an endless text", noun.BrokerRabbitMQ, atOnce, says("\x01\x00\x00\x00\x00\x00\x0c\x00\x0a\x00\x14\x7f\xff\xff\xffxxxx\xce", testenv.Endless), "a frame announces more than it holds"},
		{"many fields", noun.BrokerRabbitMQ, atOnce, says(amqpMethod(0, 10, 10, "\x00\x09"+amqpLong(strings.Repeat("\x00V", 1500))), 1), "a table has more than 1024 fields"},
		{"a confirm of all", noun.BrokerRabbitMQ, rabbitStage, says(amqpMethod(1, 60, 80, "\x7f\xff\xff\xff\xff\xff\xff\xff\x01"), 1), "the broker confirmed message 9223372036854775807, and 1 were published"},
		{"endless confirms", noun.BrokerRabbitMQ, rabbitStage, says(amqpMethod(1, 60, 80, "\x00\x00\x00\x00\x00\x00\x00\x07\x00"), testenv.Endless), "the broker confirmed message 7, and 1 were published"},
		{"endless returns", noun.BrokerRabbitMQ, rabbitStage, says(amqpMethod(1, 60, 50, "\x01\x38\x00\x00\x00")+amqpFrame(2, 1, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), testenv.Endless), "the broker returned 2 messages, and 1 were published"},
		{"endless heartbeats in the handshake", noun.BrokerRabbitMQ, atOnce, says(rabbitStart+strings.Repeat(amqpFrame(8, 0, ""), 20_000), 1), "more than 1024 frames without a request"},
		{"endless heartbeats", noun.BrokerRabbitMQ, rabbitStage, says(amqpFrame(8, 0, ""), testenv.Endless), "more than 1024 frames without a request"},
		{"another protocol", noun.BrokerRabbitMQ, atOnce, says("HTTP/1.1 400 Bad Request\r\n", 1), "bytes is announced"},
	} {
		t.Run(string(r.broker)+" "+r.name, func(t *testing.T) {
			w := besideHostile(t, hostilePeer{broker: r.broker, play: func(conn net.Conn) { r.stage(conn, r.hostile) }})
			n := testenv.Allocated(func() {
				err := w.publish(t.Context(), 0, r.broker)
				require.ErrorContains(t, err, r.cause)
				require.False(t, IsPermanent(err), "%v", err)
				w.stop()
				require.NoError(t, <-w.ended)
			})
			require.Less(t, n, uint64(testenv.MostForAPeer))
		})
	}
}

// afterRequest answers the first request of a client of Kafka.
func afterRequest(hostile func(net.Conn)) func(net.Conn) {
	return func(conn net.Conn) {
		if _, _, _, _, err := kafkaRequest(conn); err == nil {
			hostile(conn)
		}
	}
}

// A login that computes for half an hour would keep the node from stopping.
func TestAHostileLogin(t *testing.T) {
	w := besideHostile(t, hostilePeer{broker: noun.BrokerKafka, login: true, play: func(conn net.Conn) { kafkaStage(conn, iterate(2_000_000_000)) }})
	require.ErrorContains(t, w.publish(t.Context(), 0, noun.BrokerKafka), `asks for "2000000000" iterations of SCRAM`)
	w.stop()
	require.NoError(t, <-w.ended)
}

// The library keeps a client for each node that a cluster lists.
func TestAHostileCluster(t *testing.T) {
	list := "*1\r\n*1202\r\n:0\r\n:16383\r\n"
	for i := range 1200 {
		list += fmt.Sprintf("*2\r\n$%d\r\n127.0.%d.%d\r\n:1\r\n", len(fmt.Sprintf("127.0.%d.%d", i/250, i%250+1)), i/250, i%250+1)
	}
	w := besideHostile(t, hostilePeer{broker: noun.BrokerRedis, cluster: true, play: func(conn net.Conn) { redisStage(conn, says(list, 1)) }})
	n := testenv.Allocated(func() {
		require.Error(t, w.publish(t.Context(), 0, noun.BrokerRedis))
		w.stop()
		require.NoError(t, <-w.ended)
	})
	require.Less(t, n, uint64(testenv.MostForAPeer))
}

// The node stops although brokers neither answer nor break a bound. Nothing else ends
// the messages: their errors say so.
func TestTheNodeStopsBesideHostileBrokers(t *testing.T) {
	var peers []hostilePeer
	under := make(chan struct{}, 100)
	for broker, behaves := range stages {
		for _, stage := range []stage{atOnce, behaves} {
			peers = append(peers, hostilePeer{broker: broker, play: func(conn net.Conn) {
				stage(conn, func(conn net.Conn) {
					under <- struct{}{}
					testenv.Speak(conn, "", 0)
				})
			}})
		}
	}
	peers = append(peers, hostilePeer{broker: noun.BrokerNATS, play: func(conn net.Conn) {
		natsStage(conn, func(conn net.Conn) {
			under <- struct{}{}
			for ping(conn, 1) == nil { // each is answered, so they have no bound
			}
		})
	}})
	w := besideHostile(t, peers...)
	done := make(chan error, len(peers))
	for i, h := range peers {
		go func() { done <- w.publish(t.Context(), i, h.broker) }()
	}
	for range peers {
		<-under
	}
	w.stop()
	require.NoError(t, <-w.ended)
	for range peers {
		require.ErrorContains(t, <-done, "this node stops")
	}
}
