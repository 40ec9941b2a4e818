package executortest

import "time"

// clockRule is what a job says about changes of the clock; see
// executor.ClockChanges.
type clockRule struct{ skipGap, both bool }

// next is the first fire after t in a zone; zero when there is none. It goes from
// one change of the zone's offset to the next.
func (c cron) next(t time.Time, zone *time.Location, rule clockRule) time.Time {
	u := t.Truncate(time.Second).Add(time.Second)
	for range 300 { // changes in the years that nextWall looks at
		start, end := u.In(zone).ZoneBounds()
		if at := c.within(u, start, end, zone, rule); !at.IsZero() {
			return at
		}
		if end.IsZero() {
			return time.Time{}
		}
		u = end
	}
	return time.Time{}
}

// within is the first fire not before u in a stretch of constant offset.
func (c cron) within(u, start, end time.Time, zone *time.Location, rule clockRule) time.Time {
	offset := offsetAt(u, zone)
	from := u.Add(offset).UTC() // what the wall shows, written as UTC
	if !start.IsZero() {
		switch before := offsetAt(start.Add(-time.Second), zone); {
		case offset > before && u.Equal(start) && !c.hourly && !rule.skipGap:
			// The wall jumps over [start+before, start+offset): what it names there
			// is made up for now, once.
			w := c.nextWall(start.Add(before).UTC())
			if !w.IsZero() && w.Before(start.Add(offset).UTC()) {
				return start
			}
		case offset < before && !c.repeats && !rule.both:
			// What is shown for the second time does not count.
			if again := start.Add(before).UTC(); again.After(from) {
				from = again
			}
		}
	}
	w := c.nextWall(from)
	if w.IsZero() {
		return w
	}
	at := w.Add(-offset)
	if !end.IsZero() && !at.Before(end) {
		return time.Time{}
	}
	return at.In(zone)
}

func offsetAt(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
