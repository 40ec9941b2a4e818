package schedule

import (
	"math/bits"
	"time"
)

// All in milliseconds.
const (
	minuteMilli = int64(60_000)
	hourMilli   = 60 * minuteMilli
	dayMilli    = 24 * hourMilli
)

// CountRuns counts the fires with from ≤ fire < to that no calendar excludes. It counts rates,
// instants and daily windows by arithmetic. Hours of a cron expression are counted as a whole
// if no clock changes near them. Each fire or hour that it computes takes one of steps. It
// returns false if there are not enough of them. A fixed delay has no fires: it goes by its runs.
func (s *Schedule) CountRuns(from, to time.Time, steps *int) (n int64, ok bool) {
	if s.rule == nil || s.AwaitsFinish() {
		return 0, true
	}
	low, high := max(ceilMilli(from), s.start, 0), min(ceilMilli(to), s.end+1)
	for low < high {
		at := time.UnixMilli(low)
		until := min(high, s.calendarChange(at))
		if _, excluded := s.Excluded(at); !excluded {
			some, ok := s.count(low, until, steps)
			if !ok {
				return 0, false
			}
			n += some
		}
		low = until
	}
	return n, true
}

// ceilMilli is the first whole millisecond that is not before t.
func ceilMilli(t time.Time) int64 {
	ms, ok := afterMilli(t)
	switch {
	case !ok:
		return lastInstant + 1
	case ms >= 0 && t.Nanosecond()%int(time.Millisecond) != 0:
		return ms + 1
	}
	return ms
}

// calendarChange is the first millisecond after an instant at which a calendar may begin or
// cease to exclude fires.
func (s *Schedule) calendarChange(at time.Time) int64 {
	next := lastInstant + 1
	for _, c := range s.calendars {
		for _, b := range c.blackouts {
			for _, edge := range []time.Time{b.From, b.To} {
				if edge.After(at) {
					next = min(next, ceilMilli(edge))
				}
			}
			if b.From.After(at) {
				break // they are sorted
			}
		}
		if s.days == DaysAll {
			continue
		}
		loc := s.loc
		if c.loc != nil {
			loc = c.loc
		}
		year, month, day := at.In(loc).Date()
		_, end := dayBounds(at, year, month, day, loc)
		next = min(next, ceilMilli(end))
	}
	return next
}

// count is CountRuns between two milliseconds within the validity, without calendars.
func (s *Schedule) count(low, high int64, steps *int) (int64, bool) {
	switch r := s.rule.(type) {
	case rate:
		return r.count(low, high), true
	case instants:
		return r.count(low, high), true
	case window:
		if n, ok := r.count(low, high); ok {
			return n, true
		}
	case cronRule:
		return r.count(low, high, steps)
	}
	return countEach(s.rule, low, high, steps)
}

func (r rate) count(low, high int64) int64 {
	before := func(t int64) int64 { // fires before t
		if t <= r.anchor {
			return 0
		}
		return (t-r.anchor-1)/r.every + 1
	}
	return before(high) - before(low)
}

func (list instants) count(low, high int64) (n int64) {
	for _, at := range list {
		if low <= at && at < high {
			n++
		}
	}
	return n
}

// countEach counts the fires one by one.
func countEach(r rule, low, high int64, steps *int) (n int64, ok bool) {
	for ; ; n++ {
		if *steps--; *steps < 0 {
			return 0, false
		}
		at, found := r.next(time.UnixMilli(low - 1))
		if !found || at.UnixMilli() >= high {
			return n, true
		}
		low = at.UnixMilli() + 1
	}
}

// count goes by arithmetic. It returns false if a clock changes near the interval.
func (w window) count(low, high int64) (n int64, ok bool) {
	p := periodAt(low/1000, w.loc)
	if p.start*1000 > low-3*dayMilli || p.hasEnd && p.end*1000 < high+3*dayMilli {
		return 0, false
	}
	day := floor(low+p.offset*1000, dayMilli) - 2*dayMilli
	for ; day-p.offset*1000 < high; day += dayMilli {
		open, last := day+(w.from-p.offset)*1000, day+(w.to-p.offset)*1000
		if last-open == dayMilli && dayMilli%w.every == 0 {
			last-- // the window of the next day opens with this fire
		}
		n += rate{open, w.every}.count(max(low, open), max(low, open, min(high, last+1)))
	}
	return n, true
}

// count takes an hour or a minute as a whole if no clock changes near it: it fires in all
// minutes and seconds of the expression, or not at all.
func (r cronRule) count(low, high int64, steps *int) (n int64, ok bool) {
	seconds := int64(bits.OnesCount64(r.cron.second))
	hour := seconds * int64(bits.OnesCount64(r.cron.minute))
	for low < high {
		if *steps--; *steps < 0 {
			return 0, false
		}
		at, found := r.next(time.UnixMilli(low - 1))
		if !found || at.UnixMilli() >= high {
			return n, true
		}
		fire := at.UnixMilli()
		inHour, inMinute := floor(fire, hourMilli), floor(fire, minuteMilli)
		switch quiet := r.quiet(inHour); {
		case quiet && low <= inHour && inHour+hourMilli <= high:
			n, low = n+hour, inHour+hourMilli
		case quiet && low <= inMinute && inMinute+minuteMilli <= high:
			n, low = n+seconds, inMinute+minuteMilli
		default:
			n, low = n+1, fire+1
		}
	}
	return n, true
}

// quiet tells whether an hour of UTC is one of the zone, and no clock changes within three
// hours of it.
func (r cronRule) quiet(hour int64) bool {
	p := periodAt(hour/1000, r.loc)
	return p.offset%3600 == 0 && p.start*1000 <= hour-3*hourMilli && (!p.hasEnd || p.end*1000 >= hour+4*hourMilli)
}

// floor is the last multiple of unit that is not after t. Neither is negative but for zones
// west of Greenwich in 1970.
func floor(t, unit int64) int64 { return t - (t%unit+unit)%unit }
