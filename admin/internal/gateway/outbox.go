package gateway

import (
	"fmt"
	"io"
	"sync"

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
// waiting; whatever has piled up goes out together.
type outbox struct {
	w io.Writer // owned by run

	mu      sync.Mutex
	ready   sync.Cond
	buf     []byte   // guarded by mu: encoded frames
	points  []string // guarded by mu: failpoints of what is in buf; empty in a release
	stopped bool     // guarded by mu
	full    bool     // guarded by mu
}

func (o *outbox) init(w io.Writer) {
	o.w = w
	o.ready.L = &o.mu
}

// put queues one frame; it returns an error if the frame itself is at fault.
func (o *outbox) put(m gproto.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || o.full {
		return nil // the session is ending; what was lost is offered again
	}
	if len(o.buf) > maxQueued {
		o.full = true
		o.ready.Signal()
		return nil
	}
	buf, err := proto.AppendFrame(o.buf, m, proto.MaxFrame)
	o.buf = buf
	if failpoint.Enabled {
		o.points = append(o.points, pointOf(m))
	}
	o.ready.Signal()
	return err
}

// run writes until stop, a write error or an overflow.
func (o *outbox) run() error {
	var spare []byte
	for {
		o.mu.Lock()
		for len(o.buf) == 0 && !o.stopped && !o.full {
			o.ready.Wait()
		}
		if o.stopped || o.full {
			full := o.full
			o.mu.Unlock()
			if full {
				return fmt.Errorf("the executor does not read: %d bytes wait for it", maxQueued)
			}
			return nil
		}
		out := o.buf
		o.buf = spare[:0]
		points := o.points
		o.points = nil
		o.mu.Unlock()
		hitAll(points, ".before")
		for rest := out; len(rest) > 0; {
			n := min(len(rest), writeSize)
			if _, err := o.w.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		hitAll(points, ".after")
		if spare = out; cap(spare) > 1<<20 {
			spare = nil
		}
	}
}

func (o *outbox) stop() {
	o.mu.Lock()
	o.stopped = true
	o.ready.Signal()
	o.mu.Unlock()
}
