package verify

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// spoolParts is how many files runs and rows are divided into, by their job.
// One of them is in memory at a time: 10,000,000 executions of many jobs make
// parts of 40,000.
const spoolParts = 256

// spool keeps the runs and rows of a history in files of its own, in a shape
// that is quick to read again. Whatever concerns one job is in one part, but
// for keys: which parts belong together because of them, groups tells. It is
// for one goroutine.
type spool struct {
	dir   string
	parts [spoolParts]spoolFile
	keys  [32]spoolFile // which part has which key, by the key
	words []string      // names that repeat, and their numbers
	ids   map[string]uint64
	buf   []byte
}

// spoolFile is made when something is written to it; path is fixed.
type spoolFile struct {
	path string
	f    *os.File
	w    *bufio.Writer
}

func (s *spoolFile) write(b []byte) (err error) {
	if s.f == nil {
		if s.f, err = os.Create(s.path); err != nil {
			return fmt.Errorf("keep the history: %w", err)
		}
		s.w = bufio.NewWriterSize(s.f, 16<<10)
	}
	if _, err = s.w.Write(b); err != nil {
		return fmt.Errorf("keep the history: %w", err)
	}
	return nil
}

const (
	spoolRun byte = 1
	spoolRow byte = 2
)

// newSpool makes a folder below dir; "" is the usual place. close removes it.
func newSpool(dir string) (*spool, error) {
	dir, err := os.MkdirTemp(dir, "carillon-verify-")
	if err != nil {
		return nil, fmt.Errorf("make room for the history: %w", err)
	}
	s := &spool{dir: dir, ids: map[string]uint64{}}
	for i := range s.parts {
		s.parts[i].path = filepath.Join(dir, fmt.Sprintf("part-%d", i))
	}
	for i := range s.keys {
		s.keys[i].path = filepath.Join(dir, fmt.Sprintf("keys-%d", i))
	}
	return s, nil
}

// files are those that were made.
func (s *spool) files() (list []*spoolFile) {
	for i := range s.parts {
		list = append(list, &s.parts[i])
	}
	for i := range s.keys {
		list = append(list, &s.keys[i])
	}
	return slices.DeleteFunc(list, func(f *spoolFile) bool { return f.f == nil })
}

func (s *spool) close() error {
	for _, file := range s.files() {
		_ = file.f.Close() // it is removed
	}
	return os.RemoveAll(s.dir)
}

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

func partOf(job string) int { return int(hash(job) % spoolParts) }

func (s *spool) word(w string) {
	id, ok := s.ids[w]
	if !ok {
		id = uint64(len(s.words))
		s.words, s.ids[w] = append(s.words, w), id
	}
	s.buf = binary.AppendUvarint(s.buf, id)
}

func (s *spool) text(t string) {
	s.buf = append(binary.AppendUvarint(s.buf, uint64(len(t))), t...)
}

func (s *spool) numbers(list ...int64) {
	for _, n := range list {
		s.buf = binary.AppendVarint(s.buf, n)
	}
}

// times are near base, which is written first.
func (s *spool) times(base Time, list ...Time) {
	s.numbers(int64(base))
	for _, t := range list {
		if t == 0 {
			s.buf = append(s.buf, 0)
		} else {
			s.buf = append(s.buf, 1)
			s.numbers(int64(t - base))
		}
	}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *spool) run(r *Run) error {
	s.buf = append(s.buf[:0], spoolRun)
	s.text(r.Key)
	for _, w := range []string{r.Job, r.Boot, r.Tenant, r.Node} {
		s.word(w)
	}
	s.numbers(r.Fence, int64(r.Shard), int64(r.Attempt), bit(r.Cancelled)+2*bit(r.Failed)+4*bit(r.Stopped)+8*bit(r.Snoozed))
	s.times(r.FireAt, r.Start, r.End)
	return s.append(r.Job, r.Key)
}

func (s *spool) row(r *Row) error {
	s.buf = append(s.buf[:0], spoolRow)
	s.text(r.Key)
	s.text(r.Request)
	for _, w := range []string{r.Job, r.Tenant, r.Cause, r.State, r.Reason, r.Node} {
		s.word(w)
	}
	s.text(r.Parent)
	s.word(r.Part)
	s.numbers(int64(r.Shard), int64(r.Shards), bit(r.Picked))
	s.numbers(r.Revision, r.Fence, int64(r.Attempt))
	s.times(r.FireAt, r.PlannedAt, r.OfferedAt, r.GrantedAt, r.StartedAt, r.FinishedAt)
	return s.append(r.Job, r.Key)
}

