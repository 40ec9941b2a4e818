package runner

import "time"

// Elapsed is the time from one instant to a later one, by the wall clock or
// by the monotonic clock, whichever says more. The monotonic clock stands
// still while the machine is suspended (golang/go#24595), the wall clock can
// be set back; for the questions asked here too long is the safe side.
func Elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
