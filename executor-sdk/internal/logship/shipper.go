package logship

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// How lines travel.
const (
	batchBytes  = 64 << 10
	batchDelay  = 100 * time.Millisecond
	turnBytes   = 32 << 10 // one attempt's share of a batch while others wait
	maxInFlight = 4        // batches without an acknowledgement: what floods is not far ahead of what comes next
	// ackTimeout is how long the oldest batch may go without an
	// acknowledgement before the connection is given up.
	ackTimeout = 15 * time.Second
	retryMin   = 100 * time.Millisecond
	retryMax   = 5 * time.Second
)

// MaxWait is how long a line may wait for room before lines are dropped.
const MaxWait = 20 * time.Millisecond

// Options of New.
type Options struct {
	// Dial opens a greeted log connection to some admin node.
	Dial func(ctx context.Context) (net.Conn, error)
	// Total bounds the lines in memory, PerAttempt those of one attempt, in bytes of
	// cost. An attempt has less than that while others need room: see shareOfFree.
	Total, PerAttempt int
	Logger            *slog.Logger
	// Spool is a folder where lines stand until an admin node has stored them,
	// and where those of earlier processes are looked for; no other living
	// process uses it. Empty: lines are in memory only.
	Spool string
	// Died says that an attempt of an earlier process was running when that
	// died. It may be nil.
	Died func(execution, fence int64) bool
}

// Shipper sends the lines of all attempts while Run runs.
type Shipper struct {
	options   Options
	spool     *spool        // nil: lines are in memory only
	wake      chan struct{} // capacity 1: look again; nobody closes it
	spoolWake chan struct{} // capacity 1: lines have to be spooled; nobody closes it

	mu     sync.Mutex // guards what follows and the Writers
	active map[*Writer]bool
	// holding have a tail, see Writer.hold.
	holding map[*Writer]bool
	queue   []*Writer // have lines to send, in the order of their turn
	unsent  int       // bytes of lines that may be sent
	fresh   []*Writer // have lines that are not on the disk yet
	// unspooled are the bytes of those lines, spoolBytes those of all files.
	unspooled  int
	spoolBytes int64
	gone       []*segment // to be removed
	total      int        // bytes, sent ones included
	oldest     time.Time  // when the first unsent line came
	room       chan struct{}
	inFlight   []batch
	seq        int64
	lines      uint64 // ever taken
	dropped    uint64 // of all that was written
	flushing   bool
	idle       chan struct{} // closed when nothing waits; nil unless somebody asks
}

// batch is what one frame carried.
type batch struct {
	seq    int64
	sentAt time.Time
	parts  []part
}

type part struct {
	w *Writer
	n int
}

// New returns a Shipper.
func New(o Options) *Shipper {
	s := &Shipper{
		options: o, wake: make(chan struct{}, 1), spoolWake: make(chan struct{}, 1),
		active: map[*Writer]bool{}, holding: map[*Writer]bool{}, room: make(chan struct{}),
	}
	if o.Spool != "" {
		s.spool = openSpool(o.Spool, 4*int64(o.Total), o.Logger)
		for _, on := range s.spool.found {
			s.spoolBytes += on.bytes
		}
	}
	return s
}

func (s *Shipper) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Counts returns how many lines were taken and dropped since New, and the bytes
// in memory.
func (s *Shipper) Counts() (lines, dropped uint64, buffered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines, s.dropped, s.total
}

// Kick makes the Shipper try to connect at once: a session has registered.
func (s *Shipper) Kick() { s.signal() }

// shareOfFree is how many times what is left free an attempt may have: alone 8 of 9
// parts of Options.Total, two that flood 8 of 17 each. Some room is left for
// whoever comes next, however many flood, and a burst that is alone is not cut
// while the rest of the buffer lies idle. (Dynamic thresholds: Choudhury and
// Hahne, IEEE/ACM Transactions on Networking 6(2), 1998.)
const shareOfFree = 8

func (s *Shipper) fits(w *Writer, size int) bool {
	free := s.options.Total - s.total - size
	return w.bytes+size <= min(s.options.PerAttempt, shareOfFree*free)
}

// relaxed says that a log that dropped lines may go on: not at the first free
// byte, or it would alternate between a line and a note about dropped ones.
func (s *Shipper) relaxed(w *Writer) bool {
	return w.bytes <= s.options.PerAttempt/2 && s.total <= s.options.Total/4*3
}

