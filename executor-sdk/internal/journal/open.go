package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxShares bounds the processes that share one parent folder.
const maxShares = 1000

var errLocked = errors.New("in use by another process")

// Options of Open.
type Options struct {
	// Dir is the parent folder; it is created when missing. Each process takes
	// the first numbered folder inside that no living process holds.
	Dir string
	// Boot is the id of this process.
	Boot string
	// MaxBytes bounds what is owed, in bytes; beyond, Err says that the journal
	// is full. 0 = 256 MiB.
	MaxBytes int
	// SegmentBytes is the least size at which a segment is replaced. 0 = 4 MiB.
	SegmentBytes int
	// Synced is told how long each fsync of records took; may be nil. It must
	// not wait.
	Synced func(took time.Duration)
	// Turned is called when the disk has begun or ceased to refuse writes; may be
	// nil. It must not wait.
	Turned func()
	// Machine is this start of the machine. Zero: unknown, see Journal.Outlasts.
	Machine Machine
	// NoSync leaves it to the system when bytes reach the disk: for tests, whose
	// journals need not outlive the machine.
	NoSync bool

	// syncDir makes names created and removed in a folder durable; tests look on.
	// nil = syncDir.
	syncDir func(dir string) error
}

// Found is what earlier processes left in the folder.
type Found struct {
	// Share is the number of the folder that was taken, from 1; Dir is its path.
	Share int
	Dir   string
	// Boots are the earlier processes, oldest first. Holding the lock proves
	// that they are dead.
	Boots []string
	// Entries are what they still owe, in the order of their arrival.
	Entries []Entry
	// Doubted says that the end of the last process's records may be missing, so
	// that what it had accepted counts as granted.
	Doubted bool
	// TornBytes is the length of the cut-off tail; a crash in the middle of a
	// write leaves one.
	TornBytes int
	// Damaged names the file that was kept aside, when bytes in the middle of
	// a segment were harmed; empty = none.
	Damaged string
}

// Open takes a folder, reads what earlier processes left, and begins a new
// segment with it. The journal accepts appends at once and writes them while
// Run runs. When the segment cannot be written, because the disk is full, Err says
// so, and Run tries again, as it does later.
func Open(o Options) (*Journal, Found, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = 4 << 20
	}
	if o.Synced == nil {
		o.Synced = func(time.Duration) {}
	}
	if o.Turned == nil {
		o.Turned = func() {}
	}
	if o.syncDir == nil {
		o.syncDir = syncDir
	}
	dir, lock, share, err := take(o.Dir, o.syncDir)
	if err != nil {
		return nil, Found{}, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{
		options: o, dir: dir, lock: lock,
		create: creator(o.NoSync), ledger: newLedger(), wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	found, err := j.recover()
	if err == nil {
		found.Share, found.Dir = share, dir
		j.err = j.begin()
	}
	if err != nil {
		_ = lock.Close()
		return nil, Found{}, fmt.Errorf("open journal %s: %w", dir, err)
	}
	return j, found, nil
}

// take locks the first free numbered folder in parent.
func take(parent string, syncDir func(string) error) (dir string, lock *os.File, share int, err error) {
	for share = 1; share <= maxShares; share++ {
		dir = filepath.Join(parent, strconv.Itoa(share))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", nil, 0, err
		}
		if err := syncDir(parent); err != nil {
			return "", nil, 0, err
		}
		lock, err = lockFile(filepath.Join(dir, "lock"))
		if !errors.Is(err, errLocked) {
			return dir, lock, share, err
		}
	}
	return "", nil, 0, fmt.Errorf("%s: all %d folders are in use", parent, maxShares)
}

const suffix = ".journal"

// segments lists the numbers of the segments in the folder, newest first.
func (j *Journal) segments() ([]int, error) {
	files, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), suffix); ok {
			if n, err := strconv.Atoi(name); err == nil && n > 0 {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all, nil
}

func (j *Journal) path(segment int) string {
	return filepath.Join(j.dir, fmt.Sprintf("%08d%s", segment, suffix))
}

// recover reads the newest segment into the ledger. Older ones exist only
// when a crash came between making a segment and removing the one before, and
// hold nothing more; they are read when the newest is no journal at all.
func (j *Journal) recover() (Found, error) {
	numbers, err := j.segments()
	if err != nil {
		return Found{}, err
	}
	var found Found
	for _, n := range numbers {
		j.segment = max(j.segment, n)
		data, err := os.ReadFile(j.path(n))
		if err != nil {
			return Found{}, err
		}
		whole, torn := j.ledger.read(data)
		found.TornBytes += torn
		// A tail that a crash tore is shorter than the largest write; bytes
		// that follow intact ones and hold whole records again are damage.
		if torn > 0 && (!whole || holdsRecords(data[len(data)-torn:])) {
			found.Damaged = j.path(n) + ".damaged"
			if err := os.Rename(j.path(n), found.Damaged); err != nil {
				return Found{}, err
			}
		}
		if whole {
			break
		}
	}
	// A process that had each record synced has acted on none of a torn tail.
	torn := found.TornBytes > 0 && j.ledger.machine != (Machine{})
	if torn || found.Damaged != "" || !j.ledger.machine.kept(j.options.Machine) {
		found.Doubted = true
		j.ledger.doubt()
	}
	found.Boots = slices.Clone(j.ledger.boots)
	for _, e := range j.ledger.sorted() {
		found.Entries = append(found.Entries, *e)
	}
	j.keep = found.Boots
	return found, nil
}

// read applies the records of one segment. whole is false when it does not
// begin as a segment; torn counts the bytes after the last good record.
func (l *ledger) read(data []byte) (whole bool, torn int) {
	if len(data) < len(header) || string(data[:len(header)]) != header {
		return false, len(data)
	}
	data = data[len(header):]
	for len(data) > 0 {
		r, size, err := decodeRecord(data)
		if err != nil || l.boot == "" && r.Kind != kindBoot {
			return true, len(data)
		}
		l.apply(r)
		data = data[size:]
	}
	return true, 0
}

// holdsRecords reports whether a whole record begins anywhere in data but at
// its start.
func holdsRecords(data []byte) bool {
	for i := 1; i+frameSize+fixedSize <= len(data); i++ {
		if data[i] != 0 {
			continue // a length is below 2^24: its first byte is zero
		}
		if _, _, err := decodeRecord(data[i:]); err == nil {
			return true
		}
	}
	return false
}
