package verify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLine bounds one record: a list of 10,000 instants fits.
const maxLine = 1 << 20

// LineError is a line that cannot be read as a record.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// ReadPaths reads files, and the *.jsonl files of folders and of the folders
// in them.
func ReadPaths(paths ...string) (*History, error) {
	r := NewReader()
	if err := r.readPaths(paths); err != nil {
		return nil, err
	}
	return r.History(), nil
}

func (r *Reader) readPaths(paths []string) error {
	for _, path := range paths {
		files, err := historyFiles(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := r.readFile(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// historyFiles lists what a path stands for, in the order of names.
func historyFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(name, Extension) {
			files = append(files, name)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no %s file in it", Extension)
	}
	if err != nil {
		return nil, fmt.Errorf("history folder %s: %w", path, err)
	}
	return files, nil
}

// Reader collects a History out of several files. It is for one goroutine.
type Reader struct {
	h     History
	words map[string]string // names that repeat in each record, kept once
	open  map[runID][]int   // indexes of runs that have no end yet

	flat    *flatReader
	body    []byte       // of the line
	compact bytes.Buffer // the line without its spaces, where it has some

	// takeRun and takeRow keep the lines of runs and the rows elsewhere; nil:
	// they are collected here, the two lines of a run as one.
	takeRun func(*Run) error
	takeRow func(*Row) error
}

// runID tells the two lines of a run from those of another.
type runID struct {
	key, boot string
	fence     int64
	shard     int
	start     Time
}

// NewReader returns an empty one.
func NewReader() *Reader {
	return &Reader{words: map[string]string{}, open: map[runID][]int{}, flat: newFlatReader()}
}

// keep returns the name that was met before, or a copy.
func (r *Reader) keep(text []byte) string {
	if kept, ok := r.words[string(text)]; ok {
		return kept
	}
	return string(text)
}

// History returns what was read so far.
func (r *Reader) History() *History { return &r.h }

func (r *Reader) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	return r.Read(path, f)
}

// Read reads one file's records; name is for error messages. The error is a
// *LineError when a line is wrong. A last line without its end is left out and
// counted: the writer was killed.
func (r *Reader) Read(name string, in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	var long []byte
	for number := 1; ; number++ {
		line, err := readLine(lines, &long)
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				r.h.Torn++
			}
			return nil
		}
		if err == nil {
			err = r.line(line)
		}
		if err != nil {
			return &LineError{File: name, Line: number, Err: err}
		}
	}
}

// readLine returns one line without its end; io.EOF with what stands after the
// last end. The bytes are good until the next call.
func readLine(in *bufio.Reader, long *[]byte) ([]byte, error) {
	*long = (*long)[:0]
	for {
		part, err := in.ReadSlice('\n')
		if err == nil && len(*long) == 0 {
			return part[:len(part)-1], nil
		}
		*long = append(*long, part...)
		switch {
		case len(*long) > maxLine:
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		case err == nil:
			return (*long)[:len(*long)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return *long, err
		}
	}
}

// head begins each record: the type comes first, so that the line is decoded once.
const head = `{"type":"`

// line reads {"type":"run",…}, with spaces between its parts or without.
func (r *Reader) line(line []byte) error {
	kind, body, ok := cutType(line)
	if !ok {
		r.compact.Reset()
		if err := json.Compact(&r.compact, line); err != nil {
			return fmt.Errorf("a record begins with %s: %w", head, err)
		}
		kind, body, ok = cutType(r.compact.Bytes())
	}
	switch {
	case !ok && bytes.HasPrefix(r.compact.Bytes(), []byte(head)):
		return errors.New("the record holds nothing but its type")
	case !ok:
		return fmt.Errorf("a record begins with %s", head)
	}
	r.body = append(append(r.body[:0], '{'), body...)
	body = r.body
	switch string(kind) {
	case "plan":
		return decode(body, func(p *Plan) error { return r.plan(p) })
	case "call":
		return decode(body, func(c *Call) error { return r.call(c) })
	case "run":
		if run, ok := r.flat.readRun(body, r.keep); ok {
			return r.run(run)
		}
		return decode(body, func(run *Run) error { return r.run(run) })
	case "row":
		if row, ok := r.flat.readRow(body, r.keep); ok {
			return r.row(row)
		}
		return decode(body, func(row *Row) error { return r.row(row) })
	case "fault":
		return decode(body, func(f *Fault) error { return r.fault(f) })
	case "node":
		return decode(body, func(n *Node) error { return r.node(n) })
	}
	return fmt.Errorf("unknown type %q", kind)
}

// cutType cuts the type and its comma off; false: this is no record, or one
// with spaces before its second member.
func cutType(line []byte) (kind, body []byte, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(head))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 || end+1 == len(rest) || rest[end+1] != ',' {
		return nil, nil, false
	}
	return rest[:end], rest[end+2:], true
}

// decode is strict: an unknown field is a writer's mistake.
func decode[T any](body []byte, take func(*T) error) error {
	var value T
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&value); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value in the line")
	}
	return take(&value)
}

// intern keeps one copy of a name.
func (r *Reader) intern(names ...*string) {
	for _, name := range names {
		kept, ok := r.words[*name]
		if !ok {
			kept = strings.Clone(*name)
			r.words[kept] = kept
		}
		*name = kept
	}
}

