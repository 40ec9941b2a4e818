package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// fakeLogs takes logs one transaction at a time.
type fakeLogs struct {
	entered chan []store.LogAppend // told before
	proceed chan error             // when it is not nil, each transaction waits for an answer

	mu    sync.Mutex
	lines map[int64][]string // by execution
	most  int                // of appends in one transaction
	busy  bool
	wrong error
}

func newFakeLogs() *fakeLogs {
	return &fakeLogs{entered: make(chan []store.LogAppend, 1024), lines: map[int64][]string{}}
}

func (f *fakeLogs) AppendLogs(ctx context.Context, list []store.LogAppend) (int, error) {
	f.mu.Lock()
	if f.busy {
		f.wrong = errors.New("two transactions at once")
	}
	f.busy = true
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.busy = false; f.mu.Unlock() }()
	f.entered <- list
	if f.proceed != nil {
		select {
		case err := <-f.proceed:
			if err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = max(f.most, len(list))
	for _, a := range list {
		for _, c := range a.Chunks {
			for _, l := range c.Lines {
				f.lines[int64(c.ExecutionID)] = append(f.lines[int64(c.ExecutionID)], fmt.Sprintf("%d/%d %s %s", c.Attempt, l.Number, l.Message, l.TraceID))
			}
		}
	}
	return 0, f.wrong
}

func (f *fakeLogs) of(execution int64) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lines[execution]
}

// logConn opens a log connection beside a session.
func (b *bench) logConn(boot string, session int64) net.Conn {
	b.t.Helper()
	h := hello(goodToken, boot)
	h.Purpose, h.SessionId = proto.Purpose_PURPOSE_LOGS, session
	conn, answer := b.dial(h)
	require.Nil(b.t, answer.Error)
	return conn
}

func logBatch(seq, execution, first int64, texts ...string) *proto.LogBatch {
	c := &proto.LogChunk{ExecutionId: execution, Attempt: 1, FirstLine: first}
	for _, text := range texts {
		c.Lines = append(c.Lines, &proto.LogLine{AtMs: 1, Message: text, TraceId: "4bf92f3577b34da6a3ce929d0e0e4736"})
	}
	return &proto.LogBatch{Seq: seq, Chunks: []*proto.LogChunk{c}}
}

func ackOf(t *testing.T, conn net.Conn) *proto.LogAck {
	t.Helper()
	var ack proto.LogAck
	require.NoError(t, proto.ReadHello(conn, &ack))
	return &ack
}

func TestLogsAreStoredBeforeTheyAreAcknowledged(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 4)
	conn := b.logConn(bootA, p.sessionID)
	bad := logBatch(1, 7, 1, "one", "two")
	bad.Chunks[0].Lines[1].TraceId = "<script>"
	bad.Chunks = append(bad.Chunks, &proto.LogChunk{ExecutionId: 7, FirstLine: 3}, &proto.LogChunk{ExecutionId: 7, Attempt: 1, Lines: []*proto.LogLine{{Message: "no number"}}})
	p.send(conn, bad)
	require.EqualValues(t, 1, ackOf(t, conn).GetSeq())
	require.Equal(t, []string{"1/1 one 4bf92f3577b34da6a3ce929d0e0e4736", "1/2 two "}, b.logs.of(7))
}

// What comes while a transaction goes on is stored by the next one, together.
func TestLogsOfManyAreStoredTogether(t *testing.T) {
	b := start(t)
	b.logs.proceed = make(chan error)
	var conns []net.Conn
	var peers []*peerEnd
	for i := range 5 {
		boot := fmt.Sprintf("%032x", i+1)
		p := b.join(boot, 4)
		peers, conns = append(peers, p), append(conns, b.logConn(boot, p.sessionID))
	}
	peers[0].send(conns[0], logBatch(1, 100, 1, "first"))
	get(t, b.logs.entered)
	for i := 1; i < 5; i++ {
		peers[i].send(conns[i], logBatch(1, 100+int64(i), 1, "more"))
	}
	waitFor(t, "the others wait", func() bool { return b.gate.logs.writes.Waiting() == 4 })
	b.logs.proceed <- nil
	require.Len(t, get(t, b.logs.entered), 4)
	b.logs.proceed <- nil
	for i, conn := range conns {
		require.Nil(t, ackOf(t, conn).GetError(), i)
	}
}

