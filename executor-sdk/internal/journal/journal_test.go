package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_TEST_CHILD"); dir != "" {
		var machine Machine
		if os.Getenv("JOURNAL_TEST_MACHINE") != "" {
			machine = Machine{1}
		}
		appendForever(dir, machine)
	}
	goleak.VerifyTestMain(m)
}

// opened is a journal whose Run runs until stop.
type opened struct {
	*Journal
	found Found
	stop  func()
}

func open(t *testing.T, o Options, prepare ...func(*Journal)) *opened {
	t.Helper()
	j, found, err := Open(o)
	require.NoError(t, err)
	for _, p := range prepare {
		p(j)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = j.Run(ctx) }()
	var once sync.Once
	stop := func() { once.Do(func() { cancel(); <-j.ended }) }
	t.Cleanup(stop)
	return &opened{j, found, stop}
}

// put appends durably and returns what the callback got.
func (o *opened) put(records ...Record) error {
	result := make(chan error, 1)
	o.Append(records, nil, func(err error) { result <- err })
	return <-result
}

func rec(k Kind, execution int64, body ...string) Record {
	r := Record{Kind: k, Execution: execution, Fence: 1}
	if len(body) > 0 {
		r.Body = []byte(body[0])
	}
	return r
}

// brief writes entries as "execution:kind:result".
func brief(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%d:%d:%s", e.Execution, e.Kind, e.Result))
	}
	return out
}

func TestWhatIsOwedSurvives(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Boot: "boot1"})
	require.Equal(t, Found{Share: 1, Dir: filepath.Join(dir, "1")}, first.found)
	require.NoError(t, first.put(rec(Accepted, 1), rec(Accepted, 2), rec(Accepted, 3), rec(Accepted, 4)))
	require.NoError(t, first.put(rec(Granted, 2), rec(Granted, 3), rec(Granted, 4)))
	require.NoError(t, first.put(rec(Done, 3, "three"), rec(Done, 4, "four"), rec(Done, 3, "THREE")))
	first.Append([]Record{rec(Settled, 4)}, nil, nil)
	require.Equal(t, 3, first.Owed())
	first.stop()
	require.ErrorIs(t, first.Err(), ErrClosed)
	require.ErrorIs(t, first.put(rec(Accepted, 9)), ErrClosed)

	second := open(t, Options{Dir: dir, Boot: "boot2"})
	require.Equal(t, []string{"boot1"}, second.found.Boots)
	require.Equal(t, []string{"1:2:", "2:3:", "3:4:THREE"}, brief(second.found.Entries))
	require.Equal(t, "boot1", second.found.Entries[0].Boot)
	require.NoError(t, second.put(rec(Settled, 1), rec(Settled, 2), rec(Accepted, 5)))
	second.stop()

	third := open(t, Options{Dir: dir, Boot: "boot3"})
	require.Equal(t, []string{"boot1", "boot2"}, third.found.Boots)
	require.Equal(t, []string{"3:4:THREE", "5:2:"}, brief(third.found.Entries))
	require.Equal(t, []string{"boot1", "boot2"}, []string{third.found.Entries[0].Boot, third.found.Entries[1].Boot})
	third.ForgetBoots()
	require.NoError(t, third.put(rec(Settled, 3), rec(Settled, 5)))
	third.stop()

	fourth := open(t, Options{Dir: dir, Boot: "boot4"})
	require.Empty(t, fourth.found.Entries)
}

func TestBootsAreForgottenOnceToldAndPaid(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Boot: "boot1"})
	require.NoError(t, first.put(rec(Accepted, 1)))
	first.stop()
	open(t, Options{Dir: dir, Boot: "boot2"}).stop()
	third := open(t, Options{Dir: dir, Boot: "boot3"})
	require.Equal(t, []string{"boot1", "boot2"}, third.found.Boots)
	third.ForgetBoots()
	third.ForgetBoots()
	third.stop()
	fourth := open(t, Options{Dir: dir, Boot: "boot4"})
	require.Equal(t, []string{"boot1", "boot3"}, fourth.found.Boots, "boot1 still owes, boot2 does not")
}

