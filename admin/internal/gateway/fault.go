package gateway

import (
	"errors"
	"io"
	"sync"
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

// lingerFor is how long a session goes on after its peer was told what was wrong. A socket
// that is closed with unread bytes in it resets the connection, and the peer then loses what
// it has not read.
const lingerFor = time.Second

// closeForFault ends the session for what its peer has sent, and tells it why, for as
// long as a write may take. Then it reads from and discards what comes, until the peer
// leaves or lingerFor is over. It returns when the session has ended.
func (s *Session) closeForFault(from io.Reader, err error) {
	defer s.close(err)
	told := faultOf(err)
	if told == nil || !s.control.open() {
		return
	}
	s.mu.Lock()
	s.retiring = true // no more offers
	s.mu.Unlock()
	patience := time.AfterFunc(proto.WriteTimeout, func() { s.close(err) })
	defer patience.Stop()
	written := sync.OnceFunc(func() { patience.Reset(lingerFor) })
	if s.control.last(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Error{Error: told}}, written) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, from)
}
