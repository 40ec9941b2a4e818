package verify

import (
	"bytes"
	"strconv"
)

// Nearly all lines of a long history are runs and rows, in the shape that
// Writer gives them. They are read here, ten times as fast as by
// encoding/json; whatever looks different is left to it, mistakes included.

// value is one value of a flat object: a text, a number or a boolean.
type value struct {
	text   []byte // good until the next line
	number int64
	kind   valueKind
}

type valueKind uint8

const (
	isText valueKind = iota
	isNumber
	isBool
)

// flat calls take for each field of an object without objects, lists,
// fractions, null, escapes and spaces. It returns false when the object is not
// of this kind, or take returned false.
func flat(body []byte, take func(name []byte, v value) bool) bool {
	if len(body) < 2 || body[0] != '{' {
		return false
	}
	for body = body[1:]; ; body = body[1:] {
		name, rest, ok := quoted(body)
		if !ok || len(rest) < 2 || rest[0] != ':' {
			return false
		}
		var v value
		if v, body, ok = scalar(rest[1:]); !ok || len(body) == 0 || !take(name, v) {
			return false
		}
		switch body[0] {
		case ',':
		case '}':
			return len(body) == 1
		default:
			return false
		}
	}
}

// quoted cuts a text in quotes off.
func quoted(b []byte) (text, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i, c := range b[1:] {
		switch {
		case c == '"':
			return b[1 : i+1], b[i+2:], true
		case c == '\\' || c < ' ' || c > '~':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

func scalar(b []byte) (v value, rest []byte, ok bool) {
	switch {
	case len(b) == 0:
		return v, nil, false
	case b[0] == '"':
		v.text, rest, ok = quoted(b)
		return v, rest, ok
	case bytes.HasPrefix(b, []byte("true")):
		return value{kind: isBool, number: 1}, b[4:], true
	case bytes.HasPrefix(b, []byte("false")):
		return value{kind: isBool}, b[5:], true
	}
	n := 0
	for n < len(b) && (b[n] == '-' || b[n] >= '0' && b[n] <= '9') {
		n++
	}
	digits := bytes.TrimPrefix(b[:n], []byte("-"))
	if len(digits) > 1 && digits[0] == '0' {
		return v, nil, false
	}
	number, err := strconv.ParseInt(string(b[:n]), 10, 64)
	return value{kind: isNumber, number: number}, b[n:], err == nil
}

// fields are where the values of a record belong.
type fields struct {
	texts   map[string]*string
	numbers map[string]*int64
	times   map[string]*Time
	counts  map[string]*int
	flags   map[string]*bool
}

// set puts a value where it belongs; false: there is no such field.
func (f *fields) set(name []byte, v value, keep func([]byte) string) bool {
	switch v.kind {
	case isText:
		if p := f.texts[string(name)]; p != nil {
			*p = keep(v.text)
			return true
		}
	case isBool:
		if p := f.flags[string(name)]; p != nil {
			*p = v.number == 1
			return true
		}
	default:
		if p := f.times[string(name)]; p != nil {
			*p = Time(v.number)
			return true
		}
		if p := f.numbers[string(name)]; p != nil {
			*p = v.number
			return true
		}
		if p := f.counts[string(name)]; p != nil {
			*p = int(v.number)
			return true
		}
	}
	return false
}

// flatReader reads runs and rows into the same two records again and again.
type flatReader struct {
	run       Run
	row       Row
	runFields fields
	rowFields fields
}

func newFlatReader() *flatReader {
	f := &flatReader{}
	r, w := &f.run, &f.row
	f.runFields = fields{
		texts:   map[string]*string{"job": &r.Job, "key": &r.Key, "boot": &r.Boot, "tenant": &r.Tenant, "node": &r.Node},
		times:   map[string]*Time{"start": &r.Start, "end": &r.End, "fireAt": &r.FireAt},
		numbers: map[string]*int64{"fence": &r.Fence},
		counts:  map[string]*int{"shard": &r.Shard, "attempt": &r.Attempt},
		flags:   map[string]*bool{"cancelled": &r.Cancelled, "failed": &r.Failed, "stopped": &r.Stopped, "snoozed": &r.Snoozed},
	}
	f.rowFields = fields{
		texts: map[string]*string{
			"key": &w.Key, "tenant": &w.Tenant, "job": &w.Job, "cause": &w.Cause, "request": &w.Request,
			"state": &w.State, "reason": &w.Reason, "node": &w.Node, "parent": &w.Parent, "part": &w.Part,
		},
		times: map[string]*Time{
			"fireAt": &w.FireAt, "plannedAt": &w.PlannedAt, "offeredAt": &w.OfferedAt,
			"grantedAt": &w.GrantedAt, "startedAt": &w.StartedAt, "finishedAt": &w.FinishedAt,
		},
		numbers: map[string]*int64{"revision": &w.Revision, "fence": &w.Fence},
		counts:  map[string]*int{"attempt": &w.Attempt, "shard": &w.Shard, "shards": &w.Shards},
		flags:   map[string]*bool{"picked": &w.Picked},
	}
	return f
}

// readRun and readRow return false for what encoding/json has to read. The
// record is good until the next one.
func (f *flatReader) readRun(body []byte, keep func([]byte) string) (*Run, bool) {
	f.run = Run{}
	return &f.run, flat(body, func(name []byte, v value) bool { return f.runFields.set(name, v, keep) })
}

func (f *flatReader) readRow(body []byte, keep func([]byte) string) (*Row, bool) {
	f.row = Row{}
	return &f.row, flat(body, func(name []byte, v value) bool { return f.rowFields.set(name, v, keep) })
}
