package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowDisk is a segment whose first fsyncs end when the test says so, and how.
type slowDisk struct {
	file
	slow  *atomic.Int32 // how many
	begun chan struct{}
	ends  chan error
}

func (s slowDisk) Sync() error {
	if s.slow.Add(-1) < 0 {
		return s.file.Sync()
	}
	s.begun <- struct{}{}
	return errors.Join(<-s.ends, s.file.Sync())
}

// events are what callbacks told, in their order.
type events struct {
	mu   sync.Mutex
	list []string // guarded by mu
	more chan struct{}
}

func (e *events) add(s string) {
	e.mu.Lock()
	e.list = append(e.list, s)
	e.mu.Unlock()
	e.more <- struct{}{}
}

// next waits for n more and returns all.
func (e *events) next(n int) []string {
	for range n {
		<-e.more
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.list...)
}

func (e *events) append(j *Journal, name string, execution int64) {
	j.Append([]Record{rec(Done, execution, name)}, func() { e.add(name + " written") }, func(err error) {
		if err != nil {
			e.add(name + " refused")
			return
		}
		e.add(name + " durable")
	})
}

func runSlow(t *testing.T, slow int32) (*Journal, slowDisk, *events) {
	t.Helper()
	j, _, err := Open(Options{Dir: t.TempDir(), Boot: "a"})
	require.NoError(t, err)
	disk := slowDisk{j.file, &atomic.Int32{}, make(chan struct{}), make(chan error)}
	disk.slow.Store(slow)
	j.file = disk
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	return j, disk, &events{more: make(chan struct{}, 100)}
}

// What is appended during an fsync gets into the file at once, where the next
// process finds it, and waits for an fsync that began after it.
func TestWritingDoesNotWaitForAnFsync(t *testing.T) {
	j, disk, e := runSlow(t, 2)
	e.append(j, "first", 1)
	<-disk.begun
	require.Equal(t, []string{"first written"}, e.next(1))
	e.append(j, "second", 2)
	require.Equal(t, []string{"first written", "second written"}, e.next(1), "its fsync has not begun")
	raw, err := os.ReadFile(j.path(j.segment))
	require.NoError(t, err)
	require.Contains(t, string(raw), "first")
	require.Contains(t, string(raw), "second")

	disk.ends <- nil
	require.Equal(t, "first durable", e.next(1)[2])
	<-disk.begun
	require.Len(t, e.next(0), 3, "the first fsync covers only what was written before it")
	disk.ends <- nil
	require.Equal(t, "second durable", e.next(1)[3])
}

// An fsync that fails takes the segment with it, and all who waited for it or
// for the next; the segment after it has what they appended.
func TestAFailedFsyncRefusesAllWhoWait(t *testing.T) {
	j, disk, e := runSlow(t, 1)
	e.append(j, "first", 1)
	<-disk.begun
	e.append(j, "second", 2)
	e.next(2)
	disk.ends <- errors.New("input/output error")
	require.Equal(t, []string{"first refused", "second refused"}, e.next(2)[2:])
	require.ErrorContains(t, j.Err(), "input/output error")
	e.append(j, "third", 3) // tries a new segment
	require.Equal(t, []string{"third written", "third durable"}, e.next(2)[4:])
	require.NoError(t, j.Err())
	require.Equal(t, 3, j.Owed())
	raw, err := os.ReadFile(j.path(j.segment))
	require.NoError(t, err)
	require.Contains(t, string(raw), "second")
}

// A segment is replaced only when the fsync under way is over, and the new one
// stands for it.
func TestASegmentIsReplacedAfterTheFsync(t *testing.T) {
	j, disk, e := runSlow(t, 1)
	e.append(j, "first", 1)
	<-disk.begun
	e.next(1)
	j.mu.Lock()
	j.stale = true
	j.mu.Unlock()
	e.append(j, "second", 2)
	disk.ends <- nil
	all := e.next(3)[1:]
	require.ElementsMatch(t, []string{"first durable", "second written"}, all[:2]) // the order of two kinds is open
	require.Equal(t, "second durable", all[2])
}

// Where nobody acts on an fsync, one comes at once after a silence, and those who
// follow share the next ones.
func TestFsyncsShareAPause(t *testing.T) {
	var syncs atomic.Int32
	j := open(t, Options{Dir: t.TempDir(), Boot: "a", Machine: Machine{1}, Synced: func(time.Duration) { syncs.Add(1) }})
	var durable sync.WaitGroup
	for id := range int64(1000) {
		written := make(chan struct{})
		durable.Add(1)
		j.Append([]Record{rec(Done, id, "x")}, func() { close(written) }, func(err error) {
			if err != nil {
				t.Error(err)
			}
			durable.Done()
		})
		<-written
	}
	durable.Wait()
	require.Positive(t, syncs.Load())
	require.Less(t, syncs.Load(), int32(100))
	durable.Add(1)
	j.Append([]Record{rec(Done, 1000, "last")}, nil, func(err error) {
		if err != nil {
			t.Error(err)
		}
		durable.Done()
	})
	j.stop() // does not leave it behind
	durable.Wait()
}

// steps is a disk that notes in which order things reach it.
type steps struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (s *steps) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

// take returns what was noted since the last call.
func (s *steps) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// noted is a segment on it.
type noted struct {
	file
	name  string
	steps *steps
}

func (n noted) Write(p []byte) (int, error) {
	n.steps.add("write " + n.name)
	return n.file.Write(p)
}

func (n noted) Sync() error {
	n.steps.add("sync " + n.name)
	return n.file.Sync()
}

// syncDir notes which segments stand in the folder when it is synced.
func (s *steps) syncDir(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.journal"))
	names := []string{"sync folder " + filepath.Base(dir) + " with"}
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	s.add(strings.Join(names, " "))
	return errors.Join(err, syncDir(dir))
}

// A new segment is on the disk, and so is its name, before the one that it
// replaces is removed and before anybody hears that its records are durable: a
// power cut at any step leaves one of the two.
func TestANewSegmentIsOnTheDiskBeforeTheOldOneGoes(t *testing.T) {
	var disk steps
	parent := t.TempDir()
	j := open(t, Options{Dir: parent, Boot: "a", syncDir: disk.syncDir}, func(j *Journal) {
		j.create = func(path string) (file, error) {
			f, err := createFile(path)
			return noted{f, filepath.Base(path), &disk}, err
		}
	})
	require.Equal(t, []string{
		"sync folder " + filepath.Base(parent) + " with", // the name of the folder that was taken
		"sync folder 1 with 00000001.journal",
	}, disk.take())
	j.mu.Lock()
	j.stale = true
	j.mu.Unlock()
	heard := make(chan error, 1)
	j.Append([]Record{rec(Done, 1, "one")}, nil, func(err error) {
		disk.add("durable")
		heard <- err
	})
	require.NoError(t, <-heard)
	require.Equal(t, []string{
		"write 00000002.journal.tmp", "sync 00000002.journal.tmp", "sync folder 1 with 00000001.journal 00000002.journal", "durable",
	}, disk.take())
}
