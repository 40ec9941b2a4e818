package session

import (
	"errors"
	"sync"
	"time"

	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/proto"
)

// maxQueued bounds what waits for one session, in messages. Honest peers stay
// far below: what waits are answers to offers and results of attempts. A peer
// that offers without end and does not read loses its session.
const maxQueued = 100_000

// deferFor is how long what was accepted and started may wait for something that
// is urgent, as the result of a short handler is.
const deferFor = 10 * time.Millisecond

// maxBulk is how many bytes of results and steps leave at once, or one of them
// that is larger: what is urgent waits for no more than that.
const maxBulk = 128 << 10

var errNotReading = errors.New("the admin does not read: too many messages are waiting")

// outbox collects messages from many goroutines for one that writes. What
// piles up while a write is under way leaves together with the next one.
type outbox struct {
	wake chan struct{} // capacity 1: there is something to write; nobody closes it
	// points are the failpoints of what drain took last; empty in a release.
	// Owned by the one that drains.
	points []string

	mu      sync.Mutex // guards what follows
	answers []*proto.Answer
	started []*proto.Started
	results []*proto.Result
	// What running handlers tell and ask.
	progress []*proto.Progress
	steps    []*proto.Step
	closed   bool
	full     bool
	deferred bool // a timer will signal
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// put adds messages; after close it drops them.
func (o *outbox) put(answers []*proto.Answer, started []*proto.Started, results []*proto.Result) {
	o.mu.Lock()
	o.add(answers, started, results)
	o.mu.Unlock()
	o.signal()
}

// putDeferred adds what goes with whatever goes next, or by itself after deferFor.
func (o *outbox) putDeferred(answers []*proto.Answer, started []*proto.Started) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(answers, started, nil)
	if !o.closed && !o.deferred {
		o.deferred = true
		time.AfterFunc(deferFor, func() {
			o.mu.Lock()
			o.deferred = false
			o.mu.Unlock()
			o.signal()
		})
	}
}

// add is for put, under mu.
func (o *outbox) add(answers []*proto.Answer, started []*proto.Started, results []*proto.Result) {
	if o.closed {
		return
	}
	o.answers = append(o.answers, answers...)
	o.started = append(o.started, started...)
	o.results = append(o.results, results...)
	o.full = o.full || len(o.answers)+len(o.started)+len(o.results) > maxQueued
}

// putProgress adds what running handlers tell and ask; after close it drops it.
func (o *outbox) putProgress(progress []*proto.Progress, steps []*proto.Step) {
	o.mu.Lock()
	if !o.closed {
		o.progress = append(o.progress, progress...)
		o.steps = append(o.steps, steps...)
		o.full = o.full || len(o.progress)+len(o.steps) > maxQueued
	}
	o.mu.Unlock()
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.answers, o.started, o.results, o.progress, o.steps = nil, nil, nil, nil, nil
	o.mu.Unlock()
}

// drain appends what waits to buf, as frames, and signals again where that is
// not all. For one attempt the answer comes before the start, the start before
// the steps, and those before the result, because each kind is queued before the
// next can be.
func (o *outbox) drain(buf []byte) ([]byte, error) {
	o.mu.Lock()
	answers, started, progress, full := o.answers, o.started, o.progress, o.full
	room := maxBulk
	steps := takeBulk(&o.steps, &room)
	var results []*proto.Result
	if len(o.steps) == 0 {
		results = takeBulk(&o.results, &room)
	}
	o.answers, o.started, o.progress = nil, nil, nil
	more := len(o.steps)+len(o.results) > 0
	o.mu.Unlock()
	if more {
		o.signal()
	}
	if full {
		return nil, errNotReading
	}
	if failpoints {
		o.points = pointsOf(len(answers), len(started), len(results))
	}
	buf, err := appendBatches(buf, answers, func(b []*proto.Answer) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Answers{Answers: &proto.AnswerBatch{Answers: b}}}
	})
	if err != nil {
		return nil, err
	}
	buf, err = appendBatches(buf, started, func(b []*proto.Started) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Started{Started: &proto.StartedBatch{Started: b}}}
	})
	if err != nil {
		return nil, err
	}
	if buf, err = appendProgress(buf, progress, steps); err != nil {
		return nil, err
	}
	return appendBatches(buf, results, func(b []*proto.Result) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{Results: &proto.ResultBatch{Results: b}}}
	})
}

// takeBulk takes messages from the front of a list while there is room, and one
// in any case if nothing was taken before.
func takeBulk[M gproto.Message](from *[]M, room *int) []M {
	list, n := *from, 0
	for ; n < len(list); n++ {
		size := gproto.Size(list[n])
		if size > *room && *room < maxBulk {
			break
		}
		*room -= size
	}
	*from = list[n:]
	if n == len(list) {
		*from = nil // the array is the taker's now
	}
	return list[:n:n]
}

// appendProgress comes before the results: what a handler told before it
// returned arrives before its end does.
func appendProgress(buf []byte, progress []*proto.Progress, steps []*proto.Step) ([]byte, error) {
	buf, err := appendBatches(buf, progress, func(b []*proto.Progress) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Progress{Progress: &proto.ProgressBatch{Progress: b}}}
	})
	if err != nil {
		return nil, err
	}
	return appendBatches(buf, steps, func(b []*proto.Step) *proto.CommandToAdmin {
		return &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Steps{Steps: &proto.StepBatch{Steps: b}}}
	})
}

// appendBatches cuts list into frames of at most MaxBatch messages that stay
// under MaxFrame.
func appendBatches[M gproto.Message](buf []byte, list []M, wrap func([]M) *proto.CommandToAdmin) ([]byte, error) {
	const room = proto.MaxFrame - 64 // for the envelope
	var err error
	for len(list) > 0 {
		n, size := 0, 0
		for n < len(list) && n < proto.MaxBatch {
			size += gproto.Size(list[n]) + 8
			if n > 0 && size > room {
				break
			}
			n++
		}
		if buf, err = proto.AppendFrame(buf, wrap(list[:n]), proto.MaxFrame); err != nil {
			return nil, err
		}
		list = list[n:]
	}
	return buf, nil
}
