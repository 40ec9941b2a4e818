package logship

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/proto"
)

// lineOverhead is what a line costs in memory beside its text, in bytes.
const lineOverhead = 96

// levelWarn is slog's level of the line that tells about dropped ones.
const levelWarn = 4

// Writer takes the lines of one attempt. It may be used from many goroutines;
// after Close it drops what it gets.
type Writer struct {
	s         *Shipper
	execution int64
	fence     int64
	attempt   int32

	// Guarded by Shipper.mu.
	lines    []*proto.LogLine // not acknowledged; the first of them is number first
	first    int64
	sent     int   // how many of lines are on their way
	last     int64 // number of the last line, dropped ones included
	gaps     []gap // where numbers were skipped within lines
	dropped  int64 // lines dropped since the last line that was kept
	dropping bool
	bytes    int
	queued   bool
	closed   bool
}

// gap says that before the line at index into lines, skip numbers are missing.
type gap struct {
	index int
	skip  int64
}

// Open begins the log of an attempt.
func (s *Shipper) Open(execution, fence int64, attempt int32) *Writer {
	return &Writer{s: s, execution: execution, fence: fence, attempt: attempt, first: 1}
}

// Write adds a line. attrs is a JSON object or empty. It waits at most
// MaxWait, and only when the log is over its bound.
func (w *Writer) Write(at time.Time, level int, message string, attrs []byte) {
	line := newLine(at, level, message, attrs)
	size := cost(line)
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.dropping && !w.closed && !s.fits(w, size) {
		s.awaitRoom(w, size)
	}
	if w.closed {
		return
	}
	if w.dropping = !s.fits(w, size) || w.dropping && !s.relaxed(w); w.dropping {
		w.last++
		w.dropped++
		s.dropped++
		return
	}
	w.tellDropped(at)
	s.lines++
	w.add(line, size)
}

// Close ends the log and returns the number of its last line, 0 for none.
func (w *Writer) Close() int64 {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.closed {
		// Beyond the bound, if need be: the last number must arrive.
		w.tellDropped(time.Now())
		w.closed = true
	}
	return w.last
}

// tellDropped adds the line that stands for the dropped ones. mu is held.
func (w *Writer) tellDropped(at time.Time) {
	if w.dropped == 0 {
		return
	}
	line := newLine(at, levelWarn,
		fmt.Sprintf("%d log lines were dropped here: they came faster than they could be stored", w.dropped),
		fmt.Appendf(nil, `{"dropped":%d}`, w.dropped))
	w.gaps = append(w.gaps, gap{len(w.lines), w.dropped})
	w.dropped = 0
	w.add(line, cost(line))
}

// add queues a line. mu is held.
func (w *Writer) add(line *proto.LogLine, size int) {
	w.last++
	w.lines = append(w.lines, line)
	w.bytes += size
	w.s.added(w, size)
}

// next takes up to limit bytes of unsent lines that have consecutive numbers,
// as one chunk. mu is held.
func (w *Writer) next(limit int) (chunk *proto.LogChunk, size int) {
	chunk = &proto.LogChunk{ExecutionId: w.execution, Fence: w.fence, Attempt: w.attempt, FirstLine: w.first + int64(w.sent)}
	end := len(w.lines)
	for _, g := range w.gaps {
		switch {
		case g.index <= w.sent:
			chunk.FirstLine += g.skip
		case g.index < end:
			end = g.index
		}
	}
	for i := w.sent; i < end && size < limit && len(chunk.Lines) < proto.MaxBatch; i++ {
		chunk.Lines = append(chunk.Lines, w.lines[i])
		size += cost(w.lines[i])
	}
	w.sent += len(chunk.Lines)
	return chunk, size
}

// acked forgets the first n lines, which were sent. It returns their size.
func (w *Writer) acked(n int) (size int) {
	for _, line := range w.lines[:n] {
		size += cost(line)
	}
	clear(w.lines[:n])
	w.lines = w.lines[n:]
	w.first += int64(n)
	w.sent -= n
	w.bytes -= size
	kept := w.gaps[:0]
	for _, g := range w.gaps {
		if g.index -= n; g.index < 0 {
			w.first += g.skip
		} else {
			kept = append(kept, g)
		}
	}
	w.gaps = kept
	return size
}

func cost(line *proto.LogLine) int {
	return len(line.GetMessage()) + len(line.GetAttrs()) + lineOverhead
}

// newLine cuts what is over the wire's limit and makes the text UTF-8, which
// protobuf demands. Attributes that are too large give way to their size.
func newLine(at time.Time, level int, message string, attrs []byte) *proto.LogLine {
	if len(attrs) > proto.MaxLogLine/2 {
		attrs = fmt.Appendf(nil, `{"attributes_too_large":%d}`, len(attrs))
	}
	if !utf8.ValidString(message) {
		message = strings.ToValidUTF8(message, "\uFFFD")
	}
	if room := proto.MaxLogLine - len(attrs); len(message) > room {
		note := fmt.Sprintf("… (%d bytes in all)", len(message))
		cut := room - len(note)
		for !utf8.RuneStart(message[cut]) {
			cut--
		}
		message = message[:cut] + note
	}
	return &proto.LogLine{AtMs: at.UnixMilli(), Level: int32(level), Message: message, Attrs: attrs}
}
