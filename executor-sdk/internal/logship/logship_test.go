package logship

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is the admin at the other end of in-memory connections.
type store struct {
	mu      sync.Mutex
	batches []*proto.LogBatch
	at      []time.Time
	lines   map[int64]map[int64]*proto.LogLine // execution → number → line
	conns   int
	hold    bool                                // acknowledge nothing
	judge   func(*proto.LogBatch) *proto.LogAck // nil = plain acknowledgement
	dialErr error
	conn    net.Conn // of the shipper, to cut
	wait    sync.WaitGroup
}

func (s *store) dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialErr != nil {
		return nil, s.dialErr
	}
	s.conns++
	mine, theirs := net.Pipe()
	s.conn = theirs
	s.wait.Go(func() { s.serve(mine) })
	return theirs, nil
}

func (s *store) serve(conn net.Conn) {
	defer conn.Close()
	reader := proto.NewReader(conn, proto.MaxFrame)
	for {
		var b proto.LogBatch
		if reader.Next(&b) != nil {
			return
		}
		s.mu.Lock()
		s.batches, s.at = append(s.batches, &b), append(s.at, time.Now())
		for _, c := range b.GetChunks() {
			if s.lines[c.GetExecutionId()] == nil {
				s.lines[c.GetExecutionId()] = map[int64]*proto.LogLine{}
			}
			for i, line := range c.GetLines() {
				s.lines[c.GetExecutionId()][c.GetFirstLine()+int64(i)] = line
			}
		}
		ack, hold := &proto.LogAck{Seq: b.GetSeq()}, s.hold
		if s.judge != nil {
			ack = s.judge(&b)
		}
		s.mu.Unlock()
		if hold {
			continue
		}
		if proto.WriteFrame(conn, ack, proto.MaxFrame) != nil {
			return
		}
	}
}

func (s *store) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) sent() []*proto.LogBatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches
}

func inBubble(t *testing.T, total, perAttempt int, body func(s *Shipper, a *store)) {
	t.Helper()
	inBubbleWith(t, Options{Total: total, PerAttempt: perAttempt}, body)
}

func inBubbleWith(t *testing.T, o Options, body func(s *Shipper, a *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &store{lines: map[int64]map[int64]*proto.LogLine{}}
		o.Dial = a.dial
		if o.Logger == nil {
			o.Logger = slog.New(slog.DiscardHandler)
		}
		s := New(o)
		ctx, cancel := context.WithCancel(context.Background())
		var wait sync.WaitGroup
		wait.Go(func() { s.Run(ctx) })
		defer func() { // also when the body failed
			cancel()
			wait.Wait()
			a.wait.Wait()
		}()
		body(s, a)
	})
}

func flush(t *testing.T, s *Shipper) {
	t.Helper()
	require.NoError(t, s.Flush(context.Background()))
	synctest.Wait()
}

// sleep lets time pass and everybody finish what that began.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *Writer) say(text string) { w.Write(time.Now(), 0, text, nil, "") }

func TestBatchesLeaveByTime(t *testing.T) {
	inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
		synctest.Wait()
		require.Zero(t, a.conns, "no lines, no connection")
		began := time.Now()
		w := s.Open(7, 2, 3)
		w.say("one")
		sleep(60 * time.Millisecond)
		w.Write(time.Now(), 8, "two", []byte(`{"k":1}`), "0123456789abcdef0123456789abcdef")
		sleep(time.Second)
		require.Equal(t, int64(2), w.Close())
		w.say("after the end")
		sleep(time.Second)
		require.Len(t, a.batches, 1)
		require.Equal(t, batchDelay, a.at[0].Sub(began))
		chunk := a.batches[0].GetChunks()[0]
		require.EqualValues(t, []int64{7, 2, 3, 1}, []int64{chunk.GetExecutionId(), chunk.GetFence(), int64(chunk.GetAttempt()), chunk.GetFirstLine()})
		require.Equal(t, "two", chunk.GetLines()[1].GetMessage())
		require.Equal(t, `{"k":1}`, string(chunk.GetLines()[1].GetAttrs()))
		require.Equal(t, "0123456789abcdef0123456789abcdef", chunk.GetLines()[1].GetTraceId())
		require.Zero(t, s.total)
		require.Empty(t, s.active)
	})
}

func TestBatchesLeaveBySize(t *testing.T) {
	inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
		began := time.Now()
		w := s.Open(1, 1, 1)
		for range 70 {
			w.say(strings.Repeat("x", 1000))
		}
		synctest.Wait()
		require.NotEmpty(t, a.batches)
		require.Equal(t, began, a.at[0])
		flush(t, s)
		require.Len(t, a.lines[1], 70)
	})
}

// What one connection did not get acknowledged goes out on the next one, with
// the same numbers.
func TestResendAfterReconnect(t *testing.T) {
	inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		w := s.Open(1, 1, 1)
		w.say("one")
		sleep(time.Second)
		w.say("two")
		sleep(time.Second)
		require.Len(t, a.batches, 2)
		a.change(func() { a.lines = map[int64]map[int64]*proto.LogLine{}; a.hold = false; a.conn.Close() })
		flush(t, s)
		require.Equal(t, 2, a.conns)
		require.Equal(t, "one", a.lines[1][1].GetMessage())
		require.Equal(t, "two", a.lines[1][2].GetMessage())
		require.EqualValues(t, 1, a.batches[2].GetSeq(), "numbers begin anew on every connection")
	})
}

func TestAdminThatDoesNotAcknowledge(t *testing.T) {
	inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
		a.hold = true
		s.Open(1, 1, 1).say("one")
		sleep(ackTimeout + time.Second + retryMax)
		require.GreaterOrEqual(t, a.conns, 2)
		a.change(func() { a.hold = false })
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Flush(ctx))
	})
}

