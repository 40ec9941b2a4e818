package dispatch

import (
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// pick returns the index of the target to use, or -1 when none of them has
// room. free holds the room of each target, in the order in which the
// instances registered; turn is the job's turn for round robin, random a
// number for random. Full targets are passed over in every strategy.
func pick(r domain.Routing, free []int, turn, random uint64) int {
	start := 0
	if n := uint64(len(free)); n > 0 {
		switch r {
		case domain.RouteRoundRobin:
			start = int(turn % n)
		case domain.RouteRandom:
			start = int(random % n)
		}
	}
	for i := range free {
		if at := (start + i) % len(free); free[at] > 0 {
			return at
		}
	}
	return -1
}

// turns counts the turns of round robin, per job. Each node counts for
// itself: the spread stays even, since each node's is.
type turns struct {
	mu   sync.Mutex
	next map[domain.JobID]uint64 // guarded by mu
}

// maxTurns bounds the memory for jobs that have gone; starting over costs
// nothing but one uneven turn.
const maxTurns = 100_000

// take returns a job's turn; the first one begins at random: many jobs do not
// all begin at the first instance.
func (t *turns) take(job domain.JobID, random uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil || len(t.next) > maxTurns {
		t.next = map[domain.JobID]uint64{}
	}
	turn, ok := t.next[job]
	if !ok {
		turn = random >> 1
	}
	t.next[job] = turn + 1
	return turn
}
