package gateway

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// watch looks at a session whenever its last look said to. It has no goroutine
// in between: there are many sessions.
type watch struct {
	began time.Time    // fixed by start
	timer *time.Timer  // fixed by start
	next  atomic.Int64 // when the next look is due, in nanoseconds since began
	soon  atomic.Int64 // when a look was asked for since the last one began; 0 = none was

	mu   sync.Mutex
	look func() (again time.Duration) // guarded by mu; nil before start and after stop
}

func (w *watch) start(look func() time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began, w.look = time.Now(), look
	again := look()
	w.next.Store(int64(again))
	w.timer = time.AfterFunc(again, w.run)
}

func (w *watch) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.look == nil {
		return
	}
	w.soon.Store(0)
	again := w.look()
	now := time.Since(w.began)
	if asked := time.Duration(w.soon.Load()); asked > 0 {
		again = min(again, max(0, asked-now))
	}
	w.next.Store(int64(now + again))
	w.timer.Reset(again)
}

// stop waits for a look that is under way; there is none after it.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look = nil
	w.timer.Stop()
}

// within lets the next look come in d, unless one comes sooner.
func (w *watch) within(d time.Duration) {
	at := int64(time.Since(w.began) + d)
	if asked := w.soon.Load(); asked == 0 || at < asked {
		w.soon.Store(at) // of two at once the later may win; they are nearly the same
	}
	if at < w.next.Load() {
		w.next.Store(at)
		w.timer.Reset(d)
	}
}

// look closes the session when the peer is silent for too long, and lets the
// instance have no offers while it does not answer or when the session is old.
// It returns when to look again.
func (g *Gateway) look(s *Session) time.Duration {
	now := time.Now()
	s.mu.Lock()
	silence := now.Sub(s.lastBeat)
	late := proto.HeartbeatTimeout
	if s.pulse.every > 0 {
		late += s.pulse.every
	}
	s.mu.Unlock()
	if silence > late {
		s.close(fmt.Errorf("no heartbeat for %s", silence.Round(time.Second)))
		return proto.HeartbeatTimeout
	}
	again, err := g.feel(s, now)
	if err != nil {
		s.close(err)
		return proto.HeartbeatTimeout
	}
	return min(again, g.age(s, now))
}

// feel judges the session's pulse and tells what has changed.
func (g *Gateway) feel(s *Session, now time.Time) (again time.Duration, err error) {
	s.mu.Lock()
	s.pulse.hear(s.began.Add(time.Duration(s.heardAt.Load())))
	ask, again, err := s.pulse.judge(now)
	doubted := s.pulse.doubted(now)
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if ask {
		s.ping()
	}
	switch was := s.doubt.Swap(doubted); {
	case doubted && !was:
		g.log.Warn("executor does not answer; it gets no offers from here meanwhile", "instance_id", s.Instance, "instance", s.Name)
		g.opt.Sink.Doubted(s)
	case was && !doubted:
		g.log.Info("executor answers again", "instance_id", s.Instance, "instance", s.Name)
		g.opt.Sink.Freed(s, s.Free())
	}
	if doubted {
		again = min(again, g.moveDoubted(s, now))
	}
	return again, nil
}

// hear notes that something came. It is called by the connection's reader.
func (s *Session) hear() {
	s.heardAt.Store(int64(time.Since(s.began)))
	if s.doubt.Load() {
		s.watch.within(0)
	}
}

// ping asks the peer's multiplexer, which answers without the application; one
// at a time. It ends with its answer, after proto.WriteTimeout, or with the
// session.
func (s *Session) ping() {
	if !s.pinging.CompareAndSwap(false, true) {
		return
	}
	s.pings.Go(func() {
		defer s.pinging.Store(false)
		if _, err := s.mux.Ping(); err == nil {
			s.mu.Lock()
			s.pulse.pinged()
			s.mu.Unlock()
		}
	})
}
