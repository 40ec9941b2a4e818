package gateway

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Codes of what a peer sends that no executor may send. Its session ends, and it
// is told which limit it was (SPEC.md, "Error codes"): whoever operates the
// executor does not see this node's log.
const (
	codeTooLarge  = "too_large"
	codeMalformed = "malformed"
	codeLimit     = "limit_reached"
)

// excess is a limit that a peer has exceeded.
type excess struct{ code, message string }

func (e *excess) Error() string { return e.message }

// rateRetry is when a peer may come again that sent too often.
const rateRetry = time.Second

// faultOf is what a peer is told about an error in what it sent; nil: the error
// is none of its making, or its stream has ended.
func faultOf(err error) *proto.Error {
	out := &proto.Error{Message: err.Error()}
	var e *excess
	switch {
	case errors.As(err, &e):
		if out.Code = e.code; e.code == codeLimit {
			out.RetryAfterMs = rateRetry.Milliseconds()
		}
	case errors.Is(err, proto.ErrFrameTooLarge), errors.Is(err, proto.ErrTooManyItems):
		out.Code = codeTooLarge
	case errors.Is(err, proto.ErrChecksum), errors.Is(err, proto.ErrMalformed):
		out.Code = codeMalformed
	default:
		return nil
	}
	return out
}

// closeForFault ends the session for what its peer has sent, and tells it why, for as
// long as a write may take. It returns when the session has ended.
func (s *Session) closeForFault(err error) {
	if told := faultOf(err); told != nil && s.control.open() {
		s.mu.Lock()
		s.retiring = true // no more offers
		s.mu.Unlock()
		s.closeWith(told, err)
		patience := time.NewTimer(proto.WriteTimeout)
		defer patience.Stop()
		select {
		case <-s.closed:
		case <-patience.C:
		}
	}
	s.close(err)
}
