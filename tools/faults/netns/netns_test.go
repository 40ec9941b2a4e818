package netns

import (
	"errors"
	"net"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where the machine has no namespaces, it says so and leaves nothing.
func TestAPulledCableIsABlackhole(t *testing.T) {
	n, err := New(1, 1)
	var unable *Unable
	if errors.As(err, &unable) {
		t.Log(unable)
		require.Nil(t, n)
		return
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, n.Close())
		require.NoError(t, n.Close(), "a second time does nothing")
	})
	l, err := net.Listen("tcp", n.Address(0)+":0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	within := func(seconds string) bool {
		// bash connects by itself; timeout bounds what a blackhole swallows.
		return exec.Command("ip", "netns", "exec", n.Space(0), "timeout", seconds, "bash", "-c", "echo >/dev/tcp/"+n.Address(0)+"/"+port).Run() == nil
	}
	reaches := func() bool { return within("60") } // it is there at once, on a machine with time
	loses := func() bool { return !within("1") }
	require.True(t, reaches())
	require.NoError(t, n.Pull(0, 0))
	require.True(t, loses())
	require.NoError(t, n.Plug(0, 0))
	require.True(t, reaches())
	for name, cut := range map[string]func(s, b int) error{"deaf": n.Deafen, "mute": n.Mute} {
		require.NoError(t, cut(0, 0), name)
		require.True(t, loses(), name)
		require.NoError(t, n.Hear(0, 0), name)
		require.True(t, reaches(), name)
	}
}