// Batches that arrive in one piece are acknowledged one by one.
func TestLogBatchesInOnePiece(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 4)
	conn := b.logConn(bootA, p.sessionID)
	var all []byte
	for seq := int64(1); seq <= 5; seq++ {
		var err error
		all, err = proto.AppendFrame(all, logBatch(seq, 7, seq, "line"), proto.MaxFrame)
		require.NoError(t, err)
	}
	_, err := conn.Write(all)
	require.NoError(t, err)
	for seq := int64(1); seq <= 5; seq++ {
		require.Equal(t, seq, ackOf(t, conn).GetSeq())
	}
	require.Len(t, b.logs.of(7), 5)
}

// What comes behind a batch that was not stored is not stored either: the store
// would take the lines of the first one for a resend when they come again.
func TestLogsThatCannotBeStoredAreNotAcknowledged(t *testing.T) {
	b := start(t)
	b.logs.proceed = make(chan error, 2)
	p := b.join(bootA, 4)
	conn := b.logConn(bootA, p.sessionID)
	p.send(conn, logBatch(1, 7, 1, "one"))
	p.send(conn, logBatch(2, 7, 2, "two"))
	b.logs.proceed <- errors.New("no database")
	b.logs.proceed <- nil
	ack := ackOf(t, conn)
	require.Equal(t, "unavailable", ack.GetError().GetCode())
	require.Zero(t, ack.GetSeq(), "nothing is stored yet")
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection ends")
	require.Empty(t, b.logs.of(7))
}

// A flood: as many batches as the node takes of one tenant stand in memory, the
// rest stays on the wire. Sessions notice nothing.
func TestAFloodOfLogsIsBounded(t *testing.T) {
	b := start(t)
	b.logs.proceed = make(chan error)
	const most = maxTenantLogs / smallLogs
	const floods = most + 8
	text := strings.Repeat("x", 60_000)
	var conns []net.Conn
	var p *peerEnd
	var boot string
	for i := range floods {
		if i%maxLogs == 0 { // as many as a session may have
			boot = fmt.Sprintf("%032x", i+1)
			p = b.join(boot, 4)
		}
		conn := b.logConn(boot, p.sessionID)
		p.send(conn, logBatch(1, 7, 1, text))
		conns = append(conns, conn)
	}
	get(t, b.logs.entered)
	waitFor(t, "the places are taken", func() bool { return len(b.gate.logs.frames) == most })
	require.LessOrEqual(t, b.gate.logs.writes.Waiting(), most)
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, p.nextControl().GetHeartbeatAck().GetSeq(), "heartbeats do not wait for logs")
	close(b.logs.proceed)
	for _, conn := range conns {
		require.EqualValues(t, 1, ackOf(t, conn).GetSeq())
	}
}

// A session's log connections share what it may store, and lines that say nothing
// cost something, too.
func TestTheRateOfLogsIsTheSessions(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 4)
	s := get(t, b.rec.joined)
	s.logRate = rate.NewLimiter(1e-9, logBurst) // none comes back
	first, second := b.logConn(bootA, p.sessionID), b.logConn(bootA, p.sessionID)
	texts := make([]string, 100)
	p.send(first, logBatch(1, 7, 1, texts...))
	ackOf(t, first)
	p.send(second, logBatch(1, 7, 101, texts...))
	ackOf(t, second)
	const each = lineCost + 32 // its trace id
	require.InDelta(t, logBurst-200*each, s.logRate.Tokens(), 1)
}

func waitFor(t *testing.T, what string, good func() bool) {
	t.Helper()
	for range 2000 {
		if good() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal(what)
}
