package midrun

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// ErrTooOld means that sessions stand, but only to nodes that do not know steps.
var ErrTooOld = errors.New("the admin node does not store steps: it is older than this SDK")

// askAgain is the pause before a question is sent again.
const askAgain = 3 * time.Second

// codeUnavailable is the answer of a node that cannot tell now.
const codeUnavailable = "unavailable"

// Desk asks the admin about steps. Its methods may be called from many goroutines.
type Desk struct {
	mu      sync.Mutex // guards what follows
	links   []Link     // that take steps, in the order they registered
	deaf    map[Link]bool
	request int64
	waiting map[int64]*question
}

// question is one that waits for its answer.
type question struct {
	step   *proto.Step
	via    Link
	answer chan *proto.StepAck // capacity 1; one send, by whoever takes it out of waiting
}

// NewDesk returns a Desk without sessions.
func NewDesk() *Desk {
	return &Desk{deaf: map[Link]bool{}, waiting: map[int64]*question{}}
}

// Up takes a session; knows says whether its node takes steps.
func (d *Desk) Up(l Link, knows bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !knows {
		d.deaf[l] = true
		return
	}
	d.links = append(d.links, l)
	for _, q := range d.waiting {
		if q.via == nil {
			d.send(q)
		}
	}
}

// Down takes a session away; what was asked through it is asked again.
func (d *Desk) Down(l Link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.deaf, l)
	for i, other := range d.links {
		if other == l {
			d.links = append(d.links[:i], d.links[i+1:]...)
			break
		}
	}
	for _, q := range d.waiting {
		if q.via == l {
			d.send(q)
		}
	}
}

// Answered takes the answers of a session.
func (d *Desk) Answered(acks []*proto.StepAck) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ack := range acks {
		q := d.waiting[ack.GetRequest()]
		if q == nil || ack.GetCode() == codeUnavailable {
			continue // it is asked again by itself
		}
		delete(d.waiting, ack.GetRequest())
		q.answer <- ack
	}
}

// Ask sends step until it is answered, or ctx ends: then it returns ctx's
// cause. It fills in step.Request.
func (d *Desk) Ask(ctx context.Context, step *proto.Step) (*proto.StepAck, error) {
	q := &question{step: step, answer: make(chan *proto.StepAck, 1)}
	d.mu.Lock()
	if len(d.links) == 0 && len(d.deaf) > 0 {
		d.mu.Unlock()
		return nil, ErrTooOld
	}
	d.request++
	step.Request = d.request
	d.waiting[step.Request] = q
	d.send(q)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.waiting, step.Request)
		d.mu.Unlock()
	}()
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		select {
		case ack := <-q.answer:
			return ack, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-again.C:
			d.mu.Lock()
			d.send(q)
			d.mu.Unlock()
		}
	}
}

// send hands q to a session, rather not to the one that has not answered. mu is held.
func (d *Desk) send(q *question) {
	before := q.via
	q.via = nil
	for _, l := range d.links {
		if q.via == nil || q.via == before {
			q.via = l
		}
	}
	if q.via != nil {
		q.via.Steps([]*proto.Step{q.step})
	}
}
