package runner

import "time"

// lease is the right of a process to run what it has. Its node renews it.
type lease struct {
	ttl       time.Duration
	margin    time.Duration // Limits.LeaseMargin
	renewedAt time.Time     // when the heartbeat was sent that renewed it last
	fenced    bool          // it is lost, and everything was cancelled
	tickedAt  time.Time     // the last tick; long ago: this process stood still
}

// lasts is how long after its renewal the lease counts.
func (l *lease) lasts() time.Duration { return l.ttl - min(l.margin, l.ttl/2) }

// lapsed reports whether a lease that was renewed by a heartbeat sent at that
// time may be over.
func (l *lease) lapsed(since, now time.Time) bool { return Elapsed(since, now) >= l.lasts() }

// Elapsed is the time from one instant to a later one, by the wall clock or
// by the monotonic clock, whichever says more. The monotonic clock stands
// still while the machine is suspended (golang/go#24595), the wall clock can
// be set back; for the questions asked here too long is the safe side.
func Elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
