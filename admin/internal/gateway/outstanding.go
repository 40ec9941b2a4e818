package gateway

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/proto"
)

// outstanding is what was handed over and is not acknowledged yet: it is in memory
// until the database has taken it. An executor that reports faster waits. Its
// counts are guarded by Session.mu.
type outstanding struct {
	room  *semaphore.Weighted // in bytes
	count int
	bytes int64
}

func newOutstanding() outstanding { return outstanding{room: semaphore.NewWeighted(maxOutstanding)} }

const maxOutstanding = 2 << 20

func sizeOfResults(results []*proto.Result) (size int64) {
	for _, r := range results {
		size += int64(200 + len(r.Output) + len(r.Error) + len(r.Stack))
	}
	return size
}

func sizeOfSteps(steps []*proto.Step) (size int64) {
	for _, m := range steps {
		size += int64(200 + len(m.Name) + len(m.Output))
	}
	return size
}

// addOutstanding counts what was handed over when there is room for it, beside what
// is outstanding of the tenant's other sessions, also of those that have ended
// since: all of it ends, by an acknowledgement or without one. False when the
// session ended before that: its executor sends it again.
func (s *Session) addOutstanding(o *outstanding, n int, size int64) bool {
	size = min(size, maxOutstanding)
	if !s.acquire(o.room, size) {
		return false
	}
	if !s.acquire(s.account.outstanding, size) {
		o.room.Release(size)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o.count += n
	o.bytes += size
	return true
}

// waitTurn waits until the tenant's pace lets n more bytes in; false when the
// session ended before.
func (s *Session) waitTurn(n int) bool {
	turn := s.account.pace.ReserveN(time.Now(), n)
	wait := turn.Delay()
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.closed:
		turn.Cancel()
		return false
	}
}

// acquire takes n of what the tenant's sessions share; false when the session
// ended before there was so much.
func (s *Session) acquire(of *semaphore.Weighted, n int64) bool {
	if of.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with this function
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return of.Acquire(ctx, n) == nil
}

// endOutstanding takes n off, of the average size. mu is held.
func (s *Session) endOutstanding(o *outstanding, n int) {
	if n = min(n, o.count); n > 0 {
		size := o.bytes * int64(n) / int64(o.count)
		o.bytes -= size
		o.count -= n
		s.account.outstanding.Release(size)
		o.room.Release(size)
	}
}
