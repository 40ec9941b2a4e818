package schedule

import "time"

// The intervals that a schedule may have. Shorter ones than MinEvery belong in
// a loop inside the handler: each fire is a row in the database.
const (
	MinEvery = 100 * time.Millisecond
	MaxEvery = 10 * 366 * 24 * time.Hour
)

// rate is a fixed rate: anchor, anchor+every, anchor+2·every, … by elapsed
// time, whatever clocks show. All in milliseconds, Unix for the anchor.
type rate struct {
	anchor int64
	every  int64
}

// next returns the first fire strictly after t; the anchor itself is the first.
func (r rate) next(t time.Time) (time.Time, bool) {
	after, ok := afterMilli(t)
	if !ok {
		return time.Time{}, false
	}
	if after < r.anchor {
		return inRange(r.anchor)
	}
	return inRange(r.anchor + ((after-r.anchor)/r.every+1)*r.every)
}

// afterMilli turns the argument of a Next into Unix milliseconds: -1 for
// anything before 1970, and false past the last year. Fires are whole
// milliseconds, so "after t" is the same as "after t cut to milliseconds".
func afterMilli(t time.Time) (int64, bool) {
	s := t.Unix() // never overflows, unlike UnixMilli
	if s < 0 {
		return -1, true
	}
	if s > lastInstant/1000 {
		return 0, false
	}
	return t.UnixMilli(), true
}

// inRange refuses instants past the last year.
func inRange(ms int64) (time.Time, bool) {
	if ms > lastInstant {
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}

// lastInstant is the last millisecond of the last year, in UTC.
var lastInstant = time.Date(lastYear, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
