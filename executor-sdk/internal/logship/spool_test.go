package logship

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// onDisk returns the lines in a spool folder, by execution.
func onDisk(t *testing.T, dir string) map[int64][]string {
	t.Helper()
	out := map[int64][]string{}
	for _, on := range openSpool(dir, 0, slog.New(slog.DiscardHandler)).found {
		require.NoError(t, eachFound(on, func(c *proto.LogChunk) bool {
			for i, l := range c.GetLines() {
				out[c.GetExecutionId()] = append(out[c.GetExecutionId()], fmt.Sprintf("%d %s", c.GetFirstLine()+int64(i), l.GetMessage()))
			}
			return true
		}))
	}
	return out
}

func empty(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestLinesStandOnTheDiskBeforeTheyAreSent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	inBubbleWith(t, Options{Total: 1 << 20, PerAttempt: 1 << 20, Spool: dir}, func(s *Shipper, a *store) {
		require.NoDirExists(t, dir, "nothing is made without lines")
		a.change(func() { a.hold = true })
		w := s.Open(7, 2, 3)
		w.say("one")
		w.say("two")
		sleep(spoolDelay)
		require.Equal(t, map[int64][]string{7: {"1 one", "2 two"}}, onDisk(t, dir))
		require.Empty(t, a.sent())
		sleep(time.Second)
		require.Len(t, a.sent(), 1)
		a.change(func() { a.hold = false; a.conn.Close() })
		flush(t, s)
	})
	empty(t, dir)
}

// What a process leaves, the next one ships, with the same numbers; what the
// crash tore is left out, and a run that died says so.
func TestTheNextProcessShipsWhatIsLeft(t *testing.T) {
	dir := t.TempDir()
	inBubbleWith(t, Options{Total: 1 << 20, PerAttempt: 1 << 20, Spool: dir}, func(s *Shipper, a *store) {
		a.change(func() { a.dialErr = errors.New("nobody there") })
		died, ended := s.Open(1, 4, 2), s.Open(2, 1, 1)
		for i := range 3 {
			died.say(fmt.Sprint("line ", i+1))
		}
		ended.say("bye")
		ended.Close()
	})
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	require.NoError(t, err)
	require.Len(t, files, 1)
	whole, err := proto.AppendFrame(nil, &proto.LogChunk{ExecutionId: 1, Fence: 4, Attempt: 2, FirstLine: 4, Lines: []*proto.LogLine{newLine(time.Now(), 0, "torn", nil, "")}}, proto.MaxFrame)
	require.NoError(t, err)
	file, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.Write(whole[:len(whole)-3])
	require.NoError(t, err)
	require.NoError(t, file.Close())

	asked := func(execution, fence int64) bool { return execution == 1 && fence == 4 }
	inBubbleWith(t, Options{Total: 1 << 20, PerAttempt: 1 << 20, Spool: dir, Died: asked}, func(s *Shipper, a *store) {
		s.Open(3, 1, 1).say("mine")
		sleep(time.Second)
		flush(t, s)
		require.Len(t, a.lines[1], 4)
		require.Equal(t, "line 3", a.lines[1][3].GetMessage())
		require.Contains(t, a.lines[1][4].GetMessage(), "the process of this run died here")
		require.Len(t, a.lines[2], 1)
		require.Len(t, a.lines[3], 1)
		for _, b := range a.batches {
			for _, c := range b.GetChunks() {
				if c.GetExecutionId() == 1 {
					require.EqualValues(t, []int64{4, 2}, []int64{c.GetFence(), int64(c.GetAttempt())})
				}
			}
		}
	})
	empty(t, dir)
}

// A process that has much to catch up with keeps its bound, and its own lines
// go out meanwhile.
func TestCatchingUpIsBounded(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("x", 1000)
	inBubbleWith(t, Options{Total: 4 << 20, PerAttempt: 4 << 20, Spool: dir}, func(s *Shipper, a *store) {
		a.change(func() { a.dialErr = errors.New("nobody there") })
		w := s.Open(1, 1, 1)
		for range 3000 {
			w.say(text)
		}
	})
	inBubbleWith(t, Options{Total: 400_000, PerAttempt: 100_000, Spool: dir}, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		sleep(time.Second)
		require.LessOrEqual(t, s.total, 400_000)
		require.Greater(t, s.total, 100_000)
		own := s.Open(2, 1, 1)
		own.say("mine")
		require.Zero(t, own.dropped)
		a.change(func() { a.hold = false; a.conn.Close() })
		sleep(time.Minute)
		flush(t, s)
		require.Len(t, a.lines[1], 3000)
		require.Len(t, a.lines[2], 1)
	})
	empty(t, dir)
}

func TestADiskThatRefusesCostsNoLines(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600))
	var told bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&told, nil))
	inBubbleWith(t, Options{Total: 1 << 20, PerAttempt: 1 << 20, Spool: filepath.Join(blocked, "logs"), Logger: logger}, func(s *Shipper, a *store) {
		w := s.Open(1, 1, 1)
		for range 10 {
			w.say("line")
			sleep(spoolRetry)
		}
		flush(t, s)
		require.Len(t, a.lines[1], 10)
	})
	require.Equal(t, 1, strings.Count(told.String(), "cannot be written"), "it is told once")
}

// Files go as soon as all of their lines are stored, and together have a bound.
func TestTheSpoolIsBounded(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("x", 8000)
	inBubbleWith(t, Options{Total: 1 << 20, PerAttempt: 1 << 20, Spool: dir}, func(s *Shipper, a *store) {
		a.change(func() { a.hold = true })
		slow := s.Open(2, 1, 1)
		slow.say("this one keeps its file")
		sleep(time.Second)
		w := s.Open(1, 1, 1)
		for range 20 {
			for range 100 {
				w.say(text)
			}
			a.change(func() { a.hold = !a.hold; a.conn.Close() })
			sleep(10 * time.Second)
		}
		var size int64
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			info, err := f.Info()
			require.NoError(t, err)
			size += info.Size()
		}
		require.LessOrEqual(t, size, int64(4<<20+segmentBytes))
		a.change(func() { a.hold = false; a.conn.Close() })
		flush(t, s)
		require.Zero(t, s.total)
	})
	empty(t, dir)
}
