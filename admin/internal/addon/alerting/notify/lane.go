package notify

import (
	"time"
)

const (
	// laneSends is how many tellings may be under way to one place.
	laneSends = 4
	// laneQueue is how many claimed deliveries may wait in memory for them, or
	// more if they will be gone within laneDrain: a fast receiver gets a burst
	// at once, a slow one does not keep the others' places. Those whose claim
	// is nearly over when their turn comes are dropped, and come again by a
	// later claim.
	laneQueue = 64
	laneDrain = 2 * time.Second
	// unknownDrain stands for the time that a receiver needs which has not
	// answered yet: it may be one that hangs.
	unknownDrain = 5 * time.Second
	// laneMemory is the weight of the last telling in a lane's average.
	laneMemory = 0.2
	// closeAfter is how many tellings in a row must go unanswered before a
	// lane closes, closedFor how long it stays closed. Then one telling at a
	// time tests it, and the first answer opens it.
	closeAfter = 3
	closedFor  = 30 * time.Second
)

// job is one claimed delivery on its way.
type job struct {
	due       DueDelivery
	notice    *Notice
	sender    Sender
	lane      *lane
	claimedAt time.Time
}

// lane is everything that goes to one place. Owned by Run's goroutine.
type lane struct {
	name      string
	sending   int
	queue     []job
	average   time.Duration // of the tellings' durations, the last ones weighing most
	proven    bool          // it has answered
	deferred  int           // put off since the queue was last half empty
	misses    int           // tellings in a row that nobody answered
	closedAt  time.Time
	lastError string
}

// closed reports whether the lane's receiver is known to be silent.
func (l *lane) closed(now time.Time) bool {
	return l.misses >= closeAfter && now.Before(l.closedAt.Add(closedFor))
}

func (l *lane) full() bool { return len(l.queue) >= laneQueue && l.drain() > laneDrain }

func (l *lane) add(j job) {
	if len(l.queue) < laneQueue/2 {
		l.deferred = 0
	}
	l.queue = append(l.queue, j)
}

// drain is about how long it takes until all that is known of is told.
func (l *lane) drain() time.Duration {
	if !l.proven {
		return unknownDrain
	}
	return l.average * time.Duration(len(l.queue)+l.sending+l.deferred) / laneSends
}

func (l *lane) idle() bool { return l.sending == 0 && len(l.queue) == 0 }

// next takes the delivery that may be sent now, if there is one.
func (l *lane) next(now time.Time) (job, bool) {
	limit := laneSends
	if l.misses >= closeAfter {
		limit = 1 // a test
	}
	if len(l.queue) == 0 || l.sending >= limit || l.closed(now) {
		return job{}, false
	}
	j := l.queue[0]
	l.queue = l.queue[1:]
	l.sending++
	return j, true
}

// ended notes the end of a telling.
func (l *lane) ended(err error, took time.Duration, now time.Time) {
	l.sending--
	l.average += time.Duration(laneMemory * float64(took-l.average))
	if err == nil || !sendErrorOf(err).Unreachable {
		l.misses, l.proven = 0, true
		return
	}
	l.misses++
	if l.misses >= closeAfter {
		l.closedAt, l.lastError = now, err.Error()
	}
}
