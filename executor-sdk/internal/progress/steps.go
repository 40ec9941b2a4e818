package progress

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// askAgain is the pause before a question is sent again.
const askAgain = 3 * time.Second

// codeUnavailable is the answer of a node that cannot tell now.
const codeUnavailable = "unavailable"

// StepClient asks the admin about steps. Its methods may be called from many goroutines.
type StepClient struct {
	mu      sync.Mutex // guards what follows
	links   []Link     // in the order they registered
	request int64
	waiting map[int64]*question
}

// question is one that waits for its answer.
type question struct {
	step   *proto.Step
	via    Link
	answer chan *proto.StepAck // capacity 1; one send, by whoever takes it out of waiting
}

// NewStepClient returns a StepClient without sessions.
func NewStepClient() *StepClient {
	return &StepClient{waiting: map[int64]*question{}}
}

// Up takes a session.
func (c *StepClient) Up(l Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links = append(c.links, l)
	for _, q := range c.waiting {
		if q.via == nil {
			c.send(q)
		}
	}
}

// Down takes a session away; what was asked through it is asked again.
func (c *StepClient) Down(l Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.links {
		if other == l {
			c.links = append(c.links[:i], c.links[i+1:]...)
			break
		}
	}
	for _, q := range c.waiting {
		if q.via == l {
			c.send(q)
		}
	}
}

// Answered takes the answers of a session.
func (c *StepClient) Answered(acks []*proto.StepAck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ack := range acks {
		q := c.waiting[ack.GetRequest()]
		if q == nil || ack.GetCode() == codeUnavailable {
			continue // it is asked again by itself
		}
		delete(c.waiting, ack.GetRequest())
		q.answer <- ack
	}
}

// Ask sends step until it is answered, or ctx ends: then it returns ctx's
// cause. It fills in step.Request.
func (c *StepClient) Ask(ctx context.Context, step *proto.Step) (*proto.StepAck, error) {
	q := &question{step: step, answer: make(chan *proto.StepAck, 1)}
	c.mu.Lock()
	c.request++
	step.Request = c.request
	c.waiting[step.Request] = q
	c.send(q)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, step.Request)
		c.mu.Unlock()
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
			c.mu.Lock()
			c.send(q)
			c.mu.Unlock()
		}
	}
}

// send hands q to a session, rather not to the one that has not answered. mu is held.
func (c *StepClient) send(q *question) {
	before := q.via
	q.via = nil
	for _, l := range c.links {
		if q.via == nil || q.via == before {
			q.via = l
		}
	}
	if q.via != nil {
		q.via.Steps([]*proto.Step{q.step})
	}
}
