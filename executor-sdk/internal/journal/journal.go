package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Why the journal takes nothing: see Err.
var (
	ErrClosed = errors.New("journal closed")
	ErrFull   = errors.New("journal full")
)

// lazyDelay bounds how long a lazy append (without callback) may stay in memory.
const lazyDelay = time.Second

// syncPause is the least time between the beginnings of two fsyncs where nobody
// acts on them: the records of a busy process share some ten a second.
const syncPause = 100 * time.Millisecond

// retryDelay is the pause between attempts to begin a new segment after the
// disk refused a write.
const retryDelay = time.Second

// file is what the journal needs of a segment; tests put a failing one in place.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// creator returns what makes the files of segments.
func creator(noSync bool) func(path string) (file, error) {
	if !noSync {
		return createFile
	}
	return func(path string) (file, error) {
		f, err := createFile(path)
		return unsynced{f}, err
	}
}

// unsynced is a file whose Sync does nothing.
type unsynced struct{ file }

func (unsynced) Sync() error { return nil }

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
}

// Journal is one process's journal. Its methods may be called from many
// goroutines.
type Journal struct {
	// Fixed after construction.
	options Options
	dir     string
	lock    *os.File
	create  func(path string) (file, error)
	wake    chan struct{} // capacity 1: "there is something to write"; nobody closes it
	ended   chan struct{} // closed by Run

	mu      sync.Mutex // guards what follows; never held over disk I/O
	ledger  *ledger
	pending []byte        // records that no segment holds yet
	spare   []byte        // for the next pending; empty
	written []func()      // whose records are in pending, and who need them in the file only
	waiters []func(error) // who need them on the disk
	lazy    int           // bytes of pending that nobody waits for
	points  []string      // failpoints of what is pending; empty in a release
	err     error         // why nothing can be written; nil = healthy
	closed  bool
	keep    []string // earlier boots the admin has not been told of
	hold    bool     // the folder stays locked after Run
	stale   bool     // the segment has to be replaced

	// Owned by Run's goroutine (by Open before that).
	file    file // nil = none that can be trusted
	size    int
	segment int
	sync    syncing
}

// Append adds records. done, unless nil, is called once from another goroutine,
// in the order of the appends: with nil when the records are durable, with an error when they could not be
// written. Without done the records are written with the next ones, or within
// a second; losing them in a crash must be harmless.
//
// written, unless nil, is called before done, and before the fsync: when the
// records are in the file, where the next process finds them, but where they
// would not outlast the machine. It is not called when they could not be written.
//
// What is owed changes at once and for certain: an append that failed is part
// of the next segment all the same, so a caller that gives up appends Settled.
func (j *Journal) Append(records []Record, written func(), done func(error)) {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		if done != nil {
			go done(ErrClosed) // the caller may hold a lock that done takes
		}
		return
	}
	before := len(j.pending)
	for _, r := range records {
		j.ledger.apply(r)
		j.pending = appendRecord(j.pending, r)
		if failpoints {
			j.points = append(j.points, pointOf(r.Kind))
		}
	}
	wake := done != nil
	if written != nil {
		j.written = append(j.written, written)
	}
	if done != nil {
		j.waiters = append(j.waiters, done)
	} else {
		j.lazy += len(j.pending) - before
		wake = before == 0 || j.lazy > 64<<10
	}
	j.mu.Unlock()
	if wake {
		j.signal()
	}
}

func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Err says why nothing can be made durable now, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return ErrClosed
	case j.err != nil:
		return j.err
	case j.ledger.bytes > j.options.MaxBytes:
		return fmt.Errorf("%w: %d bytes are waiting for an admin node", ErrFull, j.ledger.bytes)
	}
	return nil
}

// Owed returns how many attempts something is owed for.
func (j *Journal) Owed() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ledger.entries)
}

// ForgetBoots drops the earlier boots that owe nothing, by replacing the
// segment; call it when an admin node has been told of them.
func (j *Journal) ForgetBoots() {
	j.mu.Lock()
	forget := len(j.keep) > 0
	j.keep, j.stale = nil, j.stale || forget
	j.mu.Unlock()
	if forget {
		j.signal()
	}
}

// Hold keeps the folder locked until the process ends. The lock proves to the
// next process that handlers of this one have ended.
func (j *Journal) Hold() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hold = true
}

// Run writes until ctx ends, then writes what is left, releases the folder
// unless Hold was called, and returns. Call it once.
func (j *Journal) Run(ctx context.Context) error {
	defer close(j.ended)
	defer j.sync.begin(j.pause(), j.options.Synced)()
	timer := time.NewTimer(lazyDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return j.close()
		case <-j.wake:
			if j.onlyLazy() {
				timer.Reset(lazyDelay)
				continue
			}
		case <-timer.C:
		case <-j.sync.rest.C:
			j.sync.next(j.file)
			continue
		case err := <-j.sync.ended:
			if j.synced(err); err != nil {
				timer.Reset(retryDelay)
			}
			continue
		}
		j.commit()
		if j.failed() {
			timer.Reset(retryDelay)
		}
	}
}

// pause is the least time between two fsyncs.
func (j *Journal) pause() time.Duration {
	if j.Outlasts() {
		return syncPause
	}
	return 0
}

// Outlasts reports whether what stands in the file is enough to act on it,
// though it may not be on the disk yet: the next process finds it, or knows that
// the machine has started again in between and that the end may be missing.
// Where that cannot be known, records have to be durable first.
func (j *Journal) Outlasts() bool { return j.options.Machine != (Machine{}) }