func TestProcessesShareAFolder(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Boot: "a"})
	second := open(t, Options{Dir: dir, Boot: "b"})
	require.Equal(t, 1, first.found.Share)
	require.Equal(t, 2, second.found.Share)
	first.stop()
	third := open(t, Options{Dir: dir, Boot: "c"})
	require.Equal(t, 1, third.found.Share)
	require.Equal(t, []string{"a"}, third.found.Boots)
}

func TestOpenSaysWhichFolderCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err := Open(Options{Dir: file, Boot: "a"})
	require.ErrorContains(t, err, "open journal: mkdir "+file)
}

func TestSegmentsAreReplacedAndStaySmall(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir, Boot: "boot1", SegmentBytes: 10_000})
	require.NoError(t, j.put(rec(Done, 1, "kept")))
	for i := range 500 {
		id := int64(i + 2)
		require.NoError(t, j.put(rec(Accepted, id), rec(Granted, id), rec(Done, id, "result"), rec(Settled, id)))
	}
	j.stop()
	files, err := filepath.Glob(filepath.Join(dir, "1", "*.journal"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(11_000))
	require.Equal(t, []string{"1:4:kept"}, brief(open(t, Options{Dir: dir, Boot: "boot2"}).found.Entries))
}

func TestFull(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir(), Boot: "a", MaxBytes: 100})
	require.NoError(t, j.Err())
	require.NoError(t, j.put(rec(Done, 1, string(make([]byte, 100)))))
	require.ErrorIs(t, j.Err(), ErrFull)
	require.NoError(t, j.put(rec(Settled, 1)))
	require.NoError(t, j.Err())
}

// faulty is a segment whose disk can be switched to failing.
type faulty struct {
	file
	fail *atomic.Bool
	sync *atomic.Int64
}

var errDisk = errors.New("no space left on device")

func (f faulty) Write(p []byte) (int, error) {
	if f.fail.Load() {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, errDisk
	}
	return f.file.Write(p)
}

func (f faulty) Sync() error {
	f.sync.Add(1)
	if f.fail.Load() {
		return errDisk
	}
	return f.file.Sync()
}

func withFaults(fail *atomic.Bool, syncs *atomic.Int64) func(*Journal) {
	return func(j *Journal) {
		j.file = faulty{j.file, fail, syncs}
		j.create = func(path string) (file, error) {
			f, err := createFile(path)
			return faulty{f, fail, syncs}, err
		}
	}
}

func TestDiskFullAndBack(t *testing.T) {
	dir := t.TempDir()
	var fail atomic.Bool
	var syncs atomic.Int64
	var turns atomic.Int64
	j := open(t, Options{Dir: dir, Boot: "boot1", Turned: func() { turns.Add(1) }}, withFaults(&fail, &syncs))
	require.NoError(t, j.put(rec(Accepted, 1)))
	require.Zero(t, turns.Load())

	fail.Store(true)
	refused := make(chan error, 1)
	j.Append([]Record{rec(Done, 1, "one")}, func() { t.Error("it is not in the file") }, func(err error) { refused <- err })
	require.ErrorIs(t, <-refused, errDisk)
	require.ErrorIs(t, j.Err(), errDisk)
	require.ErrorIs(t, j.put(rec(Accepted, 2)), errDisk)
	require.Equal(t, int64(1), turns.Load(), "told once")
	j.Append([]Record{rec(Settled, 2)}, nil, nil)

	fail.Store(false)
	require.NoError(t, j.put(rec(Accepted, 3)))
	require.NoError(t, j.Err())
	require.Equal(t, int64(2), turns.Load())
	j.stop()
	require.Equal(t, []string{"1:4:one", "3:2:"}, brief(open(t, Options{Dir: dir, Boot: "boot2"}).found.Entries))
}

