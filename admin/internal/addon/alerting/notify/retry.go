package notify

import (
	"math/rand/v2"
	"time"
)

// waits are the pauses after the first, second, … failed telling: close
// together while a restart may explain the failure, further apart later. Twelve
// tellings within 24 hours.
var waits = [...]time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 7 * time.Hour, 9 * time.Hour,
}

const (
	// giveUpAfter is the age at which a delivery is given up instead of being
	// put off again. The sum of waits is 23 h 45 min; jitter adds up to 10 %.
	giveUpAfter = 25 * time.Hour
	// maxRetryAfter bounds the receiver's wish.
	maxRetryAfter = time.Hour
)

// retryWait returns the wait before the next telling, or ok=false when this
// was the last one. tries counts the tellings so far, age is the time since
// the delivery was written, wish is the receiver's (0 = none), spread is a
// random number in [0, 1).
//
// Age decides and not the count, because a delivery that was put off without
// being tried counts as taken, too.
func retryWait(tries int, age, wish time.Duration, spread float64) (wait time.Duration, ok bool) {
	base := waits[min(max(tries, 1), len(waits))-1]
	if age+base > giveUpAfter {
		return 0, false
	}
	// ±10 %, so that what failed together does not come back together.
	wait = time.Duration(float64(base) * (0.9 + 0.2*spread))
	return max(wait, min(wish, maxRetryAfter)), true
}

// fullLaneWait is how long a delivery is put off whose lane is full. drain is
// the time that the lane needs for what it knows of; the wait is longer, at
// random, so that what was put off together returns in small portions.
func fullLaneWait(drain time.Duration) time.Duration {
	drain = min(max(drain, time.Second), 2*time.Minute)
	return drain + rand.N(3*drain)
}
