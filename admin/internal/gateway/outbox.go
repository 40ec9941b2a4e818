package gateway

import (
	"fmt"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/failpoint"
)

// maxQueued bounds the frames' bytes that wait for one slow peer. A peer that
// lets this much pile up is closed: everything in it is in the database and
// will be offered elsewhere.
const maxQueued = 8 << 20

// writeSize is how much goes to the multiplexer at once, so that pings get
// their turn between writes (RELIABILITY section 6).
const writeSize = 16 << 10

// outbox is the one writer of a stream. Anybody may put frames into it without
// waiting; whatever has piled up goes out together. It has a goroutine only
// while there is something to write: most sessions say little, and there are many.
type outbox struct {
	// fixed by init
	w    stream
	fail func(error) // told once why nothing can be written any more
	idle func()      // told when nothing is left to write

	writers sync.WaitGroup // at most one

	mu      sync.Mutex
	buf     []byte   // guarded by mu: encoded frames
	points  []string // guarded by mu: failpoints of what is in buf; empty in a release
	writing bool     // guarded by mu: the goroutine runs
	later   bool     // guarded by mu: a timer will look for what putLater left
	then    func()   // guarded by mu: called by the writer when nothing is left
	stopped bool     // guarded by mu: nothing is written any more
}

// stream is the writing half of one of a session's streams.
type stream interface {
	Write(p []byte) (int, error)
	SetWriteDeadline(t time.Time) error
}

func (o *outbox) init(w stream, fail func(error), idle func()) { o.w, o.fail, o.idle = w, fail, idle }

// empty reports whether everything was written.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing && len(o.buf) == 0
}

// last queues a frame and calls then when it was written; then must not wait
// for the outbox to stop.
func (o *outbox) last(m gproto.Message, then func()) error {
	o.mu.Lock()
	o.then = then
	o.mu.Unlock()
	return o.put(m)
}

// laterBy is how long a frame that nobody waits for may wait for company.
const laterBy = 10 * time.Millisecond

// putLater is put for a frame that goes with the next one, or alone after
// laterBy: a write and a wake-up at both ends cost more than most frames.
func (o *outbox) putLater(m gproto.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.add(m)
	if len(o.buf) > 0 && !o.writing && !o.later {
		o.later = true
		time.AfterFunc(laterBy, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.later = false
			o.begin()
		})
	}
	return err
}

// put queues one frame; it returns an error if the frame itself is at fault,
// or the peer has let too much pile up.
func (o *outbox) put(m gproto.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.add(m)
	o.begin()
	return err
}

// begin starts the writer where there is something to write; under mu.
func (o *outbox) begin() {
	if !o.stopped && !o.writing && len(o.buf) > 0 {
		o.writing = true
		o.writers.Go(o.write)
	}
}

// add encodes a frame; under mu.
func (o *outbox) add(m gproto.Message) error {
	if o.stopped {
		return nil // the session is ending; what was lost is offered again
	}
	if len(o.buf) > maxQueued {
		o.stopped = true
		return fmt.Errorf("the executor does not read: %d bytes wait for it", maxQueued)
	}
	buf, err := proto.AppendFrame(o.buf, m, proto.MaxFrame)
	o.buf = buf
	if failpoint.Enabled {
		o.points = append(o.points, pointOf(m))
	}
	return err
}

// write writes until nothing is left.
func (o *outbox) write() {
	var spare []byte
	for {
		out, points, then := o.take(spare)
		if out == nil {
			if then != nil {
				then()
			}
			o.idle()
			return
		}
		hitAll(points, ".before")
		for rest := out; len(rest) > 0; {
			n := min(len(rest), writeSize)
			err := o.w.SetWriteDeadline(time.Now().Add(proto.WriteTimeout))
			if err == nil {
				_, err = o.w.Write(rest[:n])
			}
			if err != nil {
				o.halt()
				o.fail(err)
				return
			}
			rest = rest[n:]
		}
		hitAll(points, ".after")
		if spare = out; cap(spare) > 1<<20 {
			spare = nil
		}
	}
}

// take returns what waits; nil when the writer has to end, with what it has to
// do then.
func (o *outbox) take(spare []byte) (out []byte, points []string, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf) == 0 || o.stopped {
		o.writing, o.buf = false, nil
		return nil, nil, o.then
	}
	out, points = o.buf, o.points
	o.buf, o.points = spare[:0], nil
	return out, points, nil
}

func (o *outbox) halt() {
	o.mu.Lock()
	o.stopped, o.buf = true, nil
	o.mu.Unlock()
}

// stop ends the writing and waits for it. What is being written has to be
// interrupted by others.
func (o *outbox) stop() {
	o.halt()
	o.writers.Wait()
}
