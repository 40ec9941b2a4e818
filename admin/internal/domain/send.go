package domain

import (
	"fmt"
	"time"
)

// A send leads to nothing when the instance refuses the offer, does not answer
// in time, or its connection breaks before it has. The next one goes to another
// instance, where there is one, and costs no attempt: nothing has started. An
// instance that is full has been reached, and will have room: what it refuses for
// that is no failure, and only costs the time until the next send.

// SendRetry bounds the sends of a run, over all its attempts.
type SendRetry struct {
	// MaxSends is how many sends may lead to nothing; 0 = as many as fit into
	// the dispatch timeout.
	MaxSends int
	// Delay is the pause before the next send; 0 = as long as the answer
	// suggests, which is nothing for an instance that is gone, and 0.1 s to 2 s
	// after a refusal.
	Delay time.Duration
	// Backoff multiplies the delay after each send; below 1 counts as 1.
	Backoff  float64
	MaxDelay time.Duration // 0 = DefaultMaxSendDelay
}

// Bounds of SendRetry.
const (
	MaxSendsLimit       = 1000
	DefaultMaxSendDelay = time.Minute
)

// FailedSends is how many sends have led to nothing so far, those to full
// instances left out. Each send takes a fence, and each that was granted is an
// attempt.
func (e *Execution) FailedSends() int {
	if e.Stage != StageNone {
		return 0 // it is sent to nobody; its parts are
	}
	n := int(e.Fence) - e.Attempt
	if e.State == Offered {
		n-- // it may still be answered
	}
	for i := range e.Delays {
		n -= e.Delays[i].Busy
	}
	return max(n, 0)
}

// SentToFull notes of the send that was just refused that its instance had no room.
func (e *Execution) SentToFull() {
	if n := len(e.Delays); n > 0 {
		e.Delays = append(e.Delays[:0:0], e.Delays...) // copies share it
		e.Delays[n-1].Busy++
	}
}

// SendsSpent reports whether a due execution must not be sent again.
func (e *Execution) SendsSpent(r SendRetry) bool {
	return r.MaxSends > 0 && (e.State == Due || e.State == RetryWait) && e.FailedSends() >= r.MaxSends
}

// SendWait is the pause after the current send, which led to nothing: the job's
// own, or otherwise.
func (e *Execution) SendWait(r SendRetry, otherwise time.Duration) time.Duration {
	if r.Delay <= 0 {
		return otherwise
	}
	n := e.FailedSends()
	if e.State == Offered || e.State == Running {
		n++ // this one
	}
	pause := Retry{Delay: r.Delay, Backoff: r.Backoff, MaxDelay: r.MaxDelay}
	if pause.MaxDelay <= 0 {
		pause.MaxDelay = DefaultMaxSendDelay
	}
	return pause.DelayAfter(n)
}

// SendFailed ends a due execution whose sends are spent (arrow 2): failed, also
// when none of its attempts has begun, so that its owner is told.
func (e *Execution) SendFailed(now time.Time) (Effects, error) {
	if e.State != Due && e.State != RetryWait {
		return Effects{}, e.illegal("give up sending it")
	}
	sent := "once"
	if n := e.FailedSends(); n != 1 {
		sent = fmt.Sprintf("%d times", n)
	}
	return e.end(now, Failed, ReasonSendFailed, "it was sent "+sent+", and no instance took it"), nil
}

// TriedOn reports whether a send of the current attempt to the instance has led
// to nothing.
func (e *Execution) TriedOn(instance InstanceID) bool {
	for i := range e.Delays {
		if d := &e.Delays[i]; d.Instance == instance && instance != 0 && (e.Attempt == 0 || !d.LastAt.Before(e.FinishedAt)) {
			return true
		}
	}
	return false
}

// Tried reports whether any send of the current attempt has led to nothing.
func (e *Execution) Tried() bool {
	for i := range e.Delays {
		if d := &e.Delays[i]; d.Instance != 0 && (e.Attempt == 0 || !d.LastAt.Before(e.FinishedAt)) {
			return true
		}
	}
	return false
}
