package gateway

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// closer notes that it was closed.
type closer struct{ closed bool }

func (c *closer) Close() error { c.closed = true; return nil }

// came is a connection at the door.
type came struct {
	*stranger
	conn *closer
}

func comes(d *door, from netip.Addr) came {
	c := &closer{}
	return came{d.enter(from, c), c}
}

func TestWhoSaysNothingGoesFirst(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	d := newDoor(Limits{Pending: 100, PendingPerAddress: 3, PerAddress: 100})
	talks, first, second := comes(d, a), comes(d, a), comes(d, a)
	d.spoke(talks.stranger)
	alone := comes(d, b)
	third := comes(d, a)
	require.True(t, first.conn.closed, "the silent one that has waited longest")
	for _, c := range []came{talks, second, third, alone} {
		require.NotNil(t, c.stranger)
		require.False(t, c.conn.closed)
	}
	d.asks(talks.stranger) // its hello is here
	d.spoke(second.stranger)
	d.spoke(third.stranger)
	fourth := comes(d, a)
	require.True(t, second.conn.closed, "of those that have begun the one that did so first")
	d.asks(third.stranger)
	d.asks(fourth.stranger)
	require.Nil(t, comes(d, a).stranger, "nobody is closed whose hello is judged")
	require.False(t, talks.conn.closed || third.conn.closed || fourth.conn.closed || alone.conn.closed)
	require.EqualValues(t, 3, d.turnedAway())
	for _, c := range []came{talks, first, second, third, fourth, alone} {
		d.leave(c.stranger)
	}
	require.Empty(t, d.from)
	require.Equal(t, [2]int{}, d.pending)
	require.Empty(t, d.waiting[0])
}

func TestTheBusiestAddressMakesRoom(t *testing.T) {
	d := newDoor(Limits{Pending: 12, PendingPerAddress: 12, PerAddress: 100})
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	var few, many []came
	for i := range 3 {
		few = append(few, comes(d, address(i)))
	}
	for range 6 {
		many = append(many, comes(d, address(9)))
	}
	late := comes(d, address(4))
	require.NotNil(t, late.stranger)
	require.True(t, many[0].conn.closed, "a quarter of the places is for known addresses")
	d.visited(address(5), 1)
	guests := []came{comes(d, address(5)), comes(d, address(5)), comes(d, address(5))}
	require.False(t, many[1].conn.closed, "they have places")
	for i := range 100 {
		require.NotNil(t, comes(d, address(100+i)).stranger, "room is made for each")
	}
	for _, c := range guests {
		require.False(t, c.conn.closed, "strangers do not touch them")
	}
	require.NotNil(t, comes(d, address(5)).stranger)
	require.True(t, guests[0].conn.closed, "of all now")
	require.True(t, few[0].conn.closed, "the oldest of equals")
	require.LessOrEqual(t, d.pending[0]+d.pending[1], 12)
}

func TestGuestsAreRememberedForAWhile(t *testing.T) {
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}) }
	now := time.Unix(1_800_000_000, 0)
	g := newGuests()
	for i := range 2 * maxGuestsOfTenant {
		g.add(at(i), 1, now)
	}
	require.Equal(t, maxGuestsOfTenant, g.last.Len(), "nobody fills the memory that all have")
	g.add(at(9_999), 2, now)
	require.True(t, g.has(at(9_999), now) && g.has(at(0), now))
	g.add(at(0), 2, now.Add(guestFor/2))
	require.Equal(t, maxGuestsOfTenant, g.of[1], "it stays whose it was")
	require.False(t, g.has(at(1), now.Add(guestFor)))
	require.True(t, g.has(at(0), now.Add(guestFor)))
	g.add(at(10_000), 3, now.Add(guestFor))
	require.Equal(t, 2, g.last.Len(), "what is over makes room")
	require.Equal(t, map[domain.TenantID]int{1: 1, 3: 1}, g.of)
	for i := range 3 * maxGuests {
		g.add(at(20_000+i), domain.TenantID(i), now)
	}
	require.Equal(t, maxGuests, g.last.Len())
	require.Len(t, g.of, maxGuests)
}

// Whoever says nothing has less time than whoever has begun.
func TestTheFirstByteHasToComeSoon(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		want time.Duration
	}{
		"nothing":  {"", proto.FirstByteTimeout},
		"one byte": {"C", proto.HelloTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := New(Options{Logger: slog.New(slog.DiscardHandler)})
				near, far := net.Pipe()
				defer far.Close()
				who := g.door.enter(netip.MustParseAddr("10.0.0.1"), near)
				go func() { _, _ = io.WriteString(far, c.says) }()
				began := time.Now()
				_, _, err := g.greet(t.Context(), near, who)
				require.ErrorContains(t, err, "read preface")
				require.Equal(t, c.want, time.Since(began))
				g.door.leave(who)
			})
		})
	}
}

// floodFrom keeps opening connections that say nothing until ctx ends. It holds
// as many as the node leaves it.
func (b *bench) floodFrom(ctx context.Context, local string) {
	var open sync.WaitGroup
	defer open.Wait()
	for ctx.Err() == nil {
		conn, err := dialFrom(local, b.addr)
		if err != nil {
			continue
		}
		open.Go(func() {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			_, _ = conn.Read(make([]byte, 1)) // until the node closes it
			conn.Close()
		})
	}
}

func dialFrom(local, address string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	return d.Dial("tcp", address)
}

// greets tries to come in from an address, so often.
func (b *bench) greets(local, boot string, tries int) (conn net.Conn, answer *proto.ServerHello, tried int) {
	b.t.Helper()
	out, err := proto.AppendFrame([]byte(proto.Preface), hello(goodToken, boot), proto.MaxHello)
	require.NoError(b.t, err)
	for tried = range tries {
		conn, err := dialFrom(local, b.addr)
		if err != nil {
			continue
		}
		b.t.Cleanup(func() { conn.Close() })
		require.NoError(b.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		answer := &proto.ServerHello{}
		if _, err = conn.Write(out); err == nil {
			err = proto.ReadHello(conn, answer)
		}
		if err == nil {
			require.Nil(b.t, answer.Error)
			return conn, answer, tried
		}
		conn.Close()
	}
	b.t.Fatalf("nobody came in from %s with %d tries", local, tries)
	return nil, nil, 0
}

// TestSilentConnectionsKeepNobodyOut, neither from another address nor from their
// own, and nobody who is in already notices them.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	b := startWith(t, func(o *Options) { o.Limits.Pending, o.Limits.PendingPerAddress = 300, 100 })
	in := b.join(bootA, 5)
	s := get(t, b.rec.joined)

	attack, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	for i := range 4 {
		attackers.Go(func() { b.floodFrom(attack, fmt.Sprintf("127.0.0.%d", 2+i)) })
	}
	require.Eventually(t, func() bool { return b.gate.TurnedAway() > 5000 }, time.Minute, time.Millisecond, "the port is full")
	for i, from := range []string{"127.0.0.9", "127.0.0.2", "127.0.0.1"} {
		conn, answer, tried := b.greets(from, bootOf(i), 10)
		t.Logf("in from %s after %d refusals; %d connections closed so far", from, tried, b.gate.TurnedAway())
		b.joinOver(conn, answer, &proto.Register{InstanceName: fmt.Sprint("i", i), Slots: 1, Handlers: []*proto.Handler{{Name: "close-day"}}})
		get(t, b.rec.joined)
	}
	in.send(in.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, in.nextControl().GetHeartbeatAck().GetSeq())
	require.NoError(t, s.err())
	require.Equal(t, 4, b.gate.Count())
	stop()
	attackers.Wait()
}
