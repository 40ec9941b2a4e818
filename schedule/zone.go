package schedule

import "time"

// GapPolicy says what becomes of a fixed time that the clock jumps over.
type GapPolicy string

// What can be done with 02:30 on a night without 02:30.
const (
	// GapRunAtEnd fires once at the instant the gap ends (03:00), for all the
	// fixed times in the gap together. The default: a daily job runs daily.
	GapRunAtEnd GapPolicy = "run_at_gap_end"
	// GapSkip does not fire.
	GapSkip GapPolicy = "skip"
)

// OverlapPolicy says how often a fixed time fires that the clock passes twice.
type OverlapPolicy string

// What can be done with 01:30 on a night with two of them.
const (
	// OverlapOnce fires at the first of the two. The default.
	OverlapOnce OverlapPolicy = "once"
	// OverlapBoth fires at both.
	OverlapBoth OverlapPolicy = "both"
)

// DST is a schedule's policy for clock changes; doc.go has the exact rules.
// The zero value is the default: run at the end of a gap, once in an overlap.
type DST struct {
	Gap     GapPolicy     // "" means GapRunAtEnd
	Overlap OverlapPolicy // "" means OverlapOnce
}

// Valid reports whether both policies are known ones.
func (d DST) Valid() bool {
	return (d.Gap == "" || d.Gap == GapRunAtEnd || d.Gap == GapSkip) &&
		(d.Overlap == "" || d.Overlap == OverlapOnce || d.Overlap == OverlapBoth)
}

const (
	// maxOffset is more than any zone's distance from UTC, in seconds
	// (the widest in tzdata are 15:56 west and 15:13 east, local mean times).
	maxOffset = 16 * 3600
	// maxShift is more than any single change of a zone's offset, in seconds
	// (the widest moved a zone over the date line: 24 hours).
	maxShift = 26 * 3600
	// noStart is the start of a period that has none: before all times of ours.
	noStart = -1 << 40
)

// NextIn returns the first fire time strictly after the given instant in a
// zone, and false when there is none. Fire times are whole seconds in loc,
// between the years 1970 and 9999; an earlier after counts as 1970.
// "@every" counts from the Unix epoch, by elapsed time.
func (c *Cron) NextIn(after time.Time, loc *time.Location, dst DST) (time.Time, bool) {
	if c.every > 0 {
		next, ok := rate{every: c.every.Milliseconds()}.next(after)
		if !ok {
			return time.Time{}, false
		}
		return next.In(loc), true
	}
	ms, ok := afterMilli(after)
	if c.never || !ok {
		return time.Time{}, false
	}
	u, ok := c.nextUnix((ms+1000)/1000, loc, dst) // the next whole second; -1 ms gives second 0
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(u, 0).In(loc), true
}

// nextUnix returns the first fire at or after the instant u. It walks the
// zone's periods of constant offset, and jumps over those without a match.
func (c *Cron) nextUnix(u int64, loc *time.Location, dst DST) (int64, bool) {
	if loc == time.UTC {
		return c.nextWall(u)
	}
	for first := u; u < first+(cycleYears+1)*366*86400; {
		p := periodAt(u, loc)
		if f, ok := c.inPeriod(p, u, dst); ok {
			return f, true
		}
		if !p.hasEnd {
			return 0, false
		}
		// Every wall time shown from the next period on is after
		// end-maxOffset, and none is shown more than maxOffset before the
		// instant of the same number.
		w, ok := c.nextWall(p.end - maxOffset)
		if !ok {
			return 0, false
		}
		u = max(p.end, w-maxOffset)
	}
	return 0, false // only times which fall into a gap every year
}

// inPeriod finds the first fire at or after u within u's period.
func (c *Cron) inPeriod(p period, u int64, dst DST) (int64, bool) {
	from := u + p.offset
	if shift := p.offset - p.before; shift > 0 && u == p.start && !c.hourly && dst.Gap != GapSkip {
		// Wall times [start+before, start+offset) do not exist.
		if w, ok := c.nextWall(p.start + p.before); ok && w < p.start+p.offset {
			return p.start, true
		}
	} else if shift < 0 && !c.repeats && dst.Overlap != OverlapBoth {
		// Wall times [start+offset, start+before) are there a second time.
		from = max(from, p.start+p.before)
	}
	w, ok := c.nextWall(from)
	if !ok || p.hasEnd && w >= p.end+p.offset {
		return 0, false
	}
	return w - p.offset, true
}

// period is a stretch of time in which a zone keeps its distance from UTC.
// Instants are Unix seconds, offsets are seconds east of UTC.
type period struct {
	start, end int64
	hasEnd     bool
	offset     int64
	before     int64 // offset of the period before, or offset when start is far away
}

// periodAt finds the period of an instant.
func periodAt(u int64, loc *time.Location) period {
	t := time.Unix(u, 0).In(loc)
	start, end := t.ZoneBounds()
	_, offset := t.Zone()
	p := period{start: noStart, offset: int64(offset), before: int64(offset)}
	if !end.IsZero() {
		p.end, p.hasEnd = end.Unix(), true
		if p.end <= u {
			// Go 1.26 counts 365 days in every year past the zone's table
			// (mostly 2037), and gives the last day of a leap year bounds that
			// do not contain it. The offset is right; look again a day later.
			p.end = (u/86400 + 1) * 86400
		}
	}
	if !start.IsZero() {
		p.start = start.Unix()
		// Further than a shift from its start, a period's past is of no
		// account; the look-up is saved for the common case.
		if u-p.start < maxShift {
			_, before := time.Unix(p.start-1, 0).In(loc).Zone()
			p.before = int64(before)
		}
	}
	return p
}