// awaitSpace waits for up to MaxWait. mu is held before and after.
func (s *Shipper) awaitSpace(w *Writer, size int) {
	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	for !s.fits(w, size) && !w.dropping && !w.closed {
		room := s.room
		s.mu.Unlock()
		late := false
		select {
		case <-room:
		case <-timer.C:
			late = true
		}
		s.mu.Lock()
		if late {
			return
		}
	}
}

// keep notes a new line of w that has to come onto the disk. mu is held.
func (s *Shipper) keep(w *Writer, size int) {
	before := s.unspooled
	s.unspooled += size
	if !w.isFresh {
		w.isFresh = true
		s.fresh = append(s.fresh, w)
	}
	if before == 0 || before < batchBytes && s.unspooled >= batchBytes {
		select {
		case s.spoolWake <- struct{}{}:
		default:
		}
	}
}

// release notes a line of w that may be sent. mu is held.
func (s *Shipper) release(w *Writer, size int) {
	if s.unsent == 0 {
		s.oldest = time.Now()
	}
	before := s.unsent
	s.unsent += size
	s.enqueue(w)
	if before == 0 || before < batchBytes && s.unsent >= batchBytes {
		s.signal()
	}
}

func (s *Shipper) enqueue(w *Writer) {
	if !w.queued {
		w.queued = true
		s.queue = append(s.queue, w)
	}
}

// due says when the next batch may leave: 0 = now, negative = not before
// something changes. mu is held.
func (s *Shipper) due(now time.Time) time.Duration {
	switch {
	case s.unsent == 0 || len(s.inFlight) >= maxInFlight:
		return -1
	case s.unsent >= batchBytes || s.flushing:
		return 0
	}
	return max(0, batchDelay-now.Sub(s.oldest))
}

// take builds the next batch. mu is held.
func (s *Shipper) take(now time.Time) *proto.LogBatch {
	s.seq++
	m := &proto.LogBatch{Seq: s.seq}
	b := batch{seq: s.seq, sentAt: now}
	size := 0
	for size < batchBytes && len(s.queue) > 0 && len(m.Chunks) < proto.MaxBatch {
		w := s.queue[0]
		s.queue = s.queue[1:]
		w.queued = false
		chunk, n := w.next(turnBytes)
		m.Chunks = append(m.Chunks, chunk)
		b.parts = append(b.parts, part{w, len(chunk.Lines)})
		size += n
		s.unsent -= n
		if w.sent < w.ready {
			s.enqueue(w)
		}
	}
	s.oldest = now
	s.inFlight = append(s.inFlight, b)
	return m
}

// acknowledged forgets the lines of all batches up to seq.
func (s *Shipper) acknowledged(seq int64) {
	s.mu.Lock()
	s.acknowledgedLocked(seq)
	gone := s.gone
	s.gone = nil
	s.mu.Unlock()
	removeSegments(gone...)
}

func (s *Shipper) acknowledgedLocked(seq int64) {
	freed := false
	for len(s.inFlight) > 0 && s.inFlight[0].seq <= seq {
		for _, p := range s.inFlight[0].parts {
			s.total -= p.w.acked(p.n)
			if len(p.w.lines) == 0 {
				delete(s.active, p.w)
			}
		}
		s.inFlight = s.inFlight[1:]
		freed = true
	}
	if freed {
		for w := range s.holding { // it may write nothing for long
			if s.relaxed(w) {
				w.resume(time.Now())
			}
		}
		close(s.room)
		s.room = make(chan struct{})
		s.report()
		s.signal()
	}
}

// restart makes everything unsent again, for a new connection.
func (s *Shipper) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight, s.seq, s.unsent, s.queue = nil, 0, s.total-s.unspooled, nil
	for w := range s.active {
		if w.sent, w.queued = 0, w.ready > 0; w.queued {
			s.queue = append(s.queue, w)
		}
	}
	slices.SortFunc(s.queue, func(a, b *Writer) int {
		return cmp.Or(cmp.Compare(a.execution, b.execution), cmp.Compare(a.fence, b.fence))
	})
}

// Flush sends what waits without delay, and returns when an admin node has
// stored it all, or with ctx's error.
func (s *Shipper) Flush(ctx context.Context) error {
	s.mu.Lock()
	s.flushing = true
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.report()
	s.mu.Unlock()
	s.signal()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("flush logs: %w, %d bytes are left", context.Cause(ctx), s.total)
	}
}

// report ends Flush when nothing waits. mu is held.
func (s *Shipper) report() {
	if s.idle != nil && s.total == 0 {
		close(s.idle)
		s.idle, s.flushing = nil, false
	}
}
