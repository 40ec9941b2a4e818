package midrun

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// reportEvery is the least time between two reports of one attempt.
const reportEvery = 250 * time.Millisecond

// Board collects how far the attempts are and sends the newest of each.
type Board struct {
	wake chan struct{} // capacity 1: there is something to send; nobody closes it

	mu    sync.Mutex // guards what follows
	links []Link
	marks map[*Mark]bool // of attempts that run, and whether there is something new
}

// Mark is how far one attempt is.
type Mark struct {
	board  *Board
	newest *proto.Progress // guarded by board.mu; replaced, never changed
}

// NewBoard returns a Board that sends while Run runs.
func NewBoard() *Board {
	return &Board{wake: make(chan struct{}, 1), marks: map[*Mark]bool{}}
}

// Open begins the reports of an attempt.
func (b *Board) Open(execution, fence int64) *Mark {
	return &Mark{board: b, newest: &proto.Progress{ExecutionId: execution, Fence: fence}}
}

// Set reports that the attempt is so far. The text is cut to the wire's limit.
func (m *Mark) Set(permille int32, message string) {
	b := m.board
	b.mu.Lock()
	last := m.newest
	m.newest = &proto.Progress{
		ExecutionId: last.GetExecutionId(), Fence: last.GetFence(), Seq: last.GetSeq() + 1,
		Permille: max(0, min(permille, 1000)), Message: message,
	}
	b.marks[m] = true
	b.mu.Unlock()
	b.signal()
}

// Close sends what is new at once, and forgets the attempt.
func (m *Mark) Close() {
	b := m.board
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.marks[m] && len(b.links) > 0 {
		b.links[0].Progress([]*proto.Progress{m.newest})
	}
	delete(b.marks, m)
}

// Up takes a session; it is told how far everything is.
func (b *Board) Up(l Link) {
	b.mu.Lock()
	b.links = append(b.links, l)
	for m := range b.marks {
		b.marks[m] = true
	}
	b.mu.Unlock()
	b.signal()
}

// Down takes a session away. What went through it last may be lost and goes
// out again.
func (b *Board) Down(l Link) {
	b.mu.Lock()
	for i, other := range b.links {
		if other == l {
			b.links = append(b.links[:i], b.links[i+1:]...)
			break
		}
	}
	for m := range b.marks {
		b.marks[m] = true
	}
	b.mu.Unlock()
	b.signal()
}

func (b *Board) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends.
func (b *Board) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		b.flush()
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
func (b *Board) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.links) == 0 {
		return
	}
	var list []*proto.Progress
	for m, fresh := range b.marks {
		if fresh {
			list = append(list, m.newest)
			b.marks[m] = false
		}
	}
	if len(list) > 0 {
		b.links[0].Progress(list)
	}
}
