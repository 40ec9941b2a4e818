package admin_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// attack is one kind; do is one try of one attacker, until it is thrown out or
// ctx ends.
type attack struct {
	name      string
	attackers int
	do        func(ctx context.Context, v *victim)
}

var attacks = []attack{
	{"strangers that say nothing", 8, silentStrangers},
	{"strangers that say a byte a second", 8, slowStrangers},
	{"a hello of 4 GB", 4, hugeHello},
	{"wrong tokens", 4, wrongTokens},
	{"ping flood", 4, pingFlood},
	{"stream flood", 4, streamFlood},
	{"streams that are reset", 4, resetFlood},
	{"a multiplexer frame of 4 GB", 4, hugeData},
	{"a message of 4 GB", 4, hugeMessage},
	{"frames without data", 4, emptyFlood},
	{"windows filled byte by byte", 32, slowWindows},
	{"heartbeat flood", 4, heartbeatFlood},
	{"results without end", 4, resultFlood},
	{"deep JSON in a registration", 4, deepSchema},
	{"deep JSON in a request", 4, deepJSON},
	{"deep, well-formed JSON in a request", 4, deepValues},
	{"a zip bomb in a request", 4, zipBomb},
	{"a request body byte by byte", 32, slowBody},
}

const attackerHost = "127.0.0.66"

// raw is a connection that says what it likes.
type raw struct {
	net.Conn
	window *atomic.Int64 // bytes that may be said on the command stream; nil before it is open
}

func (r raw) say(parts ...[]byte) bool {
	_, err := r.Write(bytes.Join(parts, nil))
	return err == nil
}

// frame is a message as SPEC.md section 1 frames it.
func frame(m gproto.Message) []byte {
	out, err := proto.AppendFrame(nil, m, proto.MaxFrame)
	if err != nil {
		panic(err)
	}
	return out
}

// mux is a multiplexer frame; length 0 = that of the data.
func mux(kind byte, flags uint16, stream, length uint32, data ...byte) []byte {
	out := binary.BigEndian.AppendUint16([]byte{0, kind}, flags)
	out = binary.BigEndian.AppendUint32(out, stream)
	if length == 0 {
		length = uint32(len(data))
	}
	return append(binary.BigEndian.AppendUint32(out, length), data...)
}

func newBootID() string {
	const digits = "0123456789abcdef"
	out := make([]byte, 32)
	for i := range out {
		out[i] = digits[rand.IntN(len(digits))]
	}
	return string(out)
}

func helloBytes(token string) []byte {
	return append([]byte(proto.Preface), frame(&proto.ClientHello{
		MinVersion: 1, MaxVersion: 1, JoinToken: token, Executor: "attacker", BootId: attackerBoot, Purpose: proto.Purpose_PURPOSE_CONTROL, Client: "attack/1",
	})...)
}

// attackerBoot is one process that comes again and again: what registrations
// cost is F11's.
var attackerBoot = newBootID()

// connect waits a moment when it fails: the address has no port left then, and
// looking for one again and again keeps the kernel from everything else.
func connect(ctx context.Context, v *victim) (raw, bool) {
	conn, err := from(ctx, attackerHost, v.Wire)
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return raw{Conn: conn}, err == nil
}

// join is an attacker with a valid token: a session that has registered.
func join(ctx context.Context, v *victim, register *proto.Register) (raw, bool) {
	r, ok := connect(ctx, v)
	if !ok {
		return r, false
	}
	if register == nil {
		register = &proto.Register{Slots: 4}
	}
	ok = r.say(helloBytes(v.Attacker))
	var hello proto.ServerHello
	if !ok || proto.ReadHello(r, &hello) != nil || hello.Error != nil {
		_ = r.Close()
		return r, false
	}
	first := frame(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Register{Register: register}})
	parts := [][]byte{mux(1, 1, 1, 0), mux(1, 1, 3, 0), mux(0, 0, 3, 0, 'X'), mux(0, 0, 1, 0, 'C')}
	for len(first) > 0 {
		n := min(len(first), 16<<10)
		parts = append(parts, mux(0, 0, 1, 0, first[:n]...))
		first = first[n:]
	}
	r.window = &atomic.Int64{}
	r.window.Store(256 << 10)
	go r.listen() // until it is thrown out
	return r, r.say(parts...)
}

// listen follows the window of the command stream, and lets everything else go.
func (r raw) listen() {
	var header [12]byte
	in := bufio.NewReader(r)
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint32(header[8:]))
		switch {
		case header[1] == proto.MuxData:
			if _, err := io.CopyN(io.Discard, in, length); err != nil {
				return
			}
		case header[1] == proto.MuxWindowUpdate && header[7] == 3:
			r.window.Add(length)
		}
	}
}

// flood repeats bytes over a session until it ends.
func flood(ctx context.Context, v *victim, parts ...[]byte) {
	r, ok := join(ctx, v, nil)
	if !ok {
		return
	}
	defer r.Close()
	many := bytes.Repeat(bytes.Join(parts, nil), 100)
	for r.say(many) {
		continue
	}
}

func silentStrangers(ctx context.Context, v *victim) {
	r, ok := connect(ctx, v)
	if !ok {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, r); _ = r.Close() }() // until the node is tired of it
}

