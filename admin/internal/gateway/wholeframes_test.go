package gateway

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/hashicorp/yamux"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// countingConn counts writes.
type countingConn struct {
	net.Conn
	mu     sync.Mutex
	writes int // guarded by mu
}

func (c *countingConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.writes++
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// A multiplexer carries the same bytes with one write a frame.
func TestAFrameIsOneWrite(t *testing.T) {
	here, there := net.Pipe()
	counted := &countingConn{Conn: here}
	cfg := func() *yamux.Config {
		c := yamux.DefaultConfig()
		c.EnableKeepAlive, c.LogOutput = false, io.Discard
		return c
	}
	client, err := yamux.Client(proto.WholeFrames(counted), cfg())
	require.NoError(t, err)
	defer client.Close()
	server, err := yamux.Server(proto.WholeFrames(there), cfg())
	require.NoError(t, err)
	defer server.Close()

	out, err := client.Open()
	require.NoError(t, err)
	in, err := server.Accept()
	require.NoError(t, err)
	sizes := []int{1, 11, 12, 13, 100, 4096, 70_000}
	var sent bytes.Buffer
	counted.mu.Lock()
	before := counted.writes
	counted.mu.Unlock()
	for _, n := range sizes {
		p := make([]byte, n)
		_, _ = rand.Read(p)
		sent.Write(p)
		_, err := out.Write(p)
		require.NoError(t, err)
		got := make([]byte, n)
		_, err = io.ReadFull(in, got)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	counted.mu.Lock()
	require.Equal(t, len(sizes), counted.writes-before)
	counted.mu.Unlock()
	require.NoError(t, out.Close()) // frames without a body pass
	_, err = in.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
