package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxLine bounds one line of output in bytes; the rest of it is dropped. It is
// as much as a result may have.
const maxLine = 256 << 10

// Bounds of the last lines that are logged of an output beyond its budget. Each is
// cut to maxTailLine. The executor SDK keeps as much of a log's end in a flood.
const (
	maxTailLines = 64
	maxTailBytes = 12 << 10
	maxTailLine  = 4 << 10
)

// transcript turns a script's output into the log of its run. Both streams
// share one budget. Beyond it the last lines are kept back until the end.
type transcript struct {
	handler slog.Handler // of the run's log
	budget  int64

	mu    sync.Mutex // guards what follows
	left  int64      // bytes that may still be logged
	out   int64      // lines that were left out
	tail  []tailLine
	bytes int // of tail
}

// tailLine is a line beyond the budget.
type tailLine struct {
	at    time.Time
	level slog.Level
	text  string
}

// leaver is a log that counts the lines that were left out of it.
type leaver interface {
	LeaveOut(lines int64, why string)
}

func newTranscript(log *slog.Logger, budget int64) *transcript {
	return &transcript{handler: log.Handler(), budget: budget, left: budget}
}

// stream returns a writer for one of the streams.
func (t *transcript) stream(level slog.Level) *stream { return &stream{to: t, level: level} }

func (t *transcript) line(level slog.Level, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left >= 0 {
		t.left -= int64(len(text)) + 1
	}
	if t.left >= 0 {
		t.log(time.Now(), level, text)
		return
	}
	if len(text) > maxTailLine {
		text = strings.ToValidUTF8(text[:maxTailLine], "") + " … (cut)"
	}
	t.tail = append(t.tail, tailLine{time.Now(), level, text})
	t.bytes += len(text)
	for len(t.tail) > maxTailLines || t.bytes > maxTailBytes {
		t.bytes -= len(t.tail[0].text)
		t.tail[0] = tailLine{}
		t.tail = t.tail[1:]
		t.out++
	}
}

// close ends the log of the output.
func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out > 0 {
		why := fmt.Sprintf("the output is over its bound of %d bytes (--max-output of the agent)", t.budget)
		if l, ok := t.handler.(leaver); ok {
			l.LeaveOut(t.out, why)
		}
	}
	for _, l := range t.tail {
		t.log(l.at, l.level, l.text)
	}
	t.tail, t.bytes, t.out = nil, 0, 0
}

// log goes past the logger: a line of output is a message of its own.
func (t *transcript) log(at time.Time, level slog.Level, text string) {
	record := slog.NewRecord(at, level, text, 0)
	_ = t.handler.Handle(context.Background(), record) // the SDK keeps it, or counts it as dropped
}

// stream cuts a stream of output into lines. It is used by one goroutine, and
// read when that has ended.
type stream struct {
	to    *transcript
	level slog.Level
	line  []byte // begun
	cut   bool   // line was longer than maxLine
	last  []byte // the last line that is not blank
}

// Write implements io.Writer; it never fails.
func (s *stream) Write(p []byte) (int, error) {
	n := len(p)
	for {
		part, rest, ended := bytes.Cut(p, []byte{'\n'})
		room := min(len(part), maxLine-len(s.line))
		s.line = append(s.line, part[:room]...)
		s.cut = s.cut || room < len(part)
		if !ended {
			return n, nil
		}
		s.flush()
		p = rest
	}
}

// flush ends the line that has begun.
func (s *stream) flush() {
	line := bytes.TrimSuffix(s.line, []byte{'\r'})
	if len(bytes.TrimSpace(line)) > 0 {
		s.last = append(s.last[:0], line...)
		if s.cut {
			s.last = s.last[:0] // half a line is no result
		}
	}
	text := strings.ToValidUTF8(string(line), "\uFFFD")
	if s.cut {
		text += " … (cut)"
	}
	s.to.line(s.level, text)
	s.line, s.cut = s.line[:0], false
}

// close ends a last line without line feed.
func (s *stream) close() {
	if len(s.line) > 0 || s.cut {
		s.flush()
	}
}

// text is the last line, short enough for an error.
func (s *stream) text() string {
	const most = 500
	text := strings.ToValidUTF8(string(s.last[:min(len(s.last), most)]), "")
	return strings.TrimSpace(text)
}

// ScriptResult is what a script's run gives back.
type ScriptResult struct {
	ExitCode int `json:"exitCode" doc:"What the script ended with"`
	// Result is the last line of standard output if that is JSON.
	Result   json.RawMessage `json:"result,omitempty" doc:"Last line of standard output, if it is JSON"`
	LastLine string          `json:"lastLine,omitempty" doc:"Last line of standard output, if it is not"`
	NotUTF8  bool            `json:"notUtf8,omitempty" doc:"Some bytes of that line were not UTF-8; U+FFFD stands for them"`
}

// resultOf makes a result of the last line.
func resultOf(out *stream) ScriptResult {
	line := bytes.TrimSpace(out.last)
	r := ScriptResult{NotUTF8: !utf8.Valid(line)}
	if r.NotUTF8 {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	switch {
	case len(line) == 0:
	case json.Valid(line):
		r.Result = json.RawMessage(line)
	case len(line) > 4096:
		r.LastLine = strings.ToValidUTF8(string(line[:4096]), "") + " …"
	default:
		r.LastLine = string(line)
	}
	return r
}
