package gateway

import (
	"time"

	"github.com/carillon-sched/carillon/proto"
)

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

// age retires a session that is old, and ends it when no offer waits for its
// answer and no result for its acknowledgement. It returns when to look again.
func (g *Gateway) age(s *Session, now time.Time) time.Duration {
	if left := s.retires.Sub(now); left > 0 {
		return left
	}
	s.mu.Lock()
	first := !s.retiring
	s.retiring = true
	s.mu.Unlock()
	if first || !s.calm() && now.Sub(s.retires) < retirement {
		return retireEvery // an offer that was on its way when this began has been sent by then
	}
	s.farewell(&proto.Error{
		Code: codeRecycled, Message: "the session, or the certificate that it began with, is old; connect again",
	}, &farewellError{codeRecycled})
	return retirement
}

// calm reports whether no offer waits for its answer, no acceptance for its
// grant, no result for its acknowledgement, and no command to be written.
func (s *Session) calm() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause != nil || s.pulse.owed == 0 && s.promised == 0 && s.owed.count == 0 && s.command.empty()
}

// farewell tells why and ends the session when it was written; a peer that does
// not read is cut off by the write's deadline.
func (s *Session) farewell(why *proto.Error, cause error) {
	end := func() { s.close(cause) }
	if s.control.last(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{Error: why}}, end) != nil {
		end()
	}
}

// farewellError is an end that was decided here.
type farewellError struct{ code string }

func (e *farewellError) Error() string { return "ended by this node: " + e.code }
