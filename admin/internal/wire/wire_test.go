package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stream is a connection from which a Read takes a fixed number of bytes.
type stream struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.piece, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}
func (*stream) Write(p []byte) (int, error)     { return len(p), nil }
func (*stream) Close() error                    { return nil }
func (*stream) SetReadDeadline(time.Time) error { return nil }

// through returns the bytes that reach the library, and the bound that was broken.
func through(by Reader, asked, sent []byte, piece int) ([]byte, error) {
	var heard error
	conn := by(&stream{rest: sent, piece: piece}, func(err error) { heard = err })
	_, _ = conn.Write(asked)
	got, err := io.ReadAll(conn)
	if bound := new(Error); errors.As(err, &bound) != (heard != nil) {
		panic("onBreak hears of each broken bound")
	}
	return got, heard
}

type row struct {
	name  string
	asked string // what the library wrote before
	sent  string
	bound string // in the error; empty: all of it may pass
}

// each sends the rows as a whole and byte by byte.
func each(t *testing.T, by Reader, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			for _, piece := range []int{1 << 20, 1, 7} {
				got, err := through(by, []byte(r.asked), []byte(r.sent), piece)
				if r.bound == "" {
					require.NoError(t, err)
					require.Equal(t, r.sent, string(got))
					continue
				}
				require.ErrorContains(t, err, r.bound)
				require.True(t, strings.HasPrefix(r.sent, string(got)))
			}
		})
	}
}

var redisRows = []row{
	{"simple", "", "+OK\r\n-ERR no\r\n:12\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,1.5\r\n(1234\r\n$3\r\nabc\r\n$0\r\n\r\n=5\r\ntxt:a\r\n", ""},
	{"lists", "", "*2\r\n$1\r\na\r\n*0\r\n%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n~1\r\n+x\r\n>2\r\n+push\r\n+x\r\n|1\r\n+ttl\r\n:3\r\n+OK\r\n|0\r\n+OK\r\n", ""},
	{"many answers", "", strings.Repeat("*1000\r\n"+strings.Repeat(":1\r\n", 1000), 300), ""},
	{"long list", "", "*2000000000\r\n", "a list of 2000000000 elements is announced after 0 others, and an answer may have 1024 elements"},
	{"lists in lists", "", strings.Repeat("*1000000\r\n", 1000), "a list of 1000000 elements"},
	{"short lists in lists", "", strings.Repeat("*1\r\n", 1000), "to more than 8 levels"},
	{"many short lists", "", "*1000\r\n" + strings.Repeat("*2\r\n:1\r\n:1\r\n", 1000), "a list of 2 elements is announced after 1024 others"},
	{"attributes", "", strings.Repeat("|0\r\n", 9), "to more than 8 levels"},
	{"endless pushes", "", strings.Repeat(">2\r\n+a\r\n+b\r\n", 257), "more than 256 push messages without a request"},
	{"long map", "", "%600\r\n", "a list of 600 elements"},
	{"long text", "", "$2000000000\r\n", "a text of 2000000000 bytes is announced"},
	{"long error", "", "!5000\r\n", "a text of 5000 bytes is announced, and an answer may have 4096 bytes"},
	{"texts", "", "*1024\r\n" + strings.Repeat("$1100\r\n"+strings.Repeat("x", 1100)+"\r\n", 1024), "an answer may have 1048576 bytes"},
	{"line", "", "+" + strings.Repeat("x", 1<<17), "a line has more than 4096 bytes"},
	{"number beyond integers", "", "*99999999999999999999\r\n", `"99999999999999999999" is announced as the length of a list`},
	{"negative", "", "$-2\r\n", `"-2" is announced as the length of a text`},
	{"number behind zeros", "", "*" + strings.Repeat("0", 60) + "2000000000\r\n", "a length with 73 digits"},
	{"streamed", "", "*?\r\n", `"?" is announced`},
	{"another protocol", "", "HTTP/1.1 400 Bad Request\r\n", `begins with "H"`},
}

func TestRedis(t *testing.T) { each(t, Redis, redisRows) }

