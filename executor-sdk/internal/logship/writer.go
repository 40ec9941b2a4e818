package logship

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/proto"
)

// lineOverhead is what a line costs in memory beside its text, in bytes.
const lineOverhead = 200

// tailBytes bounds the newest lines that a flooding attempt holds back, in bytes
// of cost. They follow the note about the dropped ones, so that a log keeps its
// end: the error, and how the run ended. The newest line is held in any case.
const tailBytes = 32 << 10

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
	lines    []entry // not acknowledged, in the order of their numbers
	ready    int     // how many of lines may be sent: they are on the disk
	sent     int     // how many of lines are on their way
	last     int64   // number of the last line, dropped ones included
	dropped  int64   // lines dropped since the last line that was kept
	dropping bool    // new lines go to tail
	bytes    int
	tail     []*proto.LogLine // the newest lines, without numbers; the older ones are dropped
	tailCost int
	queued   bool // in Shipper.queue
	isFresh  bool // in Shipper.fresh
	closed   bool
}

// entry is a line that no admin node has stored yet.
type entry struct {
	line   *proto.LogLine
	number int64
	on     *segment // the file that has it; nil = none
}

// Open begins the log of an attempt.
func (s *Shipper) Open(execution, fence int64, attempt int32) *Writer {
	return &Writer{s: s, execution: execution, fence: fence, attempt: attempt}
}

// Write adds a line. attrs is a JSON object or empty, trace a trace id or
// empty. It waits at most MaxWait, and only when the log is over its bound.
func (w *Writer) Write(at time.Time, level int, message string, attrs []byte, trace string) {
	line := newLine(at, level, message, attrs, trace)
	size := cost(line)
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.dropping && !w.closed && !s.fits(w, size) {
		s.awaitSpace(w, size)
	}
	if w.closed {
		return
	}
	if w.dropping && s.relaxed(w) {
		w.resume(at)
	}
	if w.dropping = w.dropping || !s.fits(w, size); w.dropping {
		w.hold(line, size)
		return
	}
	s.lines++
	w.add(line)
}

// LeaveOut counts lines that the caller has not written and says why, behind
// what was written before. That line is never dropped.
func (w *Writer) LeaveOut(at time.Time, lines int64, why string) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.closed || lines <= 0 {
		return
	}
	w.resume(at)
	w.last += lines
	w.note(at, lines, why)
}

// hold puts a line into the tail and drops the oldest ones beyond its bound.
// mu is held.
func (w *Writer) hold(line *proto.LogLine, size int) {
	w.s.holding[w] = true
	w.tail = append(w.tail, line)
	w.tailCost += size
	most := min(tailBytes, w.s.options.PerAttempt/8)
	n := 0
	for ; n < len(w.tail)-1 && w.tailCost > most; n++ {
		w.tailCost -= cost(w.tail[n])
	}
	clear(w.tail[:n])
	w.tail = w.tail[n:]
	w.last += int64(n)
	w.dropped += int64(n)
	w.s.dropped += uint64(n)
}

// resume ends the dropping: the note and the tail follow what was kept, beyond
// the bound if need be. mu is held.
func (w *Writer) resume(at time.Time) {
	if w.dropped > 0 {
		w.note(at, w.dropped, "they came faster than they could be stored")
		w.dropped = 0
	}
	for _, line := range w.tail {
		w.s.lines++
		w.add(line)
	}
	w.tail, w.tailCost, w.dropping = nil, 0, false
	delete(w.s.holding, w)
}

// Close ends the log and returns the number of its last line, 0 for none.
func (w *Writer) Close() int64 {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.closed {
		w.resume(time.Now())
		w.closed = true
	}
	return w.last
}

// note adds the line that stands for lines that are not there. mu is held.
func (w *Writer) note(at time.Time, lines int64, why string) {
	w.add(newLine(at, levelWarn, fmt.Sprintf("… %s lines dropped: %s", thousands(lines), why), fmt.Appendf(nil, `{"dropped":%d}`, lines), ""))
}

// thousands writes 12345 as 12,345.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// add queues a line behind the last number. mu is held.
func (w *Writer) add(line *proto.LogLine) {
	w.addTo(line, nil)
}

// addTo is add for a line that a file has already. mu is held.
func (w *Writer) addTo(line *proto.LogLine, on *segment) {
	w.last++
	w.lines = append(w.lines, entry{line, w.last, on})
	size := cost(line)
	w.bytes += size
	w.s.active[w] = true
	w.s.total += size
	switch {
	case on != nil:
		on.left++
		fallthrough
	case w.s.spool == nil:
		w.ready++
		w.s.release(w, size)
	default:
		w.s.keep(w, size)
	}
}

// onDisk lets the next n lines be sent. mu is held.
func (w *Writer) onDisk(n int, on *segment) {
	for i := range w.lines[w.ready : w.ready+n] {
		e := &w.lines[w.ready+i]
		if e.on = on; on != nil {
			on.left++
		}
		size := cost(e.line)
		w.s.unspooled -= size
		w.s.release(w, size)
	}
	w.ready += n
}

// next takes up to limit bytes of unsent lines that have consecutive numbers,
// as one chunk. mu is held.
func (w *Writer) next(limit int) (chunk *proto.LogChunk, size int) {
	chunk, size = w.chunk(w.sent, w.ready, limit)
	w.sent += len(chunk.Lines)
	return chunk, size
}

// chunk is made of lines from one index on that have consecutive numbers, at
// least one of them. mu is held.
func (w *Writer) chunk(from, end, limit int) (chunk *proto.LogChunk, size int) {
	chunk = &proto.LogChunk{ExecutionId: w.execution, Fence: w.fence, Attempt: w.attempt, FirstLine: w.lines[from].number}
	for i := from; i < end && (i == from || size < limit) && len(chunk.Lines) < proto.MaxBatch; i++ {
		if w.lines[i].number != chunk.FirstLine+int64(i-from) {
			break
		}
		chunk.Lines = append(chunk.Lines, w.lines[i].line)
		size += cost(w.lines[i].line)
	}
	return chunk, size
}

// acked forgets the first n lines, which were sent. It returns their size.
// mu is held.
func (w *Writer) acked(n int) (size int) {
	for _, e := range w.lines[:n] {
		size += cost(e.line)
		if e.on != nil {
			w.s.stored(e.on)
		}
	}
	clear(w.lines[:n])
	w.lines = w.lines[n:]
	w.ready -= n
	w.sent -= n
	w.bytes -= size
	return size
}

func cost(line *proto.LogLine) int {
	return len(line.GetMessage()) + len(line.GetAttrs()) + lineOverhead
}

// newLine cuts what is over the wire's limit and makes the text UTF-8, which
// protobuf demands. Attributes that are too large give way to their size.
func newLine(at time.Time, level int, message string, attrs []byte, trace string) *proto.LogLine {
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
	return &proto.LogLine{AtMs: at.UnixMilli(), Level: int32(level), Message: message, Attrs: attrs, TraceId: trace}
}
