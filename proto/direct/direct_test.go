//go:build unix

package direct

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair returns both ends of a connection.
func pair(t testing.TB, network string) (here, there net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	listener, err := net.Listen(network, address)
	require.NoError(t, err)
	defer listener.Close()
	here, err = net.Dial(network, listener.Addr().String())
	require.NoError(t, err)
	there, err = listener.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { here.Close(); there.Close() })
	return here, there
}

var networks = []string{"tcp", "unix"}

// TestAllArrives: more than the kernel's buffers hold goes both ways at once, in
// pieces of any size, and the writer waits for a reader who is slower.
func TestAllArrives(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			here, there := pair(t, network)
			a, b := Conn(here), Conn(there)
			random := rand.New(rand.NewPCG(1, 2))
			sent := make([]byte, 24<<20)
			for i := range sent {
				sent[i] = byte(random.Uint32())
			}
			var wg sync.WaitGroup
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				sizes := rand.New(rand.NewPCG(3, 4))
				wg.Go(func() {
					for rest := sent; len(rest) > 0; {
						n := min(len(rest), 1+sizes.IntN(3<<20))
						wrote, err := way[0].Write(rest[:n])
						if err != nil || wrote != n {
							t.Errorf("wrote %d of %d: %v", wrote, n, err)
							return
						}
						rest = rest[n:]
					}
				})
				wg.Go(func() {
					got, piece := make([]byte, 0, len(sent)), make([]byte, 100_000)
					for len(got) < len(sent) {
						n, err := way[1].Read(piece)
						if err != nil {
							t.Error(err)
							return
						}
						got = append(got, piece[:n]...)
					}
					if !bytes.Equal(sent, got) {
						t.Error("what arrived is not what was sent")
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestErrorsAreThoseOfTheConnection compares what goes wrong with a connection
// itself and with its direct form.
func TestErrorsAreThoseOfTheConnection(t *testing.T) {
	big := make([]byte, 32<<20)
	soon := func() time.Time { return time.Now().Add(20 * time.Millisecond) }
	for _, c := range []struct {
		name string
		do   func(here, there net.Conn) (int, error)
		is   error
	}{
		{"a deadline for reading", func(here, _ net.Conn) (int, error) {
			_ = here.SetReadDeadline(soon())
			return here.Read(make([]byte, 10))
		}, os.ErrDeadlineExceeded},
		{"a deadline that has passed", func(here, there net.Conn) (int, error) {
			_, _ = there.Write([]byte("x"))
			_ = here.SetDeadline(time.Now().Add(-time.Second))
			return here.Read(make([]byte, 10))
		}, os.ErrDeadlineExceeded},
		{"a deadline for writing", func(here, _ net.Conn) (int, error) {
			_ = here.SetWriteDeadline(soon())
			n, err := here.Write(big)
			if n <= 0 || n >= len(big) {
				return n, fmt.Errorf("wrote %d", n)
			}
			return 0, err
		}, os.ErrDeadlineExceeded},
		{"the end", func(here, there net.Conn) (int, error) {
			there.Close()
			return here.Read(make([]byte, 10))
		}, io.EOF},
		{"nothing to read", func(here, _ net.Conn) (int, error) { return here.Read(nil) }, nil},
		{"nothing to write", func(here, _ net.Conn) (int, error) { return here.Write(nil) }, nil},
		{"read after Close", func(here, _ net.Conn) (int, error) {
			here.Close()
			return here.Read(make([]byte, 10))
		}, net.ErrClosed},
		{"write after Close", func(here, _ net.Conn) (int, error) {
			here.Close()
			return here.Write([]byte("x"))
		}, net.ErrClosed},
		{"Close during a read", func(here, _ net.Conn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { here.Close() })
			return here.Read(make([]byte, 10))
		}, net.ErrClosed},
		{"Close during a write", func(here, _ net.Conn) (int, error) {
			time.AfterFunc(20*time.Millisecond, func() { here.Close() })
			_, err := here.Write(big)
			return 0, err
		}, net.ErrClosed},
		{"a reset while reading", func(here, there net.Conn) (int, error) {
			if tcp, ok := there.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			} else { // what is unread at the end resets a Unix socket
				_, _ = here.Write([]byte("unread"))
			}
			there.Close()
			return here.Read(make([]byte, 10))
		}, syscall.ECONNRESET},
		{"a peer that is gone", func(here, there net.Conn) (int, error) {
			if tcp, ok := there.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			there.Close()
			for range 100 {
				if _, err := here.Write([]byte("x")); errors.Is(err, syscall.EPIPE) {
					return 0, err
				}
			}
			return 0, errors.New("writes go on")
		}, syscall.EPIPE},
	} {
		for _, network := range networks {
			t.Run(c.name+"/"+network, func(t *testing.T) {
				here, there := pair(t, network)
				want, wantErr := c.do(here, there)
				require.ErrorIs(t, wantErr, c.is)
				plain := here
				here, there = pair(t, network)
				got, gotErr := c.do(Conn(here), there)
				require.ErrorIs(t, gotErr, c.is)
				require.Equal(t, want, got)
				if wantErr == nil {
					return
				}
				text := func(err error, conn net.Conn) string {
					s := strings.ReplaceAll(err.Error(), conn.LocalAddr().String(), "here")
					return strings.ReplaceAll(s, conn.RemoteAddr().String(), "there")
				}
				require.Equal(t, text(wantErr, plain), text(gotErr, here))
				require.IsType(t, wantErr, gotErr)
				var a, b net.Error
				if errors.As(wantErr, &a) {
					require.ErrorAs(t, gotErr, &b)
					require.Equal(t, a.Timeout(), b.Timeout())
				}
			})
		}
	}
}

// TestADeadlineIsNoEnd: a connection goes on after one.
func TestADeadlineIsNoEnd(t *testing.T) {
	here, there := pair(t, "tcp")
	conn := Conn(here)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	time.AfterFunc(10*time.Millisecond, func() { _, _ = there.Write([]byte("later")) })
	b := make([]byte, 10)
	n, err := conn.Read(b)
	require.NoError(t, err)
	require.Equal(t, "later", string(b[:n]))
}

// TestWritesStayWhole: what several goroutines write is not mixed up.
func TestWritesStayWhole(t *testing.T) {
	here, there := pair(t, "tcp")
	conn := Conn(here)
	const writers, lines = 8, 200
	var wg sync.WaitGroup
	for w := range writers {
		line := append(bytes.Repeat([]byte{byte('a' + w)}, 5000), '\n')
		wg.Go(func() {
			for range lines {
				if _, err := conn.Write(line); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() { wg.Wait(); conn.Close() }()
	all, err := io.ReadAll(Conn(there))
	require.NoError(t, err)
	got := bytes.Split(bytes.TrimSuffix(all, []byte("\n")), []byte("\n"))
	require.Len(t, got, writers*lines)
	for _, line := range got {
		require.Equal(t, bytes.Repeat(line[:1], 5000), line)
	}
}

// TestOthersStayAsTheyAre: no socket, nothing to do.
func TestOthersStayAsTheyAre(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	require.Same(t, a, Conn(a))
	require.Same(t, a, Pooled(a))
	closed, _ := pair(t, "tcp")
	closed.Close()
	_, err := Conn(closed).Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestPooledIsLookedAtWhenItSpeaks does what go-sql-driver/mysql does before it
// takes a connection from the pool.
func TestPooledIsLookedAtWhenItSpeaks(t *testing.T) {
	look := func(conn net.Conn) (state string) {
		raw, err := conn.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		state = "alive"
		require.NoError(t, raw.Read(func(fd uintptr) bool {
			var b [1]byte
			switch n, err := syscall.Read(int(fd), b[:]); {
			case n > 0:
				state = "speaks"
			case n == 0 && err == nil:
				state = "has ended"
			case !errors.Is(err, syscall.EAGAIN):
				state = "has failed"
			}
			return true
		}))
		return state
	}
	// arrives waits until there is something to read, and leaves it there. It has
	// to look before it waits: the poller tells each arrival once.
	arrives := func(conn net.Conn) {
		raw, err := conn.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Read(func(fd uintptr) bool {
			var b [1]byte
			_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			return !errors.Is(err, syscall.EAGAIN)
		}))
	}
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			here, there := pair(t, network)
			conn := Pooled(here)
			require.Equal(t, "alive", look(conn))
			_, err := there.Write([]byte("x"))
			require.NoError(t, err)
			arrives(here)
			require.Equal(t, "speaks", look(conn))
			require.Equal(t, "alive", look(conn), "and no more than that")
			there.Close()
			arrives(here)
			require.Equal(t, "has ended", look(conn))
			conn.Close()
			raw, err := conn.(syscall.Conn).SyscallConn()
			require.NoError(t, err)
			require.ErrorIs(t, raw.Read(func(uintptr) bool { return true }), net.ErrClosed)
		})
	}
}

// peerAddress tells the test binary that it is the peer of a benchmark.
const peerAddress = "DIRECT_TEST_PEER"

func TestMain(m *testing.M) {
	if address := os.Getenv(peerAddress); address != "" {
		answerSlowly(address)
		return
	}
	os.Exit(m.Run())
}

// answerSlowly sends back what comes, once a millisecond, until the connection
// ends.
func answerSlowly(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		panic(err)
	}
	p, tick := make([]byte, 100), time.NewTicker(time.Millisecond)
	for {
		n, err := conn.Read(p)
		if err != nil {
			return
		}
		<-tick.C
		if _, err = conn.Write(p[:n]); err != nil {
			return
		}
	}
}

// BenchmarkMessages is a process that asks another one, as a node asks its
// database, and has nothing else to do: what one question costs it, and how
// often one of its threads goes to sleep (docs/adr/0043).
func BenchmarkMessages(b *testing.B) {
	for _, c := range []struct {
		name string
		wrap func(net.Conn) net.Conn
	}{{"net", func(c net.Conn) net.Conn { return c }}, {"direct", Conn}} {
		b.Run(c.name, func(b *testing.B) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(b, err)
			defer listener.Close()
			peer := exec.Command(os.Args[0])
			peer.Env = append(os.Environ(), peerAddress+"="+listener.Addr().String())
			require.NoError(b, peer.Start())
			accepted, err := listener.Accept()
			require.NoError(b, err)
			conn, p := c.wrap(accepted), make([]byte, 100)
			before := usage(b)
			for b.Loop() {
				_, _ = conn.Write(p)
				if _, err := conn.Read(p); err != nil {
					b.Fatal(err)
				}
			}
			after := usage(b)
			conn.Close()
			require.NoError(b, peer.Wait())
			b.ReportMetric(float64(after.Nvcsw-before.Nvcsw)/float64(b.N), "sleeps/op")
			spent := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func usage(b *testing.B) (u syscall.Rusage) {
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u
}
