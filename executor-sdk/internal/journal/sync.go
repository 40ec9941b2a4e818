package journal

import (
	"slices"
	"time"
)

// syncing is the fsync under way and what waits for one. An fsync takes as long
// as the disk does, and what is appended meanwhile gets into the file at once.
// Owned by Run's goroutine, but for the fsync itself.
type syncing struct {
	start    chan file  // closed when Run ends
	ended    chan error // one for each start
	underWay bool

	pause time.Duration // the least time between the beginnings of two
	began time.Time     // of the last one
	rest  *time.Timer   // fires when the pause is over

	covered, waiting             []func(error) // by the fsync under way, and by the next
	coveredPoints, waitingPoints []string      // their failpoints; empty in a release
}

// begin starts the goroutine that syncs; what it returns ends it.
func (s *syncing) begin(pause time.Duration, took func(time.Duration)) (end func()) {
	s.start, s.ended = make(chan file), make(chan error, 1)
	s.pause, s.rest = pause, time.NewTimer(pause)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for f := range s.start {
			began := time.Now()
			err := f.Sync()
			took(time.Since(began))
			s.ended <- err
		}
	}()
	return func() {
		s.rest.Stop()
		close(s.start)
		<-gone
	}
}

// add notes who waits for what was just written. What nobody waits for is not
// synced, and passes its failpoints all the same.
func (s *syncing) add(waiters []func(error), points []string) {
	if len(waiters) == 0 {
		hitAll(points, ".before-fsync")
		hitAll(points, ".after-fsync")
		return
	}
	s.waiting = append(s.waiting, waiters...)
	s.waitingPoints = append(s.waitingPoints, points...)
}

// next begins an fsync for those who wait, unless one is under way. Where the
// pause is not over yet, rest fires when it is.
func (s *syncing) next(f file) {
	if s.underWay || len(s.waiting) == 0 {
		return
	}
	if left := s.pause - time.Since(s.began); left > 0 {
		s.rest.Reset(left)
		return
	}
	s.began = time.Now()
	s.covered, s.waiting = s.waiting, s.covered[:0]
	s.coveredPoints, s.waitingPoints = s.waitingPoints, nil
	hitAll(s.coveredPoints, ".before-fsync")
	s.underWay = true
	s.start <- f
}

// take ends the fsync that was under way, and returns whom it covered.
func (s *syncing) take() (covered []func(error), points []string) {
	s.underWay = false
	covered, points = slices.Clone(s.covered), s.coveredPoints
	clear(s.covered)
	s.covered, s.coveredPoints = s.covered[:0], nil
	return covered, points
}

// settle waits for the fsync under way, whatever comes of it, and returns all
// who waited for it or for the next one: something else decides what they hear.
func (s *syncing) settle() []func(error) {
	if s.underWay {
		<-s.ended //nolint:errcheck // its waiters hear something else
	}
	all, _ := s.take()
	all = append(all, s.waiting...)
	s.waiting, s.waitingPoints = nil, nil
	return all
}
