package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// maxLine bounds one line of output in bytes; the rest of it is dropped. It is
// as much as a result may have.
const maxLine = 256 << 10

// transcript turns a script's output into the log of its run. Both streams
// share one budget.
type transcript struct {
	handler slog.Handler // of the run's log

	mu   sync.Mutex
	left int64 // guarded by mu: bytes that may still be logged
	full bool  // guarded by mu: it was said that the rest is dropped
}

func newTranscript(log *slog.Logger, budget int64) *transcript {
	return &transcript{handler: log.Handler(), left: budget}
}

// stream returns a writer for one of the streams.
func (t *transcript) stream(level slog.Level) *stream { return &stream{to: t, level: level} }

func (t *transcript) line(level slog.Level, text string) {
	t.mu.Lock()
	t.left -= int64(len(text)) + 1
	over, said := t.left < 0, t.full
	t.full = over
	t.mu.Unlock()
	if over {
		if !said {
			t.log(slog.LevelWarn, "carillon: the output is too long; what follows is not logged")
		}
		return
	}
	t.log(level, text)
}

// log goes past the logger: a line of output is a message of its own.
func (t *transcript) log(level slog.Level, text string) {
	record := slog.NewRecord(time.Now(), level, text, 0)
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
}

// resultOf makes a result of the last line.
func resultOf(out *stream) ScriptResult {
	line := bytes.TrimSpace(out.last)
	switch {
	case len(line) == 0:
		return ScriptResult{}
	case json.Valid(line):
		return ScriptResult{Result: json.RawMessage(line)}
	case len(line) > 4096:
		return ScriptResult{LastLine: strings.ToValidUTF8(string(line[:4096]), "") + " …"}
	}
	return ScriptResult{LastLine: strings.ToValidUTF8(string(line), "\uFFFD")}
}