// append writes what stands in buf.
func (s *spool) append(job, key string) error {
	part, k := partOf(job), hash(key)
	if err := s.parts[part].write(s.buf); err != nil {
		return err
	}
	s.buf = append(binary.LittleEndian.AppendUint64(s.buf[:0], k), byte(part))
	return s.keys[k%uint64(len(s.keys))].write(s.buf)
}

func (s *spool) flush() error {
	for _, file := range s.files() {
		if err := file.w.Flush(); err != nil {
			return fmt.Errorf("keep the history: %w", err)
		}
	}
	return nil
}

// groups lists the parts by what has to be judged together: two of them share
// a key, which in a history without mistakes none do.
func (s *spool) groups() ([][]int, error) {
	leader := make([]int, spoolParts)
	for i := range leader {
		leader[i] = i
	}
	find := func(i int) int {
		for leader[i] != i {
			i = leader[i]
		}
		return i
	}
	const size = 9 // of a key's record
	for i := range s.keys {
		if s.keys[i].f == nil {
			continue
		}
		raw, err := os.ReadFile(s.keys[i].path)
		if err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		owner := make(map[uint64]byte, len(raw)/size/3)
		for ; len(raw) >= size; raw = raw[size:] {
			k, part := binary.LittleEndian.Uint64(raw), raw[size-1]
			if first, seen := owner[k]; !seen {
				owner[k] = part
			} else if a, b := find(int(first)), find(int(part)); a != b {
				leader[max(a, b)] = min(a, b)
			}
		}
	}
	byLeader := map[int][]int{}
	for i := range spoolParts {
		byLeader[find(i)] = append(byLeader[find(i)], i)
	}
	var out [][]int
	for i := range spoolParts {
		if list := byLeader[i]; list != nil {
			out = append(out, list)
		}
	}
	return slices.Clip(out), nil
}

// read calls run and row for what one part holds; what it gives them is not
// kept.
func (s *spool) read(part int, run func(*Run), row func(*Row)) error {
	if s.parts[part].f == nil {
		return nil
	}
	if _, err := s.parts[part].f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the history again: %w", err)
	}
	d := spoolReader{s: s, in: bufio.NewReaderSize(s.parts[part].f, 1<<16)}
	for {
		kind, err := d.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch {
		case err != nil:
			d.err = err
		case kind == spoolRun:
			run(d.run())
		default:
			row(d.row())
		}
		if d.err != nil {
			return fmt.Errorf("read the history again: %w", d.err)
		}
	}
}

// spoolReader decodes one part. After its first error what it says is not used.
type spoolReader struct {
	s   *spool
	in  *bufio.Reader
	err error
}

func (d *spoolReader) note(err error) {
	if err != nil && d.err == nil {
		d.err = err
	}
}

func (d *spoolReader) uint() uint64 {
	n, err := binary.ReadUvarint(d.in)
	d.note(err)
	return n
}

func (d *spoolReader) int() int64 {
	n, err := binary.ReadVarint(d.in)
	d.note(err)
	return n
}

func (d *spoolReader) word() string {
	id := d.uint()
	if d.err != nil {
		return ""
	}
	return d.s.words[id]
}

func (d *spoolReader) text() string {
	n := d.uint()
	if d.err != nil {
		return ""
	}
	raw := make([]byte, n)
	_, err := io.ReadFull(d.in, raw)
	d.note(err)
	return string(raw)
}

func (d *spoolReader) time(base Time) Time {
	there, err := d.in.ReadByte()
	d.note(err)
	if there == 0 {
		return 0
	}
	return base + Time(d.int())
}

func (d *spoolReader) run() *Run {
	r := &Run{Key: d.text(), Job: d.word(), Boot: d.word(), Tenant: d.word(), Node: d.word(), Fence: d.int(), Shard: int(d.int()), Attempt: int(d.int())}
	flags := d.int()
	r.Cancelled, r.Failed, r.Stopped, r.Snoozed = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	r.FireAt = Time(d.int())
	r.Start, r.End = d.time(r.FireAt), d.time(r.FireAt)
	return r
}

func (d *spoolReader) row() *Row {
	r := &Row{
		Key: d.text(), Request: d.text(), Job: d.word(), Tenant: d.word(), Cause: d.word(), State: d.word(), Reason: d.word(), Node: d.word(),
		Parent: d.text(), Part: d.word(), Shard: int(d.int()), Shards: int(d.int()), Picked: d.int() != 0,
		Revision: d.int(), Fence: d.int(), Attempt: int(d.int()), FireAt: Time(d.int()),
	}
	for _, t := range []*Time{&r.PlannedAt, &r.OfferedAt, &r.GrantedAt, &r.StartedAt, &r.FinishedAt} {
		*t = d.time(r.FireAt)
	}
	return r
}
