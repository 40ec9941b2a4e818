package progress

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// reportEvery is the least time between two reports of one attempt.
const reportEvery = 250 * time.Millisecond

// Reporter collects how far the attempts are and sends the newest of each.
type Reporter struct {
	wake chan struct{} // capacity 1: there is something to send; nobody closes it

	mu       sync.Mutex // guards what follows
	links    []Link
	attempts map[*Attempt]bool // of attempts that run, and whether there is something new
}

// Attempt is how far one attempt is.
type Attempt struct {
	reporter *Reporter
	newest   *proto.Progress // guarded by reporter.mu; replaced, never changed
}

// NewReporter returns a Reporter that sends while Run runs.
func NewReporter() *Reporter {
	return &Reporter{wake: make(chan struct{}, 1), attempts: map[*Attempt]bool{}}
}

// Open begins the reports of an attempt.
func (r *Reporter) Open(execution, fence int64) *Attempt {
	return &Attempt{reporter: r, newest: &proto.Progress{ExecutionId: execution, Fence: fence}}
}

// Set reports that the attempt is so far. The text is cut to the wire's limit.
func (a *Attempt) Set(permille int32, message string) {
	r := a.reporter
	r.mu.Lock()
	last := a.newest
	a.newest = &proto.Progress{
		ExecutionId: last.GetExecutionId(), Fence: last.GetFence(), Seq: last.GetSeq() + 1,
		Permille: max(0, min(permille, 1000)), Message: message,
	}
	r.attempts[a] = true
	r.mu.Unlock()
	r.signal()
}

// Close sends what is new at once, and forgets the attempt.
func (a *Attempt) Close() {
	r := a.reporter
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts[a] && len(r.links) > 0 {
		r.links[0].Progress([]*proto.Progress{a.newest})
	}
	delete(r.attempts, a)
}

// Up takes a session; it is told how far everything is.
func (r *Reporter) Up(l Link) {
	r.mu.Lock()
	r.links = append(r.links, l)
	for a := range r.attempts {
		r.attempts[a] = true
	}
	r.mu.Unlock()
	r.signal()
}

// Down takes a session away. What went through it last may be lost and goes
// out again.
func (r *Reporter) Down(l Link) {
	r.mu.Lock()
	for i, other := range r.links {
		if other == l {
			r.links = append(r.links[:i], r.links[i+1:]...)
			break
		}
	}
	for a := range r.attempts {
		r.attempts[a] = true
	}
	r.mu.Unlock()
	r.signal()
}

func (r *Reporter) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.flush()
		pause := time.NewTimer(reportEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// flush sends what is new to one session.
func (r *Reporter) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) == 0 {
		return
	}
	var list []*proto.Progress
	for a, fresh := range r.attempts {
		if fresh {
			list = append(list, a.newest)
			r.attempts[a] = false
		}
	}
	if len(list) > 0 {
		r.links[0].Progress(list)
	}
}
