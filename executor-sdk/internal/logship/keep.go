package logship

import (
	"context"
	"os"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// runSpool writes lines to the disk, and lets them go to the admin after that,
// until ctx ends.
func (s *Shipper) runSpool(ctx context.Context) {
	timer := time.NewTimer(spoolDelay)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.spoolAll()
			s.spool.close()
			s.endSegment()
			return
		case <-s.spoolWake:
		}
		if s.unspooledBytes() < batchBytes {
			timer.Reset(spoolDelay)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		s.spoolAll()
	}
}

func (s *Shipper) unspooledBytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unspooled
}

// spooling is what of one writer is on its way to the disk.
type spooling struct {
	w *Writer
	n int
}

func (s *Shipper) spoolAll() {
	for {
		s.mu.Lock()
		chunks, list := s.toDisk()
		room := s.spoolBytes < s.spool.most
		s.mu.Unlock()
		if len(list) == 0 {
			return
		}
		var on *segment
		if room {
			on = s.spool.write(chunks)
		}
		s.mu.Lock()
		for _, one := range list {
			one.w.onDisk(one.n, on)
		}
		if on != nil {
			on.bytes += int64(len(s.spool.buf))
			s.spoolBytes += int64(len(s.spool.buf))
		}
		full := on != nil && on.bytes >= segmentBytes
		s.mu.Unlock()
		s.signal()
		if full {
			s.spool.close()
		}
		s.endSegment()
	}
}

// toDisk takes lines that are not on the disk yet. mu is held.
func (s *Shipper) toDisk() (chunks []*proto.LogChunk, list []spooling) {
	size := 0
	for size < spoolChunk && len(s.fresh) > 0 {
		w := s.fresh[0]
		one := spooling{w: w}
		for w.ready+one.n < len(w.lines) && size < spoolChunk {
			chunk, n := w.chunk(w.ready+one.n, len(w.lines), spoolChunk-size)
			chunks = append(chunks, chunk)
			one.n += len(chunk.Lines)
			size += n
		}
		list = append(list, one)
		if w.ready+one.n == len(w.lines) {
			s.fresh = s.fresh[1:]
			w.isFresh = false
		}
	}
	return chunks, list
}

// endSegment removes a file that was closed, if all of its lines are stored;
// otherwise whoever notes the last one does. The spooling goroutine calls it.
func (s *Shipper) endSegment() {
	on := s.spool.current
	if on == nil || s.spool.file != nil {
		return
	}
	s.spool.current = nil
	s.mu.Lock()
	on.open = false
	done := on.left == 0
	if done {
		s.spoolBytes -= on.bytes
	}
	s.mu.Unlock()
	if done {
		removeSegments(on)
	}
}

// stored notes that a line of the file is stored, and remembers the file for
// removal when that was the last one. mu is held.
func (s *Shipper) stored(on *segment) {
	if on.left--; on.left == 0 && !on.open {
		s.spoolBytes -= on.bytes
		s.gone = append(s.gone, on)
	}
}

// removeSegments removes files. One that stays is sent again by the next
// process, which is harmless.
func removeSegments(list ...*segment) {
	for _, one := range list {
		_ = os.Remove(one.path)
	}
}
