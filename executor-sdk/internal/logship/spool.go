package logship

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// How lines come onto the disk.
const (
	// spoolDelay is how long a line waits for company before it is written: what
	// a process that is killed can lose of its logs.
	spoolDelay = 10 * time.Millisecond
	// spoolChunk bounds one record, in bytes of lines.
	spoolChunk = 256 << 10
	// segmentBytes is the size at which the next file is begun.
	segmentBytes = 1 << 20
	// spoolRetry is the pause after the disk refused a write.
	spoolRetry = 5 * time.Second
)

// spool is the folder where lines wait beside the memory. A file is a sequence
// of frames with a proto.LogChunk each; it is removed when an admin node has
// stored all of its lines. Files are not synced: they survive the process, not
// the machine.
type spool struct {
	// Fixed after construction.
	dir    string
	most   int64 // bytes of all files; lines beyond stay in memory only
	logger *slog.Logger
	found  []*segment // of earlier processes, oldest first

	// Owned by the spooling goroutine.
	file    *os.File // nil = none yet
	current *segment
	next    int
	buf     []byte
	retryAt time.Time
	told    bool
}

// segment is one file.
type segment struct {
	path string
	// Guarded by Shipper.mu.
	bytes int64
	left  int  // lines that no admin node has stored yet
	open  bool // lines may still come: it stays
}

const segmentSuffix = ".lines"

// openSpool looks what earlier processes left. The folder is made with the
// first line.
func openSpool(dir string, most int64, logger *slog.Logger) *spool {
	p := &spool{dir: dir, most: most, logger: logger, next: 1}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		logger.Warn("log lines of an earlier process cannot be read", "err", err)
	}
	var numbers []int
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), segmentSuffix); ok {
			if n, err := strconv.Atoi(name); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		s := &segment{path: p.path(n), open: true}
		if info, err := os.Stat(s.path); err == nil {
			s.bytes = info.Size()
		}
		p.found = append(p.found, s)
		p.next = n + 1
	}
	return p
}

func (p *spool) path(n int) string {
	return filepath.Join(p.dir, fmt.Sprintf("%08d%s", n, segmentSuffix))
}

// write appends chunks to the current file and returns it, or nil when the disk
// does not take them: then they are in memory only.
func (p *spool) write(chunks []*proto.LogChunk) *segment {
	if !p.retryAt.IsZero() && time.Now().Before(p.retryAt) {
		return nil
	}
	err := p.tryWrite(chunks)
	if err == nil {
		p.retryAt, p.told = time.Time{}, false
		return p.current
	}
	p.retryAt = time.Now().Add(spoolRetry)
	p.close() // what follows a torn record is not read: a new file is begun
	if !p.told {
		p.told = true
		p.logger.Warn("log lines cannot be written to the journal's folder; they are in memory only", "err", err)
	}
	return nil
}

func (p *spool) tryWrite(chunks []*proto.LogChunk) (err error) {
	if p.file == nil {
		if err := os.MkdirAll(p.dir, 0o700); err != nil {
			return err
		}
		path := p.path(p.next)
		p.next++
		if p.file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
			return err
		}
		p.current = &segment{path: path, open: true}
	}
	p.buf = p.buf[:0]
	for _, c := range chunks {
		if p.buf, err = proto.AppendFrame(p.buf, c, proto.MaxFrame); err != nil {
			return err
		}
	}
	_, err = p.file.Write(p.buf)
	return err
}

func (p *spool) close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// eachFound calls f for the chunks of one file of an earlier process, until f
// says no. A torn end is where the process died.
func eachFound(s *segment, f func(*proto.LogChunk) bool) error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := proto.NewReader(file, proto.MaxFrame)
	for {
		c := &proto.LogChunk{}
		switch err := reader.Next(c); {
		case err == nil:
			if !f(c) {
				return nil
			}
		case errors.Is(err, io.EOF), errors.Is(err, proto.ErrTruncated), errors.Is(err, proto.ErrChecksum):
			return nil
		default:
			return err
		}
	}
}