// onlyLazy reports that pending can wait for company.
func (j *Journal) onlyLazy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err == nil && !j.stale && len(j.waiters) == 0 && j.lazy <= 64<<10
}

func (j *Journal) failed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err != nil
}

// commit writes all that is pending, and lets an fsync begin if somebody waits
// for it and none is under way; else the next one covers it.
func (j *Journal) commit() {
	j.mu.Lock()
	pending, written, waiters := j.pending, j.written, j.waiters
	// A segment is replaced when half of it, at least, is settled.
	renew := j.err != nil || j.stale || j.size+len(pending) > max(j.options.SegmentBytes, 2*j.ledger.bytes)
	if !renew {
		j.pending, j.written, j.waiters, j.lazy = j.spare, nil, nil, 0
		j.spare = nil
	}
	points := j.points
	j.points = nil
	j.mu.Unlock()

	hitAll(points, ".before-write")
	switch {
	case renew:
		early := j.sync.settle()
		var err error
		if written, waiters, err = j.renew(); err == nil {
			hitAll(points, ".after-write")
			callAll(written)
		}
		hitAll(points, ".after-fsync")
		tell(append(early, waiters...), err)
	case len(pending) > 0:
		n, err := j.file.Write(pending)
		j.size += n
		if err == nil {
			hitAll(points, ".after-write")
			callAll(written)
		}
		j.reuse(pending)
		j.sync.add(waiters, points)
		if err != nil {
			j.fail(fmt.Errorf("write journal: %w", err))
		} else {
			j.sync.next(j.file)
		}
	}
}

// synced is the event that an fsync has ended.
func (j *Journal) synced(err error) {
	if err != nil {
		j.sync.underWay = false
		j.fail(fmt.Errorf("write journal: %w", err))
		return
	}
	covered, points := j.sync.take()
	hitAll(points, ".after-fsync")
	tell(covered, nil)
	j.sync.next(j.file)
}

// fail gives up the segment: what a failed write or fsync left on the disk is
// unknown, and a second one would not tell. Only a new segment can be trusted.
func (j *Journal) fail(err error) {
	waiters := j.sync.settle()
	j.setErr(err)
	j.drop()
	tell(waiters, err)
}

func tell(waiters []func(error), err error) {
	for _, done := range waiters {
		done(err)
	}
}

// reuse keeps a buffer that was written, unless it is a rare large one.
func (j *Journal) reuse(buf []byte) {
	if cap(buf) > 1<<20 {
		return
	}
	j.mu.Lock()
	j.spare = buf[:0]
	j.mu.Unlock()
}

func callAll(list []func()) {
	for _, f := range list {
		f()
	}
}

func (j *Journal) setErr(err error) {
	j.mu.Lock()
	turned := (j.err == nil) != (err == nil)
	j.err = err
	j.mu.Unlock()
	if turned {
		j.options.Turned()
	}
}

// drop closes the segment that cannot be trusted. The file stays until a new
// one is there.
func (j *Journal) drop() {
	if j.file != nil {
		_ = j.file.Close()
		j.file = nil
	}
}

// renew replaces the segment by one that begins with all that is owed, which
// includes what is pending. It returns whose appends that settled.
func (j *Journal) renew() ([]func(), []func(error), error) {
	j.mu.Lock()
	snapshot := j.ledger.snapshot(j.options.Boot, j.options.Machine, j.keep)
	written, waiters := j.written, j.waiters
	j.pending, j.written, j.waiters, j.lazy, j.stale = nil, nil, nil, 0, false
	j.mu.Unlock()
	err := j.replace(snapshot)
	j.setErr(err)
	return written, waiters, err
}

// replace makes snapshot the newest segment and removes the older ones. It
// goes through a temporary name, so that a segment with a proper name is complete.
func (j *Journal) replace(snapshot []byte) error {
	next := j.path(j.segment + 1)
	f, err := j.create(next + ".tmp")
	if err != nil {
		return fmt.Errorf("begin journal segment: %w", err)
	}
	_, err = f.Write(snapshot)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(next+".tmp", next)
	}
	if err == nil {
		err = j.options.syncDir(j.dir)
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(next + ".tmp")
		return fmt.Errorf("begin journal segment: %w", err)
	}
	j.drop()
	j.file, j.size = f, len(snapshot)
	j.segment++
	j.removeOlder()
	return nil
}

// removeOlder deletes the segments before the current one. A file that stays
// is harmless, as the newest alone counts: it is tried again with the next.
func (j *Journal) removeOlder() {
	numbers, _ := j.segments()
	for _, n := range numbers {
		if n < j.segment {
			_ = os.Remove(j.path(n))
		}
	}
}

// begin makes the first segment of this process.
func (j *Journal) begin() error {
	j.ledger.apply(bootRecord(j.options.Boot, j.options.Machine))
	return j.replace(j.ledger.snapshot(j.options.Boot, j.options.Machine, j.keep))
}

func (j *Journal) close() error {
	j.mu.Lock()
	j.closed = true
	hold := j.hold
	j.mu.Unlock()
	j.sync.pause = 0
	j.commit()
	j.sync.next(j.file)
	for j.sync.underWay {
		j.synced(<-j.sync.ended)
	}
	var err error
	if j.file != nil {
		err = errors.Join(j.file.Sync(), j.file.Close())
	}
	if hold {
		held.add(j.lock)
		return err
	}
	return errors.Join(err, j.lock.Close())
}

// held are the locks of this process that outlive their journals. A lock that
// nothing refers to would be closed by the garbage collector.
var held locks

type locks struct {
	mu   sync.Mutex
	list []*os.File
}

func (l *locks) add(f *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, f)
}
