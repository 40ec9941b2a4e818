package gateway_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/gateway"
)

// Executors hear at once that a node has no database yet. Afterwards the port is the node's.
func TestConnectionsAreRefusedUntilTheNodeServes(t *testing.T) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer listener.Close()
	stop := gateway.RefuseAll(listener)
	for range 3 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, conn.Close())
	}
	stop()
	conn, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	there, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, there.Close())
}
