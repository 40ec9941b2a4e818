package gateway

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/proto"
)

// deafConn delivers nothing while its lock is held.
type deafConn struct {
	net.Conn
	deaf sync.Mutex
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.deaf.Lock()
	defer c.deaf.Unlock()
	return n, err
}

// TestWhoDoesNotAnswerGetsNoOffers until it does: its session stands, and
// nobody has told that it ended.
func TestWhoDoesNotAnswerGetsNoOffers(t *testing.T) {
	b := start(t)
	conn, answer := b.dial(hello(goodToken, bootA))
	require.Nil(t, answer.Error)
	deaf := &deafConn{Conn: conn}
	p := b.joinOver(deaf, answer, &proto.Register{InstanceName: "i", Slots: 5, Handlers: []*proto.Handler{{Name: "close-day"}}})
	s := <-b.rec.joined
	require.Equal(t, []*Session{s}, b.gate.Sessions(1, 2, "close-day"))

	deaf.deaf.Lock()
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	require.Equal(t, s, <-b.rec.doubted)
	require.Empty(t, b.gate.Sessions(1, 2, "close-day"))
	require.Zero(t, b.gate.Reached())
	require.Equal(t, 1, b.gate.Count(), "it is no verdict")
	require.Equal(t, map[int64]int64{7: 1}, s.Slots.Offered(), "to be taken back")

	deaf.deaf.Unlock()
	require.Equal(t, room{s, 4}, <-b.rec.freed)
	require.Equal(t, []*Session{s}, b.gate.Sessions(1, 2, "close-day"))
	require.Equal(t, 1, b.gate.Reached())
	require.EqualValues(t, 7, p.nextCommand().GetOffers().GetOffers()[0].ExecutionId)
	require.False(t, s.Closed())
}

// TestWatchLooksWhenItWasAsked, never later, however often it is asked, and not
// after it was stopped.
func TestWatchLooksWhenItWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch
		began := time.Now()
		var looks []time.Duration
		inside := func() {}
		w.start(func() time.Duration {
			looks = append(looks, time.Since(began))
			inside()
			return 10 * time.Second
		})
		for range 10 { // asks that follow each other put nothing off
			w.within(time.Second)
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Second, 2200 * time.Millisecond}, looks)
		looks = nil
		inside = func() { inside = func() {}; w.within(time.Second) } // asked while it looks
		w.within(0)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second, 4 * time.Second, 14 * time.Second}, looks)
		w.stop()
		w.within(0)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, looks, 3)
	})
}

// faulty has a fault where it hears of a doubt.
type faulty struct{ *recorder }

func (faulty) Doubted(*Session) { panic("doubted") }

// TestAPanicOfALookCostsItsSession, and no other.
func TestAPanicOfALookCostsItsSession(t *testing.T) {
	b := startWith(t, func(o *Options) { o.Sink = faulty{o.Sink.(*recorder)} })
	other := b.join(bootB, 5)
	get(t, b.rec.joined)
	conn, answer := b.dial(hello(goodToken, bootA))
	require.Nil(t, answer.Error)
	deaf := &deafConn{Conn: conn}
	b.joinOver(deaf, answer, &proto.Register{InstanceName: "i", Slots: 5, Handlers: []*proto.Handler{{Name: "close-day"}}})
	s := get(t, b.rec.joined)
	deaf.deaf.Lock()
	defer deaf.deaf.Unlock()
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	require.Same(t, s, get(t, b.rec.left))
	require.NotEmpty(t, panics.Stack(s.err()))
	require.EqualValues(t, 1, other.beats(&proto.Heartbeat{Seq: 1}).Seq)
}

// TestARecurringTaskOutlivesAPanic and is told of it.
func TestARecurringTaskOutlivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told strings.Builder
		g := New(Options{Logger: slog.New(slog.NewTextHandler(&told, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
		defer cancel()
		calls := 0
		g.tasks.every(ctx, time.Second, nil, "count", func() error {
			if calls++; calls == 2 {
				panic("two")
			}
			return nil
		})
		require.Equal(t, 3, calls)
		require.Contains(t, told.String(), `task=count err="panic: two"`)
		require.Contains(t, told.String(), "works again")
	})
}
