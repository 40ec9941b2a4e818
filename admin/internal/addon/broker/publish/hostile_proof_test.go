//go:build proof

package publish

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// words are pieces of each protocol that a fuzzing peer puts together.
var words = map[noun.Broker][]string{
	noun.BrokerRedis: {
		"*2\r\n", "*1000000\r\n", "*-1\r\n", "%1\r\n", "~3\r\n", ">2\r\n", "|1\r\n", "$3\r\n", "$2000000000\r\n", "abc\r\n", "+OK\r\n", "-ERR no\r\n",
		":1\r\n", ",1.5\r\n", "(99\r\n", "_\r\n", "#t\r\n", "=5\r\ntxt:a\r\n", "!3\r\nERR\r\n", "+message\r\n", "-MOVED 1 127.0.0.1:1\r\n",
	},
	noun.BrokerNATS: {
		"INFO {}\r\n", `INFO {"tls_required":true}` + "\r\n", `INFO {"connect_urls":["127.0.0.1:1"]}` + "\r\n", "PING\r\n", "PONG\r\n", "+OK\r\n", "-ERR 'Stale Connection'\r\n",
		"-ERR 'Permissions Violation for Publish to \"s\"'\r\n", "MSG a 1 3\r\nabc\r\n", "HMSG a 1 12 15\r\nNATS/1.0\r\n\r\nabc\r\n", "MSG a 1 500000\r\n", "HMSG a 1 99 3\r\n",
	},
	noun.BrokerKafka: {
		"\x00\x00\x00\x08\x00\x00\x00\x00", "\x00\x00\x00\x00", "\x00\x00\x00\x01", "\xff\xff\xff\xff", "\x00\x10\x00\x00", "\x05orders", "\xff\xff\x3f", "\x02", "\x01", "\x00", "\x7f\xff",
	},
	noun.BrokerRabbitMQ: {
		amqpMethod(0, 10, 10, "\x00\x09"+amqpLong("")+amqpLong("PLAIN")+amqpLong("en_US")), amqpMethod(0, 10, 30, "\x00\x40\x00\x02\x00\x00\x00\x05"), amqpMethod(0, 10, 41, "\x00"),
		amqpMethod(0, 10, 50, "\x01\x40\x02no\x00\x00\x00\x00"), amqpMethod(0, 10, 60, "\x02no"), amqpMethod(1, 20, 11, amqpLong("")), amqpMethod(1, 20, 20, "\x00"), amqpMethod(1, 20, 40, "\x01\x94\x02no\x00\x00\x00\x00"),
		amqpMethod(1, 85, 11, ""), amqpMethod(1, 60, 50, "\x01\x38\x00\x00\x00"), amqpMethod(1, 60, 80, "\x00\x00\x00\x00\x00\x00\x00\x01\x01"), amqpMethod(1, 60, 120, "\x00\x00\x00\x00\x00\x00\x00\x01\x00"),
		amqpFrame(2, 1, "\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x00"), amqpFrame(3, 1, "x"), amqpFrame(8, 0, ""),
	},
}

// babble puts words together, changes some bytes, and repeats some.
func babble(random *rand.Rand, words []string) string {
	var b strings.Builder
	for range 1 + random.IntN(12) {
		word := []byte(words[random.IntN(len(words))])
		switch random.IntN(6) {
		case 0:
			word[random.IntN(len(word))] = byte(random.Uint32())
		case 1:
			word = word[:random.IntN(len(word)+1)]
		case 2:
			for range 64 {
				word = append(word, byte(random.Uint32()))
			}
		}
		times := 1
		if random.IntN(4) == 0 {
			times = 1 + random.IntN(3000)
		}
		b.WriteString(strings.Repeat(string(word), times))
	}
	return b.String()
}

// Peers that babble cost no memory, and the node stops beside them.
func TestFuzzingPeers(t *testing.T) {
	for broker, behaves := range stages {
		rounds := uint64(300)
		if broker == noun.BrokerKafka { // its library waits for up to 5 s between tries
			rounds = 30
		}
		for name, stage := range map[string]stage{"at once": atOnce, "after a message": behaves} {
			for seed := range rounds {
				t.Run(fmt.Sprintf("%s %s %d", broker, name, seed), func(t *testing.T) {
					text := babble(rand.New(rand.NewPCG(seed, 1)), words[broker])
					ctx, enough := context.WithCancel(t.Context())
					var heard atomic.Int64
					w := besideHostile(t, hostilePeer{broker: broker, play: func(conn net.Conn) {
						stage(conn, func(conn net.Conn) {
							if heard.Add(1) == 2 { // Kafka's library would try again for 30 s
								enough()
							}
							text := text
							if asked, ok := conn.(*numbered); ok { // an answer of the right length reaches further
								text = string(kafkaAnswer(asked.number, []byte(text)))
							}
							_, _ = io.WriteString(conn, text)
							if half, ok := conn.(*net.TCPConn); ok {
								_ = half.CloseWrite()
								_, _ = io.Copy(io.Discard, conn)
							}
						})
					}})
					require.Less(t, testenv.Allocated(func() {
						_ = w.publish(ctx, 0, broker) // anything but a hang: it may even look like a confirm
						w.stop()
						require.NoError(t, <-w.ended)
					}), uint64(testenv.MostForAPeer))
				})
			}
		}
	}
}

// Pings may go on without end. They leave nothing behind.
func TestEndlessPings(t *testing.T) {
	const total, step = 256 << 20, 16 << 20
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	grown := make(chan uint64, total/step)
	w := besideHostile(t, hostilePeer{broker: noun.BrokerNATS, play: func(conn net.Conn) {
		natsStage(conn, func(conn net.Conn) {
			defer close(grown)
			before := heap()
			for range total / step {
				for range step / 6000 {
					if err := ping(conn, 1000); err != nil {
						return
					}
				}
				grown <- max(heap(), before) - before
			}
		})
	}})
	done := make(chan error, 1)
	go func() { done <- w.publish(t.Context(), 0, noun.BrokerNATS) }()
	n := 0
	for g := range grown {
		require.Less(t, g, uint64(testenv.MostForAPeer))
		n++
	}
	require.Equal(t, total/step, n)
	w.stop()
	require.NoError(t, <-w.ended)
	require.Error(t, <-done)
}
