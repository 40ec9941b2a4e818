package notify

import (
	"context"
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Sender is a channel. Its methods are called from several goroutines.
type Sender interface {
	// Channel is the name that deliveries carry.
	Channel() string
	// Timeout bounds one Send from its start to its end.
	Timeout() time.Duration
	// Lane names what would be slow together with this notice's target, such
	// as a host. It must be quick.
	Lane(n *Notice) string
	// Render is what Send would send. It must not block.
	Render(n *Notice) (Rendered, error)
	// Send tells once. nil: the receiver has taken it. An error is temporary
	// unless it is or wraps a SendError that says otherwise. Send returns when
	// ctx ends.
	Send(ctx context.Context, n *Notice) error
}

// Rendered is a message as the receiver gets it.
type Rendered = noun.RenderedAlert

// SendError tells more about an error than that it happened.
type SendError struct {
	Err error
	// Permanent: trying again would end the same way.
	Permanent bool
	// Unreachable: nobody answered, or not in time. Several of these in a row
	// close the lane for a while.
	Unreachable bool
	// RetryAfter is the receiver's wish; 0 = none. It can only lengthen the wait.
	RetryAfter time.Duration
}

func (e *SendError) Error() string { return e.Err.Error() }
func (e *SendError) Unwrap() error { return e.Err }

// Permanent marks an error as one that trying again will not mend.
func Permanent(err error) error { return &SendError{Err: err, Permanent: true} }

// Unreachable marks an error as a receiver that did not answer.
func Unreachable(err error) error { return &SendError{Err: err, Unreachable: true} }

// sendErrorOf returns the details of err; an error without any is temporary.
func sendErrorOf(err error) SendError {
	var e *SendError
	if errors.As(err, &e) {
		return *e
	}
	return SendError{Err: err, Unreachable: errors.Is(err, context.DeadlineExceeded)}
}

// Opener opens what package secret sealed.
type Opener interface {
	Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error)
}
