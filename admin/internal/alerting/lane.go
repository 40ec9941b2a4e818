package alerting

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// laneSends is how many tellings may be under way to one place.
	laneSends = 4
	// laneQueue is how many claimed deliveries may wait in memory for them.
	// With the slowest channel (30 s) the last one starts 120 s after its
	// claim, well within claimHold.
	laneQueue = 16
	// closeAfter is how many tellings in a row must go unanswered before a
	// lane closes, closedFor how long it stays closed. Then one telling at a
	// time tests it, and the first answer opens it.
	closeAfter = 3
	closedFor  = 30 * time.Second
)

// job is one claimed delivery on its way.
type job struct {
	due       store.DueDelivery
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
	misses    int // tellings in a row that nobody answered
	closedAt  time.Time
	lastError string
}

// closed reports whether the lane's receiver is known to be silent.
func (l *lane) closed(now time.Time) bool {
	return l.misses >= closeAfter && now.Before(l.closedAt.Add(closedFor))
}

func (l *lane) full() bool { return len(l.queue) >= laneQueue }
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
func (l *lane) ended(err error, now time.Time) {
	l.sending--
	if err == nil || !sendErrorOf(err).Unreachable {
		l.misses = 0
		return
	}
	l.misses++
	if l.misses >= closeAfter {
		l.closedAt, l.lastError = now, err.Error()
	}
}
