package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLimitsBite(t *testing.T) {
	for name, c := range map[string]struct {
		limits                 Limits
		language, content, err string
	}{
		"memory": {Limits{Memory: 64 << 20}, "python", "b = bytearray(200 << 20)", "exit code 1: MemoryError"},
		"memory of a child": {
			Limits{Memory: 64 << 20}, "shell", "/usr/bin/env python3 -c 'b = bytearray(200 << 20)'", "exit code 1: MemoryError",
		},
		"processor time": {Limits{CPU: time.Second}, "shell", "while :; do :; done", "ended at the limit of 1s of processor time"},
		"files":          {Limits{Files: 20}, "python", "f = [open('/dev/null') for _ in range(100)]", "Too many open files"},
		"file size":      {Limits{FileSize: 1 << 20}, "shell", "exec head -c 2000000 /dev/zero > f", "ended at the limit of 1048576 bytes for a file"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{Limits: c.limits})
			_, err := b.run(t.Context(), c.language, c.content, "{}")
			require.ErrorContains(t, err, c.err, b.log.all())
		})
	}
	t.Run("none bites who stays below", func(t *testing.T) {
		b := newBench(t, Options{Limits: DefaultLimits})
		b.opt.Limits.Processes += ownedBy(t, b.who.UID)
		got, err := b.run(t.Context(), "python", "import resource as r; b = bytearray(100 << 20); print([r.getrlimit(x)[1] for x in (r.RLIMIT_CORE, r.RLIMIT_NOFILE)])", "{}")
		require.NoError(t, err)
		require.JSONEq(t, `[0, 1024]`, string(got.Result))
	})
}

// A script that does nothing but start itself reaches its limit, harms nobody,
// and ends with all of its processes when it is cancelled.
func TestAForkBombIsBounded(t *testing.T) {
	const room = 60
	b := newBench(t, Options{KillGrace: time.Millisecond})
	// Others of this user come and go meanwhile, which counts for the limit.
	b.opt.Limits.Processes = ownedBy(t, b.who.UID) + room
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := b.run(ctx, "python", `
import os, sys, time
full = False
while True:
    try:
        if os.fork() == 0: continue
    except OSError:
        if not full: print("full", flush=True)
        full = True
        time.sleep(0.01)
`, "{}")
		done <- err
	}()
	b.log.await(t, 3, "INFO full")
	bomb := inFolder(t, b.dir)
	require.NotZero(t, bomb)
	require.LessOrEqual(t, bomb, b.opt.Limits.Processes)
	_, err := newBench(t, Options{}).shell("true")
	require.NoError(t, err, "who has no such limit goes on")
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Zero(t, inFolder(t, b.dir))
}

// Of a long output the log has the head and the tail, and says how many lines
// are missing in between.
func TestOutputIsBounded(t *testing.T) {
	b := newBench(t, Options{MaxOutput: 1000})
	got, err := b.run(t.Context(), "python", `
for i in range(1000): print("%049d" % i)
print("y" * 300000)
print('{"rows": 100}')
`, "{}")
	require.NoError(t, err)
	require.JSONEq(t, `{"rows":100}`, string(got.Result), "the result counts all the same")
	lines := b.log.all()
	require.Contains(t, lines[0], "script starts")
	require.Equal(t, fmt.Sprintf("INFO %049d", 19), lines[20])
	tail := len(lines) - 23
	require.Equal(t, fmt.Sprintf("WARN %d lines left out: the output is over its bound of 1000 bytes (--max-output of the agent)", 1002-20-tail), lines[21])
	require.LessOrEqual(t, tail, maxTailLines)
	require.Equal(t, fmt.Sprintf("INFO %049d", 999), lines[len(lines)-4])
	require.Equal(t, "INFO "+strings.Repeat("y", maxTailLine)+" … (cut)", lines[len(lines)-3])
	require.Equal(t, []string{`INFO {"rows": 100}`, "INFO script ended"}, lines[len(lines)-2:])
}

func TestALongLineIsCut(t *testing.T) {
	b := newBench(t, Options{})
	got, err := b.run(t.Context(), "python", `print("1" * 300000)`, "{}")
	require.NoError(t, err)
	require.Equal(t, ScriptResult{}, got, "half a line is no result")
	line := b.log.await(t, 1, "INFO 1")[0]
	require.True(t, strings.HasSuffix(line, " … (cut)"))
	require.Len(t, strings.TrimSuffix(line, " … (cut)"), maxLine-1)
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "77": 77, "1k": 1 << 10, "512M": 512 << 20, "1GiB": 1 << 30, "2 TB": 2 << 40, "8192T": 1 << 53} {
		n, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, n, text)
	}
	for _, text := range []string{"", "M", "-1", "1.5G", "1X", "9999999T"} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
}
