package testenv

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A broker is several processes; the pid that the guard knows is the first.
func TestGuardEndsTheWholeGroup(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.Mkdir(home, 0o700))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	server := exec.Command("/bin/sh", "-c", `echo $$ >"$0/pid"; sleep 600 & echo started; wait`, home)
	server.Stdout, server.SysProcAttr = write, &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) }) // should the guard not
	require.NoError(t, write.Close())
	require.NoError(t, read.SetReadDeadline(time.Now().Add(startLimit)))
	out := bufio.NewReader(read)
	_, err = out.ReadString('\n')
	require.NoError(t, err)

	nothing, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer nothing.Close()
	require.NoError(t, guardCommand(home, nothing).Run())
	require.Error(t, server.Wait(), "it was killed")
	require.NoDirExists(t, home)
	_, err = io.ReadAll(out)
	require.NoError(t, err, "the child is gone when nobody can write any more")
}