func (r *Reader) plan(p *Plan) error {
	if r.h.Plan != nil {
		return errors.New("a second plan: a history has one")
	}
	if err := instants(field{"from", p.From, true}, field{"to", p.To, true}); err != nil {
		return err
	}
	if p.To < p.From {
		return errors.New("to is before from")
	}
	r.h.Plan = p
	return nil
}

var ops = []Op{OpCreate, OpEdit, OpPause, OpResume, OpDelete, OpTrigger}

func (r *Reader) call(c *Call) error {
	carries := c.Op == OpCreate || c.Op == OpEdit
	switch {
	case !slices.Contains(ops, c.Op):
		return fmt.Errorf("unknown op %q", c.Op)
	case c.Job == "" || c.Tenant == "":
		return errors.New("job and tenant are required")
	case carries && c.Spec == nil && !c.Refused:
		return fmt.Errorf("%s carries a spec", c.Op)
	case !carries && c.Spec != nil:
		return fmt.Errorf("%s carries no spec", c.Op)
	case c.Ack != 0 && c.Ack < c.Invoke:
		return errors.New("ack is before invoke")
	}
	r.intern(&c.Job, &c.Tenant)
	r.h.Calls = append(r.h.Calls, *c)
	return instants(field{"invoke", c.Invoke, true}, field{"ack", c.Ack, false})
}

func (r *Reader) run(run *Run) error {
	switch {
	case run.Job == "" || run.Key == "" || run.Boot == "" || run.Tenant == "":
		return errors.New("job, key, boot and tenant are required")
	case run.Fence < 1 || run.Attempt < 1 || run.Shard < 0:
		return errors.New("fence and attempt count from 1, shard from 0")
	case run.End != 0 && run.End < run.Start:
		return errors.New("end is before start")
	}
	err := instants(field{"start", run.Start, true}, field{"end", run.End, false}, field{"fireAt", run.FireAt, true})
	if err != nil {
		return err
	}
	r.intern(&run.Job, &run.Tenant, &run.Boot, &run.Node)
	if r.takeRun != nil {
		return r.takeRun(run)
	}
	r.join(*run)
	return nil
}

// join adds a run, or ends the one whose first line was read before. The two
// lines stand in one file, in order.
func (r *Reader) join(run Run) {
	id := runID{run.Key, run.Boot, run.Fence, run.Shard, run.Start}
	if open := r.open[id]; run.End != 0 && len(open) > 0 {
		i := open[len(open)-1]
		o := &r.h.Runs[i]
		o.End, o.Cancelled, o.Failed, o.Stopped, o.Snoozed = run.End, run.Cancelled, run.Failed, run.Stopped, run.Snoozed
		if len(open) == 1 {
			delete(r.open, id)
		} else {
			r.open[id] = open[:len(open)-1]
		}
		return
	}
	r.h.Runs = append(r.h.Runs, run)
	if run.End == 0 {
		r.open[id] = append(r.open[id], len(r.h.Runs)-1)
	}
}

func (r *Reader) row(row *Row) error {
	if row.Key == "" || row.Job == "" || row.Tenant == "" || row.State == "" || row.Cause == "" {
		return errors.New("key, tenant, job, cause and state are required")
	}
	err := instants(field{"fireAt", row.FireAt, true}, field{"plannedAt", row.PlannedAt, false},
		field{"offeredAt", row.OfferedAt, false}, field{"grantedAt", row.GrantedAt, false},
		field{"startedAt", row.StartedAt, false}, field{"finishedAt", row.FinishedAt, false})
	if err != nil {
		return err
	}
	r.intern(&row.Job, &row.Tenant, &row.State, &row.Cause, &row.Reason, &row.Node)
	if r.takeRow != nil {
		return r.takeRow(row)
	}
	r.h.Rows = append(r.h.Rows, *row)
	return nil
}

func (r *Reader) fault(f *Fault) error {
	if f.ID == "" || f.Kind == "" {
		return errors.New("id and kind are required")
	}
	if f.End != 0 && f.End < f.Start {
		return errors.New("end is before start")
	}
	r.h.Faults = append(r.h.Faults, *f)
	return instants(field{"start", f.Start, true}, field{"end", f.End, false})
}

func (r *Reader) node(n *Node) error {
	if n.Node == "" || n.Role == "" {
		return errors.New("node and role are required")
	}
	r.h.Nodes = append(r.h.Nodes, *n)
	return instants(field{"at", n.At, true})
}

// field is an instant of a record under its name.
type field struct {
	name     string
	at       Time
	required bool
}

// The instants that make sense, in microseconds: from 2000, where the clock of
// a simulation begins, to 2200. A value in milliseconds lies outside.
const (
	earliest Time = 946_684_800_000_000
	latest   Time = 7_258_118_400_000_000
)

// instants refuses times in another unit than microseconds.
func instants(fields ...field) error {
	for _, f := range fields {
		switch {
		case f.at == 0 && f.required:
			return fmt.Errorf("%s is required", f.name)
		case f.at != 0 && (f.at < earliest || f.at > latest):
			return fmt.Errorf("%s is %d: no instant of our time in microseconds since 1970", f.name, f.at)
		}
	}
	return nil
}
