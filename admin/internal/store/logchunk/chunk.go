// Package logchunk answers: how do log lines become a few compressed bytes,
// and how are they found again without inflating all of them?
//
// A chunk holds lines of one attempt in the order of their numbers. Beside the
// body stands a Summary: where it begins and ends, which levels it has, and a
// search aid that says "not in here" of most texts that are not in it. A reader
// looks at summaries and inflates what is left (docs/adr/0025).
package logchunk

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Format is what Encode makes: see appendLine, DEFLATE, with the search aid of
// aid.go. The number stands beside each body in the table; 0 are rows that count
// lines which were not kept.
const Format = 1

// Bounds of what Encode makes.
const (
	// MaxBytes is how much text a chunk has, in bytes before compression,
	// unless its only line is longer. A page inflates two or three of them.
	MaxBytes = 64 << 10
	// maxInflated bounds what one body may inflate to, in bytes: a chunk, or the
	// longest line.
	maxInflated = 8 << 20
)

// Summary is what is known of a chunk without its body.
type Summary struct {
	FirstLine, LastLine int64
	Lines               int
	// Bytes is the length of the lines before compression, see Size.
	Bytes           int
	FirstAt, LastAt time.Time
	Levels          Levels
	// Aid is the search aid; empty: it does not help.
	Aid []byte
}

// Size is what a line counts, in bytes: its texts and a little for the rest.
func Size(l *domain.LogLine) int {
	return len(l.Message) + len(l.Attrs) + len(l.TraceID) + lineOverhead
}

const lineOverhead = 8

// writers are used again: a deflater has 600 KB of tables.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, flate.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return w
}}

// Split cuts lines into parts that each fit one chunk.
func Split(lines []domain.LogLine) (parts [][]domain.LogLine) {
	start, size := 0, 0
	for i := range lines {
		n := Size(&lines[i])
		if i > start && size+n > MaxBytes {
			parts = append(parts, lines[start:i])
			start, size = i, 0
		}
		size += n
	}
	if start < len(lines) {
		parts = append(parts, lines[start:])
	}
	return parts
}

// Encode makes a body of Format. Lines are in the order of their numbers
// and at least one.
func Encode(lines []domain.LogLine) (body []byte, s Summary) {
	var raw []byte
	var aid aidBuilder
	before := noLine
	s = Summary{FirstLine: lines[0].Number, LastLine: lines[len(lines)-1].Number, Lines: len(lines), FirstAt: lines[0].At, LastAt: lines[0].At}
	for i := range lines {
		l := &lines[i]
		raw = appendLine(raw, l, &before)
		aid.add(l.Message)
		aid.add(string(l.Attrs))
		if l.TraceID != before.TraceID {
			aid.add(l.TraceID)
		}
		s.Bytes += Size(l)
		s.Levels |= levelBit(l.Level)
		if l.At.Before(s.FirstAt) {
			s.FirstAt = l.At
		}
		if l.At.After(s.LastAt) {
			s.LastAt = l.At
		}
		before = *l
	}
	s.Aid = aid.bytes()
	var b bytes.Buffer
	w := writers.Get().(*flate.Writer)
	w.Reset(&b)
	_, _ = w.Write(raw) // a buffer takes everything
	_ = w.Close()
	writers.Put(w)
	return b.Bytes(), s
}

// appendLine writes: number, time and level as differences to the line before
// (varint), the trace id (its length + 1, or 0 = as the line before), message
// and attributes with their lengths.
func appendLine(b []byte, l, before *domain.LogLine) []byte {
	b = binary.AppendUvarint(b, uint64(l.Number-before.Number))
	b = binary.AppendVarint(b, l.At.UnixMilli()-before.At.UnixMilli())
	b = binary.AppendVarint(b, int64(l.Level))
	if l.TraceID == before.TraceID {
		b = binary.AppendUvarint(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(len(l.TraceID))+1)
		b = append(b, l.TraceID...)
	}
	b = binary.AppendUvarint(b, uint64(len(l.Message)))
	b = append(b, l.Message...)
	b = binary.AppendUvarint(b, uint64(len(l.Attrs)))
	return append(b, l.Attrs...)
}

// noLine stands before the first one.
var noLine = domain.LogLine{At: time.UnixMilli(0)}

var errDamaged = errors.New("the log chunk is damaged")

// Decode returns the lines of a body.
func Decode(body []byte, format, attempt int) ([]domain.LogLine, error) {
	return Find(body, format, attempt, &Filter{})
}

// readers are used again: an inflater has 40 KB of tables.
var readers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func inflate(body []byte) ([]byte, error) {
	r := readers.Get().(io.ReadCloser)
	defer readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(body), nil); err != nil {
		return nil, err
	}
	raw := bytes.NewBuffer(make([]byte, 0, MaxBytes+MaxBytes/4))
	if _, err := raw.ReadFrom(io.LimitReader(r, maxInflated+1)); err != nil {
		return nil, fmt.Errorf("inflate log chunk: %w", err)
	}
	if raw.Len() > maxInflated {
		return nil, fmt.Errorf("%w: it inflates to more than %d bytes", errDamaged, maxInflated)
	}
	return raw.Bytes(), nil
}

// Find returns the lines of a body, or none when the filter's text is nowhere
// in it: taking the lines apart costs more than that look.
func Find(body []byte, format, attempt int, f *Filter) ([]domain.LogLine, error) {
	if format != Format {
		return nil, fmt.Errorf("%w: format %d is not known", errDamaged, format)
	}
	raw, err := inflate(body)
	if err != nil {
		return nil, err
	}
	if !f.mayBeIn(raw) {
		return nil, nil
	}
	return decode(raw, attempt)
}

func decode(raw []byte, attempt int) (lines []domain.LogLine, err error) {
	r := byteReader{rest: raw}
	before := noLine
	var at int64
	for len(r.rest) > 0 {
		l := domain.LogLine{Attempt: attempt, Number: before.Number + int64(r.uvarint())}
		at += r.varint()
		l.Level = int(r.varint())
		l.TraceID = before.TraceID
		if n := r.uvarint(); n > 0 {
			l.TraceID = string(r.take(n - 1))
		}
		l.Message = string(r.take(r.uvarint()))
		l.Attrs = r.take(r.uvarint())
		if r.broken {
			return nil, errDamaged
		}
		l.At = time.UnixMilli(at).UTC()
		lines = append(lines, l)
		before = l
	}
	return lines, nil
}

// byteReader reads numbers and texts; broken says that there was not enough.
type byteReader struct {
	rest   []byte
	broken bool
}

func (r *byteReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *byteReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// take returns the next n bytes, nil for none.
func (r *byteReader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	out := r.rest[:n:n]
	r.rest = r.rest[n:]
	return out
}

func (r *byteReader) fail() { r.broken, r.rest = true, nil }
