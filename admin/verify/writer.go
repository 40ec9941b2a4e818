package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Extension is that of history files.
const Extension = ".jsonl"

// Writer appends records to one history file. It is safe for concurrent use.
// Each record is one write, so that a killed process leaves whole lines.
type Writer struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// NewWriter writes to w, which must not be shared with another Writer.
func NewWriter(w io.Writer) *Writer { return &Writer{out: w} }

// CreateFile begins a file of its own for this process: name and the process
// id, in the folder of the history. The file must not exist yet. Whoever gets
// it closes it with Close.
func CreateFile(folder, name string) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("history folder: %w", err)
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%d%s", name, os.Getpid(), Extension))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history file: %w", err)
	}
	return NewWriter(f), nil
}

// Append writes one record. What it wrote survives the death of the process,
// but not that of the machine: there is no fsync.
func (w *Writer) Append(r Record) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", r.kind(), err)
	}
	line := make([]byte, 0, len(body)+24)
	line = append(line, `{"type":"`...)
	line = append(line, r.kind()...)
	line = append(line, `",`...)
	line = append(line, body[1:]...)
	line = append(line, '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.out.Write(line); err != nil {
		return fmt.Errorf("append %s: %w", r.kind(), err)
	}
	return nil
}

// Close closes the file, if there is one.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.out.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
