package gateway

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConnectionsGiveUpADeadPath: what the kernel was told is read back.
func TestConnectionsGiveUpADeadPath(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	tune(conn)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		for option, want := range map[int]int{
			tcpUserTimeout: 15_000, syscall.TCP_KEEPIDLE: 15, syscall.TCP_KEEPINTVL: 5, syscall.TCP_KEEPCNT: 3, syscall.TCP_NODELAY: 1,
		} {
			got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
			require.NoError(t, err)
			require.Equal(t, want, got, "option %d", option)
		}
	}))
	mux := muxConfig()
	require.False(t, mux.EnableKeepAlive, "the pulse pings")
	require.EqualValues(t, 5, mux.ConnectionWriteTimeout.Seconds())
	require.EqualValues(t, 256<<10, mux.MaxStreamWindowSize)
}