var natsRows = []row{
	{"session", "", "INFO {\"max_payload\":1048576} \r\nPONG\r\n+OK\r\nPING\r\n-ERR 'x'\r\nMSG a 1 3\r\nabc\r\nHMSG a 1 _R.1 2 4\r\nab\r\n\r\nMSG a 1 0\r\n\r\n", ""},
	{"long info", "", "INFO {\"a\":\"" + strings.Repeat("x", 60_000) + "\"}\r\n", ""},
	{"endless info", "", "INFO " + strings.Repeat("x", 100_000), "a line has more than 65536 bytes"},
	{"endless line", "", "MSG " + strings.Repeat("x", 5_000), "a line has more than 4096 bytes"},
	{"payload", "", "MSG a 1 1048577\r\n", `a payload of "1048577" bytes is announced, and it may have 524288`},
	{"payload beyond integers", "", "MSG a 1 99999999999999999999\r\n", "a payload of"},
	{"longer payload", "", "MSG a 1 1\r\nab\r\n", "longer than its announced length"},
	{"CR in a line", "", "MSG a 1 5\r9\r\n", "does not end with CR and LF"},
	{"no CR", "", "PING\n", "does not end with CR and LF"},
	{"empty line", "", "\r\n", "does not end with CR and LF"},
	{"another protocol", "", "GET / HTTP/1.1\r\n", `a line begins with "G"`},
	{"another word", "", "MSGS a 1 3\r\n", `a line begins with "MSGS"`},
	{"bytes without a request", "", strings.Repeat("MSG a 1 1000\r\n"+strings.Repeat("x", 1000)+"\r\n", 2000), "more than 524288 bytes without a request"},
	{"lines without a request", "", strings.Repeat("PING\r\n", 20_000), "more than 4096 lines without a request"},
}

func TestNATS(t *testing.T) { each(t, NATS, natsRows) }

func TestReadInfo(t *testing.T) {
	conn := &stream{rest: []byte("INFO {\"tls_required\":true}\r\nbehind"), piece: 100}
	info, first, err := ReadInfo(conn)
	require.NoError(t, err)
	require.True(t, info.TLSRequired)
	require.Equal(t, "behind", string(conn.rest), "TLS reads that")
	whole, err := io.ReadAll(Replay(conn, first))
	require.NoError(t, err)
	require.Equal(t, "INFO {\"tls_required\":true}\r\nbehind", string(whole))

	_, _, err = ReadInfo(&stream{rest: []byte("INFO " + strings.Repeat("x", 100_000)), piece: 100})
	require.ErrorContains(t, err, "more than 65536 bytes")
	_, _, err = ReadInfo(&stream{rest: []byte("HTTP/1.1 400 Bad Request\r\n"), piece: 100})
	require.ErrorContains(t, err, "a server begins with INFO")
}

// kafkaFrame is a size and what follows it.
func kafkaFrame(parts ...any) string {
	var b bytes.Buffer
	for _, part := range parts {
		if s, ok := part.(string); ok {
			b.WriteString(s)
			continue
		}
		_ = binary.Write(&b, binary.BigEndian, part)
	}
	return string(binary.BigEndian.AppendUint32(nil, uint32(b.Len()))) + b.String()
}

var (
	askMetadata = kafkaFrame(int16(3), int16(9), int32(1), strings.Repeat("x", 50))
	askProduce  = kafkaFrame(int16(0), int16(9), int32(2), strings.Repeat("x", 50))
	// One broker, one topic with one partition, by version 9.
	topicHead = "\x00\x00\x07orders\x00"
	partition = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x02\x00\x00\x00\x01\x02\x00\x00\x00\x01\x01\x00"
	meta      = "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x06local\x00\x00\x23\x84\x00\x00\x00\x00\x00\x00\x01"
	topicTail = "\x00\x00\x00\x00\x00"
)