func slowStrangers(ctx context.Context, v *victim) {
	r, ok := connect(ctx, v)
	if !ok {
		return
	}
	go func() { // until the node is tired of it
		defer r.Close()
		for _, b := range helloBytes(v.Attacker) {
			if !r.say([]byte{b}) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
}

func hugeHello(ctx context.Context, v *victim) {
	if r, ok := connect(ctx, v); ok {
		defer r.Close()
		r.say([]byte(proto.Preface), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
		_, _ = io.Copy(io.Discard, r)
	}
}

func wrongTokens(ctx context.Context, v *victim) {
	if r, ok := connect(ctx, v); ok {
		defer r.Close()
		r.say(helloBytes("cjt_" + strings.Repeat("x", 40)))
		_, _ = io.Copy(io.Discard, r)
	}
}

func pingFlood(ctx context.Context, v *victim) { flood(ctx, v, mux(2, 1, 0, 7)) }

func streamFlood(ctx context.Context, v *victim) {
	r, ok := join(ctx, v, nil)
	if !ok {
		return
	}
	defer r.Close()
	for id := uint32(5); r.say(mux(1, 1, id, 0), mux(0, 0, id, 0, make([]byte, 1000)...)); id += 2 {
		continue
	}
}

func resetFlood(ctx context.Context, v *victim) {
	r, ok := join(ctx, v, nil)
	if !ok {
		return
	}
	defer r.Close()
	for id := uint32(5); r.say(mux(1, 1|8, id, 0)); id += 2 {
		continue
	}
}

func hugeData(ctx context.Context, v *victim)   { flood(ctx, v, mux(0, 0, 1, 0xffffffff, 'x')) }
func emptyFlood(ctx context.Context, v *victim) { flood(ctx, v, mux(0, 0, 3, 0), mux(1, 0, 1, 0)) }

func hugeMessage(ctx context.Context, v *victim) {
	flood(ctx, v, mux(0, 0, 3, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3))
}

// slowWindows announces a full window on both streams and lets it drip.
func slowWindows(ctx context.Context, v *victim) {
	r, ok := join(ctx, v, nil)
	if !ok {
		return
	}
	defer r.Close()
	for ok := r.say(mux(0, 0, 3, 200<<10, 'x')); ok; ok = r.say([]byte{'x'}) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func heartbeatFlood(ctx context.Context, v *victim) {
	flood(ctx, v, mux(0, 0, 1, 0, frame(&proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1, Slots: 4}}})...))
}

// resultFlood reports runs that do not exist, each with the largest output.
func resultFlood(ctx context.Context, v *victim) {
	r, ok := join(ctx, v, nil)
	if !ok {
		return
	}
	defer r.Close()
	body := frame(&proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: []*proto.Result{
		{ExecutionId: 1, Fence: 1, Outcome: proto.Outcome_OUTCOME_SUCCEEDED, Output: bytes.Repeat([]byte{'1'}, proto.MaxOutput)},
	}}}})
	for sent := 0; ; {
		n := min(len(body)-sent, 16<<10)
		if r.window.Load() < int64(n) { // the node reads no more for now
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
				continue
			}
		}
		r.window.Add(-int64(n))
		if !r.say(mux(0, 0, 3, 0, body[sent:sent+n]...)) {
			return
		}
		if sent += n; sent == len(body) {
			sent = 0
		}
	}
}

func deepSchema(ctx context.Context, v *victim) {
	r, ok := join(ctx, v, &proto.Register{Slots: 4, Handlers: []*proto.Handler{{
		Name: "deep", InputSchema: []byte(strings.Repeat(`{"items":`, 40_000) + "{}" + strings.Repeat("}", 40_000)),
	}}})
	if ok {
		r.say(mux(3, 0, 0, 0))
		_ = r.Close()
	}
}

func request(ctx context.Context, v *victim, body io.Reader, headers ...string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, v.URL+"/api/v1/jobs", body)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+v.api.Token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if res, err := http.DefaultClient.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

func deepJSON(ctx context.Context, v *victim) {
	request(ctx, v, strings.NewReader(`{"input":`+strings.Repeat("[", 1<<20-100)))
}

// deepValues is as deep as a body may be, over and over.
func deepValues(ctx context.Context, v *victim) {
	const depth = 9_990
	one := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	request(ctx, v, strings.NewReader(`{"input":[`+strings.Repeat(one+",", 50)+`0]}`))
}

// bomb is 256 MiB of zeros, in 256 KiB: gzip's members may follow each other.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(make([]byte, 1<<20))
	_ = w.Close()
	return bytes.Repeat(b.Bytes(), 256)
})

func zipBomb(ctx context.Context, v *victim) {
	request(ctx, v, bytes.NewReader(bomb()), "Content-Encoding", "gzip")
}

// slowBody says how much it sends, and lets it drip.
func slowBody(ctx context.Context, v *victim) {
	conn, err := from(ctx, attackerHost, strings.TrimPrefix(v.URL, "http://"))
	if err != nil {
		return
	}
	defer conn.Close()
	r := raw{Conn: conn}
	ok := r.say([]byte("POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"))
	for ok {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
			ok = r.say([]byte(" "))
		}
	}
}