// TestAFullDiskAtTheStart: what was left is known, nothing new is taken, and the
// journal goes on when there is room. A folder in the place of the segment
// refuses writes as a full disk does.
func TestAFullDiskAtTheStart(t *testing.T) {
	dir := t.TempDir()
	first := open(t, Options{Dir: dir, Boot: "boot1"})
	require.NoError(t, first.put(rec(Accepted, 1)))
	first.stop()
	obstacle := filepath.Join(dir, "1", "00000002.journal.tmp")
	require.NoError(t, os.Mkdir(obstacle, 0o700))
	var turns atomic.Int64
	second := open(t, Options{Dir: dir, Boot: "boot2", Turned: func() { turns.Add(1) }})
	require.Equal(t, []string{"1:2:"}, brief(second.found.Entries))
	require.Error(t, second.Err())
	require.Error(t, second.put(rec(Accepted, 2)))
	second.Append([]Record{rec(Settled, 2)}, nil, nil)
	require.NoError(t, os.Remove(obstacle))
	require.NoError(t, second.put(rec(Accepted, 3)))
	require.NoError(t, second.Err())
	require.Equal(t, int64(1), turns.Load(), "that it can be written again")
	second.stop()
	third := open(t, Options{Dir: dir, Boot: "boot3"}).found
	require.Equal(t, []string{"1:2:", "3:2:"}, brief(third.Entries))
	require.Equal(t, []string{"boot1", "boot2"}, third.Boots)
}

// All appends that wait at the same time share one fsync, and their callbacks
// keep the order.
func TestGroupCommit(t *testing.T) {
	var fail atomic.Bool
	var syncs atomic.Int64
	j, _, err := Open(Options{Dir: t.TempDir(), Boot: "a"})
	require.NoError(t, err)
	withFaults(&fail, &syncs)(j)
	var order []int
	var wait sync.WaitGroup
	for i := range 1000 {
		wait.Add(1)
		j.Append([]Record{rec(Accepted, int64(i))}, nil, func(err error) {
			defer wait.Done()
			require.NoError(t, err)
			order = append(order, i)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _ = j.Run(ctx) }()
	wait.Wait()
	cancel()
	<-j.ended
	require.Equal(t, int64(2), syncs.Load(), "one for the appends, one for closing")
	require.IsIncreasing(t, order)
	require.Len(t, order, 1000)
}

// Records without a callback ride along with the next ones or go out after a
// second; Run's end writes them too.
func TestLazyAppendsAreWritten(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir, Boot: "boot1"})
	require.NoError(t, j.put(rec(Done, 1, "x"), rec(Done, 2, "y")))
	j.Append([]Record{rec(Settled, 1)}, nil, nil)
	require.Eventually(t, func() bool { // on the disk while the journal is still open
		data, err := os.ReadFile(j.path(j.segment))
		require.NoError(t, err)
		l := newLedger()
		l.read(data)
		return len(l.entries) == 1
	}, 10*lazyDelay, lazyDelay/20)
}

func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			j, _, err := Open(Options{Dir: b.TempDir(), Boot: "a"})
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(context.Background())
			go func() { _ = j.Run(ctx) }()
			b.ResetTimer()
			var next atomic.Int64
			var wait sync.WaitGroup
			for range callers {
				wait.Go(func() {
					done := make(chan error, 1)
					for id := next.Add(1); id <= int64(b.N); id = next.Add(1) {
						j.Append([]Record{rec(Accepted, id)}, nil, func(err error) { done <- err })
						if err := <-done; err != nil {
							b.Error(err)
						}
						j.Append([]Record{rec(Settled, id)}, nil, nil)
					}
				})
			}
			wait.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "durable/s")
			cancel()
			<-j.ended
		})
	}
}
