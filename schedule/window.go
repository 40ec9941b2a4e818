package schedule

import "time"

// window fires at from, from+every, … up to to, on each day of a zone. It goes
// by elapsed time: where clocks change inside the window, it has more or fewer
// fires, always every apart. It opens at the first instant whose wall time has
// reached from and closes at the last instant whose wall time is not past to:
// an opening in a gap is the gap's end, and a repeated hour is served twice.
type window struct {
	from, to int64 // wall seconds since midnight; to is past 86400 on the next day
	every    int64 // milliseconds
	loc      *time.Location
	gap      GapPolicy
}

func (w window) next(t time.Time) (time.Time, bool) {
	after, ok := afterMilli(t)
	if !ok {
		return time.Time{}, false
	}
	year, month, day := time.UnixMilli(after).In(w.loc).Date()
	midnight := wall(year, month, day, 0, 0, 0)
	// Two days back, because a window can reach into the next day and a zone
	// can repeat one. The days ahead only matter until a fire is found; that a
	// week has no window is impossible, a zone leaves out one day at most.
	best, found := int64(0), false
	for d := int64(-2); d <= 7 && (d <= 1 || !found); d++ {
		if f, ok := w.onDay(midnight+d*86400, after); ok && (!found || f < best) {
			best, found = f, true
		}
	}
	if !found {
		return time.Time{}, false
	}
	return inRange(best)
}

// onDay finds the first fire after an instant in the window of one day. All in
// milliseconds, but midnight, which is in wall seconds.
func (w window) onDay(midnight, after int64) (int64, bool) {
	open, last := w.opens(midnight+w.from), w.closes(midnight+w.to)
	if last < open { // the whole window lies in a gap: fixed times, as cron's
		return open, w.gap != GapSkip && open > after && open >= 0
	}
	f := open
	if after >= open {
		f = open + ((after-open)/w.every+1)*w.every
	}
	return f, f <= last && f >= 0
}

// opens is the first millisecond whose wall time is not before the given second.
func (w window) opens(at int64) int64 {
	p := periodAt(at-maxOffset, w.loc)
	for p.hasEnd && p.end+p.offset <= at {
		p = periodAt(p.end, w.loc)
	}
	return max(at-p.offset, p.start) * 1000
}

// closes is the last millisecond whose wall time is not past the given second.
func (w window) closes(at int64) int64 {
	var last int64
	for p := periodAt(at-maxOffset, w.loc); ; p = periodAt(p.end, w.loc) {
		if p.start+p.offset <= at {
			last = (at - p.offset) * 1000
			if p.hasEnd {
				last = min(last, p.end*1000-1)
			}
		}
		if !p.hasEnd || p.end > at+maxOffset {
			return last
		}
	}
}
