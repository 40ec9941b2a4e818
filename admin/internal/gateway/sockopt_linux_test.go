package gateway

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func tcpOption(t *testing.T, conn net.Conn, option int) (value int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
	}))
	require.NoError(t, err)
	return value
}

// TestConnectionsGiveUpADeadPath: what the kernel was told is read back.
func TestConnectionsGiveUpADeadPath(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	tune(conn)
	for option, want := range map[int]int{
		tcpUserTimeout: 15_000, syscall.TCP_KEEPIDLE: 4, syscall.TCP_KEEPINTVL: 1, syscall.TCP_KEEPCNT: 3, syscall.TCP_NODELAY: 1,
	} {
		require.Equal(t, want, tcpOption(t, conn, option), "option %d", option)
	}
	limitPath(conn, idlePathTimeout)
	require.Equal(t, 7_000, tcpOption(t, conn, tcpUserTimeout))
	limitPath(conn, pathTimeout)
	require.Equal(t, 15_000, tcpOption(t, conn, tcpUserTimeout))
	mux := muxConfig()
	require.False(t, mux.EnableKeepAlive, "the idle policy pings")
	require.EqualValues(t, 5, mux.ConnectionWriteTimeout.Seconds())
	require.EqualValues(t, 256<<10, mux.MaxStreamWindowSize)
}

// TestTheKernelWatchesIdlePaths, and only as long as they are idle.
func TestTheKernelWatchesIdlePaths(t *testing.T) {
	b := startWith(t, func(o *Options) { o.IdleBeats = 0.01 })
	p := b.join(bootA, 5)
	s := get(t, b.rec.joined)
	p.beats(&proto.Heartbeat{Seq: 1, Paced: true})
	require.Equal(t, 7_000, tcpOption(t, s.socket, tcpUserTimeout))
	p.beats(&proto.Heartbeat{Seq: 2, Paced: true, Running: 1})
	require.Equal(t, 15_000, tcpOption(t, s.socket, tcpUserTimeout))
}
