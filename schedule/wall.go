package schedule

import (
	"math/bits"
	"time"
)

// lastYear bounds every search for years: later times have no RFC 3339 form.
const lastYear = 9999

// cycleYears is the period of the Gregorian calendar: after 400 years dates
// fall on the same weekdays. A rule that misses them all never fires.
const cycleYears = 400

// Wall seconds count a zone's wall clock as if it were UTC: the wall time
// 1970-01-01 00:00:00 is 0. They know no gaps and no overlaps; zone.go maps
// them to instants.

// nextWall returns the first matching wall second that is not before from.
// The work is bounded: it steps by month, and by at most 400 years.
func (c *Cron) nextWall(from int64) (int64, bool) {
	t := time.Unix(from, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()

	// Today counts only with a time of day that is still to come.
	if c.month>>month&1 == 1 && c.yearMatches(year) {
		mask := c.days.mask(year, month)
		if mask>>day&1 == 1 {
			if h, m, s, ok := c.nextClock(hour, minute, second); ok {
				return wall(year, month, day, h, m, s), true
			}
		}
		if rest := mask >> (day + 1) << (day + 1); rest != 0 {
			return c.startOf(year, month, bits.TrailingZeros32(rest)), true
		}
	}
	return c.laterMonth(year, int(month)+1)
}

// yearMatches reports whether the year field allows the year.
func (c *Cron) yearMatches(year int) bool {
	y, ok := c.years.from(year)
	return ok && y == year
}

// laterMonth finds the first matching day in month (13 = next January) or later.
func (c *Cron) laterMonth(year, month int) (int64, bool) {
	end := year + cycleYears
	for {
		y, ok := c.years.from(year)
		if !ok || y > end {
			return 0, false
		}
		if y != year {
			year, month = y, 1
		}
		for rest := uint32(c.month) >> month << month; rest != 0; rest &= rest - 1 {
			m := time.Month(bits.TrailingZeros32(rest))
			if mask := c.days.mask(year, m); mask != 0 {
				return c.startOf(year, m, bits.TrailingZeros32(mask)), true
			}
		}
		year, month = year+1, 1
	}
}

// startOf is the first matching time of a day.
func (c *Cron) startOf(year int, month time.Month, day int) int64 {
	return wall(year, month, day,
		bits.TrailingZeros32(c.hour), bits.TrailingZeros64(c.minute), bits.TrailingZeros64(c.second))
}

// nextClock finds the first matching time of day that is not before h:m:s.
func (c *Cron) nextClock(h, m, s int) (hour, minute, second int, ok bool) {
	firstMinute, firstSecond := bits.TrailingZeros64(c.minute), bits.TrailingZeros64(c.second)
	if c.hour>>h&1 == 1 {
		if c.minute>>m&1 == 1 {
			if rest := c.second >> s << s; rest != 0 {
				return h, m, bits.TrailingZeros64(rest), true
			}
		}
		if rest := c.minute >> (m + 1) << (m + 1); rest != 0 {
			return h, bits.TrailingZeros64(rest), firstSecond, true
		}
	}
	if rest := c.hour >> (h + 1) << (h + 1); rest != 0 {
		return bits.TrailingZeros32(rest), firstMinute, firstSecond, true
	}
	return 0, 0, 0, false
}

// wall composes wall seconds.
func wall(year int, month time.Month, day, h, m, s int) int64 {
	return time.Date(year, month, day, h, m, s, 0, time.UTC).Unix()
}
