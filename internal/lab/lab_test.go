package lab

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProcessEndsAsAskedAndLogs(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(dir, "shell", []string{"WORD=bell"}, "/bin/sh", "-c", `echo "$WORD"; exec tail -f /dev/null`)
	require.NoError(t, err)
	require.False(t, p.Ended())
	require.NoError(t, Living(p))
	StopAll(nil, p)
	require.True(t, p.Ended())
	require.ErrorContains(t, Living(p), "shell ended by itself")
	require.Error(t, p.Signal(syscall.SIGSTOP))
}

func TestAKilledProcessIsGone(t *testing.T) {
	p, err := Start(t.TempDir(), "tail", nil, "tail", "-f", "/dev/null")
	require.NoError(t, err)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	p.Kill() // works on a frozen one too
	require.True(t, p.Ended())
	require.ErrorIs(t, syscall.Kill(p.PID(), 0), syscall.ESRCH)
}

func TestFreeAddressCanBeListenedOn(t *testing.T) {
	address, err := FreeAddress()
	require.NoError(t, err)
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

func TestUsageOfOurselves(t *testing.T) {
	before, err := ReadUsage(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, before.RSS)
	for {
		now, err := ReadUsage(os.Getpid())
		require.NoError(t, err)
		if now.CPU > before.CPU {
			return // reading costs CPU, sooner or later a tick of it
		}
	}
}

func TestSightingsAreJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64()
		want := Sighting{
			Job: number.Draw(t, "job"), Run: number.Draw(t, "run"), Fence: number.Draw(t, "fence"),
			Attempt: rapid.Int().Draw(t, "attempt"), Fire: number.Draw(t, "fire"), Start: number.Draw(t, "start"),
		}
		var got Sighting
		require.NoError(t, json.Unmarshal(appendSighting(nil, want), &got))
		require.Equal(t, want, got)
	})
}

func TestWitnessKeepsEveryLine(t *testing.T) {
	for name, delay := range map[string]bool{"at once": false, "delayed": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "witness.jsonl")
			w, err := OpenWitness(path, delay)
			require.NoError(t, err)
			now := time.Now()
			for range 100 {
				require.NoError(t, w.Record(t.Context(), now))
			}
			if !delay {
				require.Equal(t, 100, count(t, path), "nothing waits for Close")
			}
			require.NoError(t, w.Close())
			require.Equal(t, 100, count(t, path))
		})
	}
}

func count(t *testing.T, path string) (n int) {
	t.Helper()
	require.NoError(t, ReadSightings(func(Sighting) { n++ }, path))
	return n
}
