package domain

import (
	"fmt"
	"slices"
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

// Sends are the sends of an execution, which follow from its fence, its attempts and
// its delays.
type Sends struct{ e *Execution }

// Sends returns the sends so far.
func (e *Execution) Sends() Sends { return Sends{e} }

// Failed is how many sends have led to nothing so far, those to full
// instances left out. Each send takes a fence, and each that was granted is an
// attempt.
func (s Sends) Failed() int {
	if s.e.Stage != StageNone {
		return 0 // it is sent to nobody; its parts are
	}
	n := int(s.e.Fence) - s.e.Attempt
	if s.e.State == Offered {
		n-- // it may still be answered
	}
	for i := range s.e.Delays {
		n -= s.e.Delays[i].Busy
	}
	return max(n, 0)
}

// ToFull notes of the send that was just refused that its instance had no room.
func (s Sends) ToFull() {
	if n := len(s.e.Delays); n > 0 {
		s.e.Delays = append(s.e.Delays[:0:0], s.e.Delays...) // copies share it
		s.e.Delays[n-1].Busy++
	}
}

// Spent reports whether a due execution must not be sent again.
func (s Sends) Spent(r SendRetry) bool {
	return r.MaxSends > 0 && (s.e.State == Due || s.e.State == RetryWait) && s.Failed() >= r.MaxSends
}

// Wait is the pause after the current send, which led to nothing: the job's
// own, or otherwise.
func (s Sends) Wait(r SendRetry, otherwise time.Duration) time.Duration {
	if r.Delay <= 0 {
		return otherwise
	}
	n := s.Failed()
	if s.e.State == Offered || s.e.State == Running {
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
	if n := e.Sends().Failed(); n != 1 {
		sent = fmt.Sprintf("%d times", n)
	}
	return e.end(now, Failed, ReasonSendFailed, "it was sent "+sent+", and no instance took it"), nil
}

// TriedOn reports whether a send of the current attempt to the instance has led
// to nothing.
func (s Sends) TriedOn(instance InstanceID) bool {
	return instance != 0 && slices.ContainsFunc(s.e.Delays, func(d Delay) bool { return d.Instance == instance && s.current(d) })
}

// Tried reports whether any send of the current attempt has led to nothing.
func (s Sends) Tried() bool {
	return slices.ContainsFunc(s.e.Delays, func(d Delay) bool { return d.Instance != 0 && s.current(d) })
}

// current reports whether a delay is one of the current attempt.
func (s Sends) current(d Delay) bool { return s.e.Attempt == 0 || !d.LastAt.Before(s.e.FinishedAt) }