var kafkaRows = []row{
	{"metadata", askMetadata, kafkaFrame(meta, "\x02", topicHead, "\x02", partition, topicTail, "\x00\x00\x00\x00\x00"), ""},
	{"metadata and another", askMetadata + askProduce, kafkaFrame(meta, "\x01\x00\x00\x00\x00\x00") + kafkaFrame(int32(2), strings.Repeat("x", 100_000)), ""},
	{"another and metadata", askProduce + askMetadata, kafkaFrame(int32(2), strings.Repeat("x", 100_000)) + kafkaFrame(meta, "\x01\x00\x00\x00\x00\x00"), ""},
	{"95 MiB", askMetadata, "\x05\xf0\x00\x00", "an answer of 99614720 bytes is announced, and it may have 4 to 1048576"},
	{"long answer", askProduce, "\x00\x03\x00\x00", "an answer of 196608 bytes is announced, and it may have 4 to 131072"},
	{"long login", kafkaFrame(int16(36), int16(2), int32(1)), "\x00\x00\x20\x01", "an answer of 8193 bytes is announced, and it may have 4 to 8192"},
	{"short answer", askProduce, "\x00\x00\x00\x03xxx", "an answer of 3 bytes"},
	{"no request", "", kafkaFrame(int32(1)), "an answer without a request"},
	{"second answer", askProduce, kafkaFrame(int32(1)) + kafkaFrame(int32(1)), "an answer without a request"},
	{"many partitions", askMetadata, kafkaFrame(meta, "\x02", topicHead, "\xd1\x0f", strings.Repeat(partition, 2000), topicTail, "\x00\x00\x00\x00\x00"), ""},
	{"too many partitions", askMetadata, kafkaFrame(meta, "\x02", topicHead, "\xff\xff\x3f", strings.Repeat(partition, 20_000)), "the metadata list 1048576 brokers, topics and partitions, and they may list 8192"},
	{"partitions that are not there", askMetadata, kafkaFrame(meta, "\x02", topicHead, "\xd1\x0f", partition, topicTail), "the metadata announce more than their"},
	{"topics that are not there", askMetadata, kafkaFrame(meta, "\xff\x3f", topicHead, "\x01", topicTail), "the metadata announce more than their"},
	{"replicas that are not there", askMetadata, kafkaFrame(meta, "\x02", topicHead, "\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\xff\xff\x3f"), "the metadata announce more than their"},
	{"tags", askMetadata, kafkaFrame("\x00\x00\x00\x01\xff\xff\x3f", strings.Repeat("\x00", 100_000)), "the metadata list"},
	{"broken number", askMetadata, kafkaFrame("\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "the metadata announce more than their"},
}

func TestKafka(t *testing.T) { each(t, Kafka, kafkaRows) }

func TestMetadataOfAllVersions(t *testing.T) {
	for version := range int16(14) {
		require.NoError(t, checkMetadata(metadataOf(version), version), "%d", version)
		require.Error(t, checkMetadata(metadataOf(version)[:40], version), "%d", version)
	}
}

// amqpFrame is a frame of a type on a channel.
func amqpFrame(kind byte, channel uint16, parts ...any) string {
	payload := kafkaFrame(parts...)
	head := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	return string(head) + payload + "\xce"
}

func amqpMethod(channel uint16, class, number uint16, parts ...any) string {
	return amqpFrame(methodFrame, channel, append([]any{class, number}, parts...)...)
}

func long(s string) string { return kafkaFrame(s) }

var (
	start    = amqpMethod(0, 10, 10, "\x00\x09", long("\x07product\x53"+long("RabbitMQ")), long("PLAIN"), long("en_US"))
	greeting = "AMQP\x00\x00\x09\x01"
	opened   = greeting + amqpMethod(1, 20, 10, "\x00") + amqpMethod(1, 85, 10, "\x00")
	sent     = opened + amqpMethod(1, 60, 40, "\x00\x00\x00\x01q\x00") + amqpFrame(headerFrame, 1, "xxxx") + amqpFrame(bodyFrame, 1, "x")
	ready    = start + amqpMethod(1, 20, 11, long("")) + amqpMethod(1, 85, 11)
	back     = amqpMethod(1, 60, 50, int16(312), "\x08NO_ROUTE\x00\x01q")
)

func header(size uint64, properties ...any) string {
	return amqpFrame(headerFrame, 1, append([]any{uint16(60), uint16(0), size}, properties...)...)
}

var amqpRows = []row{
	{"session", sent, ready + back + header(3, uint16(0x8000|0x2000|0x1000), "\x04text", long("\x01a\x53"+long("b")), "\x02") +
		amqpFrame(bodyFrame, 1, "a") + amqpFrame(bodyFrame, 1, "bc") + amqpMethod(1, 60, 80, uint64(1), "\x00") + amqpFrame(heartbeatFrame, 0), ""},
	{"all types of fields", greeting, amqpMethod(0, 10, 10, "\x00\x09", long("\x01at1\x01bB1\x01cb1\x01ds12\x01eu12\x01fI1234\x01gi1234\x01hf1234\x01il12345678\x01jd12345678\x01kT12345678\x01lD12345\x01mV\x01nx"+long("x")+"\x01oA"+long("VV")+"\x01pF"+long("\x01aV")), long(""), long("")), ""},
	{"long frame", greeting, "\x01\x00\x00\x7f\xff\xff\xff", "a frame of 2147483647 bytes is announced, and it may have 131072"},
	{"longer frame", greeting, "\x08\x00\x00\x00\x00\x00\x00\x00", "a frame is longer than its announced 0 bytes"},
	{"text beyond the frame", greeting, amqpMethod(0, 10, 10, "\x00\x09", long(""), "\x7f\xff\xff\xff"), "a frame announces more than it holds"},
	{"more than the method", greeting, amqpMethod(0, 10, 10, "\x00\x09", long(""), long(""), long(""), "x"), "a frame holds more than its method"},
	{"many fields", greeting, amqpMethod(0, 10, 10, "\x00\x09", long(strings.Repeat("\x00V", 1100))), "a table has more than 1024 fields"},
	{"tables in tables", greeting, amqpMethod(0, 10, 10, "\x00\x09", nested(20)), "a table has more than 8 levels"},
	{"unknown field", greeting, amqpMethod(0, 10, 10, "\x00\x09", long("\x01a?")), "a frame announces more than it holds"},
	{"unknown type", greeting, amqpFrame(4, 0), "a frame has type 4"},
	{"unknown method", greeting, amqpMethod(0, 50, 10, strings.Repeat("x", 100)), "method 50.10, which a publisher does not ask for"},
	{"channel", greeting, amqpFrame(heartbeatFrame, 7), "channel 7, which is not open"},
	{"second start", greeting, start + start, "the answer 10.10 without a request"},
	{"second answer", opened, ready + amqpMethod(1, 85, 11), "the answer 85.11 without a request"},
	{"confirm of nothing", sent, ready + amqpMethod(1, 60, 80, uint64(1)<<62, "\x01"), "confirmed message 4611686018427387904, and 1 were published"},
	{"refusal of nothing", opened, ready + amqpMethod(1, 60, 120, uint64(1), "\x00"), "confirmed message 1, and 0 were published"},
	{"two returns", sent, ready + back + header(0, uint16(0)) + back, "the broker returned 2 messages, and 1 were published"},
	{"content without a return", sent, ready + header(0, uint16(0)), "a message that was not published"},
	{"long body", sent, ready + back + header(1<<20+1, uint16(0)), "a body of 1048577 bytes is announced"},
	{"frames without a request", greeting, start + strings.Repeat(amqpFrame(heartbeatFrame, 0), 2000), "more than 1024 frames without a request"},
	{"longer body", sent, ready + back + header(1, uint16(0)) + amqpFrame(bodyFrame, 1, "ab"), "a body is longer than its announced length"},
	{"fields of a header", sent, ready + back + header(0, uint16(0x2000), long(strings.Repeat("\x00V", 1100))), "a table has more than 1024 fields"},
}

func nested(levels int) string {
	if levels == 0 {
		return long("")
	}
	return long("\x01aF" + nested(levels-1))
}

func TestAMQP(t *testing.T) { each(t, AMQP, amqpRows) }

// A reader's verdict does not depend on the pieces in which bytes come.
func FuzzReaders(f *testing.F) {
	readers := []Reader{Redis, NATS, Kafka, AMQP}
	for i, rows := range [][]row{redisRows, natsRows, kafkaRows, amqpRows} {
		for _, r := range rows {
			if len(r.sent) < 4096 {
				f.Add(byte(i), []byte(r.asked), []byte(r.sent))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, asked, sent []byte) {
		by := readers[int(which)%len(readers)]
		whole, bound := through(by, asked, sent, len(sent)+1)
		got, again := through(by, asked, sent, 1)
		require.Equal(t, bound, again)
		require.True(t, bytes.HasPrefix(got, whole))
	})
}

// metadataOf is what the library itself writes.
func metadataOf(version int16) []byte {
	m := kmsg.NewPtrMetadataResponse()
	m.Version = version
	m.Brokers = []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "local", Port: 9092, Rack: kmsg.StringPtr("a")}}
	m.ClusterID = kmsg.StringPtr("c")
	p := kmsg.NewMetadataResponseTopicPartition()
	p.Replicas, p.ISR, p.OfflineReplicas = []int32{1, 2, 3}, []int32{1, 2}, []int32{3}
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic, topic.Partitions = kmsg.StringPtr("orders"), []kmsg.MetadataResponseTopicPartition{p, p}
	m.Topics = []kmsg.MetadataResponseTopic{topic, topic}
	head := []byte{0, 0, 0, 1}
	if m.IsFlexible() {
		head = append(head, 0)
	}
	return m.AppendTo(head)
}