func TestAdminThatRefuses(t *testing.T) {
	for name, behind := range map[string]int64{"the last one stored": 1, "the one refused": 0} {
		t.Run("names "+name, func(t *testing.T) {
			inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
				refusals := 0
				a.judge = func(b *proto.LogBatch) *proto.LogAck {
					if refusals++; refusals <= 2 {
						return &proto.LogAck{Seq: b.GetSeq() - behind, Error: &proto.Error{Code: "unavailable", Message: "no database"}}
					}
					return &proto.LogAck{Seq: b.GetSeq()}
				}
				s.Open(1, 1, 1).say("one")
				flush(t, s)
				require.Equal(t, 3, a.conns)
				require.Len(t, a.lines[1], 1)
			})
		})
	}
}

func TestFlushGivesUp(t *testing.T) {
	inBubble(t, 1<<20, 1<<20, func(s *Shipper, a *store) {
		a.dialErr = errors.New("nobody there")
		s.Open(1, 1, 1).say("one")
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.EqualError(t, s.Flush(ctx), "flush logs: context deadline exceeded, 203 bytes are left")
	})
}

// An attempt that floods within its bound does not keep another one's line.
func TestAttemptsTakeTurns(t *testing.T) {
	inBubble(t, 16<<20, 16<<20, func(s *Shipper, a *store) {
		flood, quiet := s.Open(1, 1, 1), s.Open(2, 1, 1)
		a.change(func() { a.dialErr = errors.New("not yet") })
		for range 2000 {
			flood.say(strings.Repeat("x", 1000))
		}
		quiet.say("me too")
		a.change(func() { a.dialErr = nil })
		flush(t, s)
		var found []int64
		for _, c := range a.batches[0].GetChunks() {
			found = append(found, c.GetExecutionId())
		}
		require.Equal(t, []int64{1, 2, 1}, found)
		require.Len(t, a.lines[1], 2000)
	})
}

func TestTotalBoundHoldsAcrossAttempts(t *testing.T) {
	inBubble(t, 10_000, 10_000, func(s *Shipper, a *store) {
		a.hold = true
		var writers []*Writer
		for i := range int64(50) {
			w := s.Open(i, 1, 1)
			writers = append(writers, w)
			for range 10 {
				w.say("a line")
			}
		}
		require.LessOrEqual(t, s.total, 10_000)
		a.change(func() { a.hold = false; a.conn.Close() })
		for _, w := range writers {
			w.Close()
		}
		flush(t, s)
	})
}

func TestLinesAreCutAndMadeUTF8(t *testing.T) {
	line := newLine(time.UnixMilli(5), -4, "a\xffb", nil, "")
	require.Equal(t, "a\uFFFDb", line.GetMessage())
	require.EqualValues(t, 5, line.GetAtMs())
	require.EqualValues(t, -4, line.GetLevel())
	long := newLine(time.Time{}, 0, strings.Repeat("é", 50_000), []byte(`{"k":1}`), "")
	require.LessOrEqual(t, len(long.GetMessage())+len(long.GetAttrs()), proto.MaxLogLine)
	require.True(t, utf8.ValidString(long.GetMessage()))
	require.True(t, strings.HasSuffix(long.GetMessage(), "é… (100000 bytes in all)"))
	require.Equal(t, `{"attributes_too_large":40000}`, string(newLine(time.Time{}, 0, "", make([]byte, 40_000), "").GetAttrs()))
}

// Whatever happens to connections, the admin ends up with every line that was
// kept, under its number, and a note for every gap.
func TestNothingIsLostSilently(t *testing.T) {
	for seed := range uint64(40) {
		o := Options{Total: 20_000, PerAttempt: 6_000}
		if seed%2 == 1 {
			o.Spool = t.TempDir()
		}
		inBubbleWith(t, o, func(s *Shipper, a *store) {
			random := rand.New(rand.NewPCG(seed, 1))
			var writers []*Writer
			for i := range int64(4) {
				writers = append(writers, s.Open(i, 1, 1))
			}
			said := map[int64]int{}
			for range 600 {
				id := random.Int64N(4)
				switch random.IntN(20) {
				case 0:
					a.change(func() {
						if a.conn != nil {
							a.conn.Close()
						}
					})
				case 1:
					a.change(func() { a.hold = !a.hold })
				case 2:
					sleep(time.Duration(random.IntN(300)) * time.Millisecond)
				default:
					said[id]++
					writers[id].say(strings.Repeat("x", random.IntN(400)))
				}
			}
			a.change(func() {
				a.hold = false
				if a.conn != nil {
					a.conn.Close()
				}
			})
			last := map[int64]int64{}
			for id, w := range writers {
				last[int64(id)] = w.Close()
			}
			flush(t, s)
			for id, n := range last {
				missing, told, notes := 0, 0, 0
				for number := int64(1); number <= n; number++ {
					line := a.lines[id][number]
					if line == nil {
						missing++
						continue
					}
					var dropped int
					if k, _ := fmt.Sscanf(string(line.GetAttrs()), `{"dropped":%d}`, &dropped); k == 1 {
						told += dropped
						notes++
					}
				}
				require.Equal(t, missing, told, "seed %d", seed)
				require.EqualValues(t, n, said[id]+notes, "seed %d", seed)
			}
			require.Zero(t, s.total)
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	a := &store{lines: map[int64]map[int64]*proto.LogLine{}}
	s := New(Options{Dial: a.dial, Total: 64 << 20, PerAttempt: 64 << 20, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { s.Run(ctx) })
	w := s.Open(1, 1, 1)
	text := strings.Repeat("x", 100)
	b.ReportAllocs()
	for b.Loop() {
		w.say(text)
	}
	cancel()
	wait.Wait()
	a.wait.Wait()
}
