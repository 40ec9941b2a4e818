package engine

import (
	"sync"
	"time"
)

// snapshot is what this node knows of something that changes seldom: its last reading,
// for as long as that is good. The value itself must never change. It is safe for
// concurrent use, and holds no lock while it reads.
type snapshot[T any] struct {
	mu     sync.Mutex
	value  T         // guarded by mu
	until  time.Time // guarded by mu
	forgot int       // guarded by mu; how often it was: what was read before is not kept
}

// load returns the value, as of good ago at most.
func (s *snapshot[T]) load(good time.Duration, read func() (T, error)) (T, error) {
	s.mu.Lock()
	value, fresh, forgot := s.value, time.Now().Before(s.until), s.forgot
	s.mu.Unlock()
	if fresh {
		return value, nil
	}
	began := time.Now()
	value, err := read()
	if err != nil {
		return value, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgot == forgot && s.until.Before(began.Add(good)) {
		s.value, s.until = value, began.Add(good)
	}
	return value, nil
}

// last is the value that was kept last, however old.
func (s *snapshot[T]) last() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// forget makes the next load read again: it has changed.
func (s *snapshot[T]) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
	s.forgot++
}
