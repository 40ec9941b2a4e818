package session

import (
	"errors"
	"time"
)

// The pauses before a session is tried again.
const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 15 * time.Second
	// aloneMax bounds the pause while there is no session to any node: an
	// executor alone cannot report results, and loses its lease soon.
	aloneMax = 3 * time.Second
	// healthyAfter is how long a session must have lasted for the pauses to
	// begin at the bottom again.
	healthyAfter = 30 * time.Second
	// refusedPause is for refusals that will not go away by themselves: a
	// person has to do something first.
	refusedPause = 60 * time.Second
)

// backoff counts the failures in a row. The zero value is ready.
type backoff struct{ failures int }

// next returns the pause after a session that lasted lived and ended with
// err; alone: no other node has a session with us. random is from [0,1). The
// pause is random in full ("full jitter"), so that a thousand executors do not
// come back in one instant.
func (b *backoff) next(err error, lived time.Duration, alone bool, random float64) time.Duration {
	if lived >= healthyAfter {
		b.failures = 0
	}
	most := backoffMax
	var refused *RefusedError
	if errors.As(err, &refused) {
		switch {
		case refused.RetryAfter < 0:
			return refusedPause + time.Duration(random*float64(refusedPause)/10)
		case refused.RetryAfter > 0:
			return refused.RetryAfter + time.Duration(random*float64(refused.RetryAfter)/10)
		}
	} else if alone {
		most = aloneMax
	}
	ceiling := most
	if b.failures < 10 {
		ceiling = min(backoffMin<<b.failures, most)
	}
	b.failures++
	return time.Duration(random * float64(ceiling))
}
