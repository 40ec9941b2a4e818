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

// came is a connection that was made.
type came struct {
	*candidate
	conn *closer
}

func comes(d *admission, from netip.Addr) came {
	c := &closer{}
	return came{d.connect(from, c), c}
}

func TestWhoSaysNothingGoesFirst(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	d := newAdmission(Limits{Pending: 100, PendingPerAddress: 3, PerAddress: 100}, "")
	talks, first, second := comes(d, a), comes(d, a), comes(d, a)
	d.advance(talks.candidate, begun)
	alone := comes(d, b)
	third := comes(d, a)
	require.True(t, first.conn.closed, "the silent one that has waited longest")
	for _, c := range []came{talks, second, third, alone} {
		require.NotNil(t, c.candidate)
		require.False(t, c.conn.closed)
	}
	d.advance(talks.candidate, judging) // its hello is here
	d.advance(second.candidate, begun)
	d.advance(third.candidate, begun)
	fourth := comes(d, a)
	require.True(t, second.conn.closed, "of those that have begun the one that did so first")
	d.advance(third.candidate, judging)
	d.advance(fourth.candidate, judging)
	require.Nil(t, comes(d, a).candidate, "nobody is closed whose hello is judged")
	require.False(t, talks.conn.closed || third.conn.closed || fourth.conn.closed || alone.conn.closed)
	require.EqualValues(t, 3, d.unheard)
	for _, c := range []came{talks, first, second, third, fourth, alone} {
		d.disconnect(c.candidate)
	}
	require.Empty(t, d.addresses)
	require.Zero(t, d.pending[0].count+d.pending[1].count)
	require.Nil(t, d.pending[0].waiting.most())
}

func TestTheBusiestAddressMakesRoom(t *testing.T) {
	d := newAdmission(Limits{Pending: 12, PendingPerAddress: 12, PerAddress: 100}, "")
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	var few, many []came
	for i := range 3 {
		few = append(few, comes(d, address(i)))
	}
	for range 6 {
		many = append(many, comes(d, address(9)))
	}
	late := comes(d, address(4))
	require.NotNil(t, late.candidate)
	require.True(t, many[0].conn.closed, "a quarter of the places is for known addresses")
	d.seen(address(5), 1)
	guests := []came{comes(d, address(5)), comes(d, address(5)), comes(d, address(5))}
	require.False(t, many[1].conn.closed, "they have places")
	for i := range 100 {
		require.NotNil(t, comes(d, address(100+i)).candidate, "room is made for each")
	}
	for _, c := range guests {
		require.False(t, c.conn.closed, "unknown addresses do not touch them")
	}
	require.NotNil(t, comes(d, address(5)).candidate)
	require.True(t, guests[0].conn.closed, "of all now")
	require.True(t, few[0].conn.closed, "the oldest of equals")
	require.LessOrEqual(t, d.pending[0].count+d.pending[1].count, 12)
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
				who := g.admission.connect(netip.MustParseAddr("10.0.0.1"), near)
				go func() { _, _ = io.WriteString(far, c.says) }()
				began := time.Now()
				_, _, err := g.greet(t.Context(), near, who)
				require.ErrorContains(t, err, "read preface")
				require.Equal(t, c.want, time.Since(began))
				g.admission.disconnect(who)
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
	require.NoError(t, s.err())
	in.send(in.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, in.nextControl().GetHeartbeatAck().GetSeq())
	require.Equal(t, 4, b.gate.Count())
	stop()
	attackers.Wait()
}

func tcp(address string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)) }

func TestAddresses(t *testing.T) {
	require.Equal(t, "10.0.0.1", addressOf(tcp("10.0.0.1:80")).String())
	require.Equal(t, addressOf(tcp("10.0.0.1:80")), addressOf(tcp("[::ffff:10.0.0.1]:81")))
	require.Equal(t, addressOf(tcp("[2001:db8::1]:80")), addressOf(tcp("[2001:db8::2:3]:80")), "one host has a whole network")
	require.NotEqual(t, addressOf(tcp("[2001:db8::1]:80")), addressOf(tcp("[2001:db8:0:1::1]:80")))
}

func TestAdmissionLimits(t *testing.T) {
	a, b := addressOf(tcp("10.0.0.1:1")), addressOf(tcp("10.0.0.2:1"))
	d := newAdmission(Limits{Pending: 4, PendingPerAddress: 2, PerAddress: 3, Sessions: 3, SessionsPerTenant: 2}, "")
	asking := func(from netip.Addr) *candidate { // nobody makes room for others
		s := d.connect(from, &closer{})
		if s != nil {
			d.advance(s, judging)
		}
		return s
	}
	a1, a2 := asking(a), asking(a)
	require.Nil(t, asking(a), "two of one address")
	b1 := asking(b)
	require.Nil(t, asking(b), "three in all whose address is not known")
	d.advance(a1, judged)
	b2 := asking(b)
	d.advance(a2, judged)
	a3 := asking(a)
	d.advance(a3, judged)
	require.Nil(t, asking(a), "three connections of one address")
	require.EqualValues(t, 3, d.unheard)
	for _, s := range []*candidate{a1, a2, a3, b1, b2} {
		d.advance(s, judged)
		d.disconnect(s)
	}
	require.Empty(t, d.addresses)
	require.Zero(t, d.pending[0].count+d.pending[1].count)

	first, err := d.seat(t.Context(), 1)
	require.NoError(t, err)
	_, err = d.seat(t.Context(), 1)
	require.NoError(t, err)
	_, err = d.seat(t.Context(), 1)
	require.Equal(t, domain.CodeRateLimited, domain.CodeOf(err))
	require.ErrorContains(t, err, "one tenant")
	_, err = d.seat(t.Context(), 2)
	require.NoError(t, err)
	_, err = d.seat(t.Context(), 2)
	require.ErrorContains(t, err, "maximum of 3")
	first.leave()
	first.leave() // once is enough
	_, err = d.seat(t.Context(), 1)
	require.NoError(t, err)
}
