package gateway

import (
	"log/slog"
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

// watcher judges sessions by their silence and their age. Its methods are called by the
// watch of a session.
type watcher struct {
	// fixed after construction
	sink Sink
	log  *slog.Logger
}

// look applies the idle policy to a session, and retires it when it is old. It
// returns when to look again.
func (wa *watcher) look(s *Session) time.Duration {
	now := time.Now()
	s.mu.Lock()
	s.idle.hear(s.began.Add(time.Duration(s.heardAt.Load())))
	v := s.idle.judge(now)
	s.mu.Unlock()
	if v.dead != nil {
		s.close(v.dead)
		return proto.HeartbeatTimeout
	}
	if v.ping {
		s.ping()
	}
	switch was := s.doubt.Swap(v.doubted); {
	case v.doubted && !was:
		wa.log.Warn("executor does not answer; it gets no offers from here meanwhile", "instance_id", s.Instance, "instance", s.Name)
		wa.sink.Doubted(s)
	case was && !v.doubted:
		wa.log.Info("executor answers again", "instance_id", s.Instance, "instance", s.Name)
		wa.sink.Freed(s, s.Free())
	}
	if v.doubted {
		v.again = min(v.again, wa.reclaimDoubted(s, now))
	}
	return min(v.again, wa.retire(s, now))
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
			s.idle.ponged()
			s.mu.Unlock()
		}
	})
}

// A session that has stood for a day is replaced by a fresh one: whatever its
// ends hold that only grows ends with it, and so does the certificate that it
// began with. The executor is told, connects again at once, and says what it
// has; leases belong to instances, so nothing that runs notices.
const (
	// DefaultRecycleAfter is the most that a session lasts.
	DefaultRecycleAfter = 24 * time.Hour
	// retirement is how long answers to the last offers may take.
	retirement = 10 * time.Second
	// retireEvery is how often it is looked whether they have come.
	retireEvery = 100 * time.Millisecond
)

// codeRecycled tells the executor to connect again at once.
const codeRecycled = "recycled"

// retire lets a session that is old have no more offers, and ends it when no offer
// waits for its answer and no result for its acknowledgement. It returns when to
// look again.
func (wa *watcher) retire(s *Session, now time.Time) time.Duration {
	if left := s.retires.Sub(now); left > 0 {
		return left
	}
	s.mu.Lock()
	first := !s.retiring
	s.retiring = true
	s.mu.Unlock()
	if first || !s.quiescent() && now.Sub(s.retires) < retirement {
		return retireEvery // an offer that was on its way when this began has been sent by then
	}
	s.closeWith(&proto.Error{
		Code: codeRecycled, Message: "the session, or the certificate that it began with, is old; connect again",
	}, &closeError{codeRecycled})
	return retirement
}

// quiescent reports whether no offer waits for its answer, no acceptance for its
// grant, no result for its acknowledgement, and no command to be written.
func (s *Session) quiescent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != nil || s.idle.unanswered == 0 && s.ungranted == 0 && s.results.count == 0 && s.command.empty()
}

// closeWith tells why and ends the session when it was written; a peer that does
// not read is cut off by the write's deadline.
func (s *Session) closeWith(why *proto.Error, cause error) {
	end := func() { s.close(cause) }
	if s.control.last(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{Error: why}}, end) != nil {
		end()
	}
}

// closeError is an end that was decided here.
type closeError struct{ code string }

func (e *closeError) Error() string { return "ended by this node: " + e.code }
