package gateway

import (
	"fmt"
	"slices"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/failpoint"
)

const (
	// maxQueued bounds the frames' bytes that wait for one slow peer. A peer that
	// lets this much pile up is closed: everything in it is in the database and
	// will be offered elsewhere.
	maxQueued = 8 << 20
	// maxPart is how many bytes of bulk leave at once, or one item of it that is
	// larger: whatever is urgent waits for no more than that.
	maxPart = 128 << 10
	// maxBulk is maxQueued for bulk. Offers stay far below it by the room that
	// they take first (maxLoading).
	maxBulk = 32 << 20
)

// writeSize is how much goes to the multiplexer at once, so that pings get
// their turn between writes.
const writeSize = 16 << 10

// outbox is the one writer of a stream. Anybody may put frames into it without
// waiting; whatever has piled up goes out together. It has a goroutine only
// while there is something to write: most sessions say little, and there are many.
type outbox struct {
	// fixed by init
	w    stream
	fail func(error)  // told once why nothing can be written any more
	idle func()       // told when nothing is left to write
	sent func([]bulk) // told what was written of the bulk; nil: nobody cares

	writers sync.WaitGroup // at most one

	mu      sync.Mutex
	buf     []byte   // guarded by mu: encoded frames
	bulk    []bulk   // guarded by mu: goes behind all frames, in parts
	size    int      // guarded by mu: bytes of bulk
	points  []string // guarded by mu: failpoints of what is in buf; empty in a release
	writing bool     // guarded by mu: the goroutine runs
	then    func()   // guarded by mu: called by the writer when nothing is left
	stopped bool     // guarded by mu: nothing is written any more
}

// bulk is something that may be large, and that nobody waits for more than for
// what is small: an offer with its input, or the stored result of a step.
type bulk struct {
	offer *proto.Offer
	step  *proto.StepAck
}

// size is about how many bytes it takes on the wire.
func (b bulk) size() int {
	if b.step != nil {
		return len(b.step.Output) + len(b.step.Message) + 64
	}
	return offerSize(b.offer)
}

func offerSize(o *proto.Offer) int {
	return len(o.Input) + len(o.GetScript().GetContent()) + 512
}

// stream is the writing half of one of a session's streams.
type stream interface {
	Write(p []byte) (int, error)
	SetWriteDeadline(t time.Time) error
}

func (o *outbox) init(w stream, fail func(error), idle func()) {
	o.mu.Lock() // for open
	defer o.mu.Unlock()
	o.w, o.fail, o.idle = w, fail, idle
}

// open reports whether frames can be put: the session is registered.
func (o *outbox) open() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w != nil && !o.stopped
}

// empty reports whether everything was written.
func (o *outbox) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.writing && !o.waits()
}

// waits reports whether there is something to write; under mu.
func (o *outbox) waits() bool { return len(o.buf)+len(o.bulk) > 0 }

// last queues a frame and calls then when it was written; then must not wait
// for the outbox to stop.
func (o *outbox) last(m gproto.Message, then func()) error {
	o.mu.Lock()
	o.then = then
	o.mu.Unlock()
	return o.put(m)
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

// putBulk queues what goes behind all frames. One item after the other, in this
// order, goes into frames of bounded size.
func (o *outbox) putBulk(items []bulk) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return nil
	}
	if o.size > maxBulk {
		o.stopped = true
		return fmt.Errorf("the executor does not read: %d bytes of inputs and steps wait for it", o.size)
	}
	for _, b := range items {
		o.size += b.size()
	}
	o.bulk = append(o.bulk, items...)
	o.begin()
	return nil
}

// putCancel queues a cancel. It overtakes everything but the offer that it is
// for, which goes before it now.
func (o *outbox) putCancel(c *proto.Cancel) error {
	own, err := o.addCancel(c)
	if own != nil && o.sent != nil {
		o.sent(own) // it is bulk no more
	}
	return err
}

func (o *outbox) addCancel(c *proto.Cancel) (own []bulk, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, b := range o.bulk {
		if b.offer == nil || b.offer.ExecutionId != c.ExecutionId || b.offer.Fence != c.Fence {
			continue
		}
		own = []bulk{b}
		o.bulk = slices.Delete(o.bulk, i, i+1)
		o.size -= b.size()
		if err := o.add(commandOf(own)); err != nil {
			return own, err
		}
		break
	}
	err = o.add(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Cancels{Cancels: &proto.CancelBatch{Cancels: []*proto.Cancel{c}}}})
	o.begin()
	return own, err
}

// begin starts the writer where there is something to write; under mu.
func (o *outbox) begin() {
	if !o.stopped && !o.writing && o.waits() {
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
		l, err := o.take(spare)
		if err != nil {
			o.fail(err)
			return
		}
		if l.frames == nil {
			if l.then != nil {
				l.then()
			}
			o.idle()
			return
		}
		hitAll(l.points, ".before")
		for rest := l.frames; len(rest) > 0; {
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
		hitAll(l.points, ".after")
		if o.sent != nil && len(l.part) > 0 {
			o.sent(l.part)
		}
		if spare = l.frames; cap(spare) > 1<<20 {
			spare = nil
		}
	}
}

// load is what is written at once.
type load struct {
	frames []byte // nil: the writer has to end
	part   []bulk // what is in frames of the bulk
	points []string
	then   func() // what is to be done at the end; nil: nothing
}

// take returns what waits: all frames, and a part of the bulk behind them. An
// error says that an item of it fits in no frame.
func (o *outbox) take(spare []byte) (load, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || !o.waits() {
		o.writing, o.buf = false, nil
		return load{then: o.then}, nil
	}
	part := o.takePart()
	if len(part) > 0 {
		if err := o.add(commandOf(part)); err != nil {
			o.writing, o.stopped, o.buf, o.bulk = false, true, nil, nil
			return load{}, err
		}
	}
	l := load{frames: o.buf, part: part, points: o.points}
	o.buf, o.points = spare[:0], nil
	return l, nil
}

// takePart takes items of one kind from the front of the bulk, as many as leave
// at once; under mu.
func (o *outbox) takePart() []bulk {
	n, size := 0, 0
	for n < len(o.bulk) && n < proto.MaxBatch && (o.bulk[n].step == nil) == (o.bulk[0].step == nil) {
		more := o.bulk[n].size()
		if n > 0 && size+more > maxPart {
			break
		}
		n, size = n+1, size+more
	}
	part := o.bulk[:n:n]
	o.size -= size
	if o.bulk = o.bulk[n:]; len(o.bulk) == 0 {
		o.bulk = nil // the array is the taker's now
	}
	return part
}

// commandOf makes a frame of items of one kind.
func commandOf(part []bulk) *proto.CommandToExecutor {
	if part[0].step != nil {
		acks := make([]*proto.StepAck, len(part))
		for i, b := range part {
			acks[i] = b.step
		}
		return &proto.CommandToExecutor{Body: &proto.CommandToExecutor_StepAcks{StepAcks: &proto.StepAckBatch{Acks: acks}}}
	}
	offers := make([]*proto.Offer, len(part))
	for i, b := range part {
		offers[i] = b.offer
	}
	return &proto.CommandToExecutor{Body: &proto.CommandToExecutor_Offers{Offers: &proto.OfferBatch{Offers: offers}}}
}

func (o *outbox) halt() {
	o.mu.Lock()
	o.stopped, o.buf, o.bulk = true, nil, nil
	o.mu.Unlock()
}

// stop ends the writing and waits for it. What is being written has to be
// interrupted by others.
func (o *outbox) stop() {
	o.halt()
	o.writers.Wait()
}
