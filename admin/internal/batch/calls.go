package batch

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/panics"
)

// Calls makes few questions about many of many questions about one: whatever is
// asked while an answer is on its way goes with the next question. It has no
// goroutine: whoever asks first asks for all. The zero value is of no use;
// create it with NewCalls. It is safe for concurrent use.
type Calls[Q, A any] struct {
	// fixed after construction
	max     int
	timeout time.Duration
	ask     func(ctx context.Context, list []Q) ([]A, error)

	mu      sync.Mutex
	asking  bool          // guarded by mu: somebody asks, or has been told to
	waiting []*call[Q, A] // guarded by mu: the first one asks next, unless somebody asks
}

type call[Q, A any] struct {
	question Q
	lead     chan struct{} // capacity 1: it is this one's turn to ask; nobody closes it
	done     chan struct{} // closed when answer and err are there
	answer   A
	err      error
}

// NewCalls returns Calls that ask for at most max at once, one after the other,
// for at most timeout each. ask answers in the order of the list, or with an
// error that is everybody's; it may keep neither. A panic is the error of the
// question that causes it.
func NewCalls[Q, A any](max int, timeout time.Duration, ask func(ctx context.Context, list []Q) ([]A, error)) *Calls[Q, A] {
	return &Calls[Q, A]{max: max, timeout: timeout, ask: ask}
}

// Do asks one question, which was not asked before, and waits for its answer.
// When ctx ends first it returns its cause; the question may have been asked
// all the same. What is asked does not end with ctx, since it is not for this
// caller alone.
func (c *Calls[Q, A]) Do(ctx context.Context, question Q) (A, error) {
	own := &call[Q, A]{question: question, lead: make(chan struct{}, 1), done: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, own)
	if !c.asking {
		c.passLocked()
	}
	c.mu.Unlock()
	select {
	case <-own.done:
		return own.answer, own.err
	case <-own.lead:
		c.next(ctx)
		return own.answer, own.err
	case <-ctx.Done():
		c.leave(own)
		var none A
		return none, context.Cause(ctx)
	}
}

// Waiting returns how many wait for their question to be asked.
func (c *Calls[Q, A]) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// next asks for those who have waited longest, the caller first among them.
func (c *Calls[Q, A]) next(ctx context.Context) {
	c.mu.Lock()
	n := min(len(c.waiting), c.max)
	asked := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	c.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
	defer cancel()
	c.answer(ctx, asked)
	c.mu.Lock()
	c.passLocked()
	c.mu.Unlock()
}

// answer asks for some. When ask panics, each half of them is asked for by itself,
// so that only the question at fault fails.
func (c *Calls[Q, A]) answer(ctx context.Context, asked []*call[Q, A]) {
	list := make([]Q, len(asked))
	for i, one := range asked {
		list[i] = one.question
	}
	var answers []A
	err := panics.Catch(func() (err error) { answers, err = c.ask(ctx, list); return err })
	if half := len(asked) / 2; half > 0 && panics.Stack(err) != "" {
		c.answer(ctx, asked[:half])
		c.answer(ctx, asked[half:])
		return
	}
	for i, one := range asked {
		if one.err = err; err == nil {
			one.answer = answers[i]
		}
		close(one.done)
	}
}

// passLocked lets the next one ask, if somebody waits.
func (c *Calls[Q, A]) passLocked() {
	if c.asking = len(c.waiting) > 0; c.asking {
		c.waiting[0].lead <- struct{}{}
	} else {
		c.waiting = nil // and with it the memory of a crowd
	}
}

// leave takes back a question that was not asked yet. Its turn to ask, if it was
// its turn, is the next one's.
func (c *Calls[Q, A]) leave(own *call[Q, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.waiting {
		if one == own {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			if len(own.lead) > 0 {
				c.passLocked()
			}
			return
		}
	}
}
