package logship

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// readFound ships what earlier processes left, as fast as there is room for it,
// and adds a line to the logs of those runs that died with their process.
func (s *Shipper) readFound(ctx context.Context) {
	left := map[attemptKey]*Writer{}
	for _, on := range s.spool.found {
		err := eachFound(on, func(c *proto.LogChunk) bool { return s.adopt(ctx, left, on, c) })
		if err != nil {
			s.options.Logger.Warn("log lines of an earlier process cannot be read", "file", on.path, "err", err)
		}
		if ctx.Err() != nil {
			return
		}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, w := range left {
		if s.options.Died != nil && s.options.Died(key.execution, key.fence) {
			w.add(newLine(time.Now(), levelWarn, fmt.Sprintf("the process of this run died here; lines of its last %s or so may be missing", spoolDelay), nil, ""))
		}
		w.closed = true
	}
}

type attemptKey struct{ execution, fence int64 }

// adopt adds the lines of a chunk that an earlier process wrote.
func (s *Shipper) adopt(ctx context.Context, left map[attemptKey]*Writer, on *segment, c *proto.LogChunk) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := attemptKey{c.GetExecutionId(), c.GetFence()}
	w := left[key]
	if w == nil {
		w = s.Open(c.GetExecutionId(), c.GetFence(), c.GetAttempt())
		left[key] = w
	}
	w.last = c.GetFirstLine() - 1
	for _, line := range c.GetLines() {
		for s.total > s.options.Total/2 { // the rest is for this process's runs
			room := s.room
			s.mu.Unlock()
			select {
			case <-room:
			case <-ctx.Done():
			}
			s.mu.Lock()
			if ctx.Err() != nil {
				return false
			}
		}
		w.addTo(line, on)
	}
	return true
}
