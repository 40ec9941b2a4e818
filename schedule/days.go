package schedule

import (
	"math/bits"
	"time"
)

// dayMode says how day of month and day of week work together.
type dayMode uint8

const (
	dayBoth    dayMode = iota // unix, at least one begins with *: both must match
	dayEither                 // unix, both restricted: one of them is enough
	dayOfMonth                // quartz, ? in day of week
	dayOfWeek                 // quartz, ? in day of month
)

// days answers which days of a month match. It is the one place that knows
// the meaning of L, W and #.
type days struct {
	mode dayMode
	dom  uint32 // bits 1-31
	dow  uint32 // bits 0-6, 0 = Sunday

	last    bool // day of month: L, L-offset
	offset  int  // days before the last one
	nearest bool // day of month: W, the nearest Monday-Friday of the same month
	nth     int  // day of week: #nth of the month, 0 = none
	lastDow bool // day of week: 6L

	january bool // the months include January; see overrun
}

// newDays turns the two day fields into a rule.
func newDays(dialect Dialect, f *fieldSet) days {
	d := days{
		mode: dayEither,
		dom:  domBits(f),
		dow:  dowBits(f),
	}
	dom, dow := f.items[FieldDayOfMonth], f.items[FieldDayOfWeek]
	switch {
	case dow[0].kind == itemAny:
		d.mode = dayOfMonth
	case dom[0].kind == itemAny:
		d.mode = dayOfWeek
	case f.star[FieldDayOfMonth] || f.star[FieldDayOfWeek]:
		// crontab(5): a field that starts with * does not count as restricted.
		d.mode = dayBoth
	}
	for _, it := range dom {
		switch it.kind {
		case itemLast:
			d.last, d.offset = true, it.lo
		case itemNearest:
			d.nearest = true
			if it.last {
				d.last, d.offset = true, it.lo
			}
		}
	}
	if d.nearest && !d.last {
		d.dom &= -d.dom // Quartz: W counts for the first day of the list only, and the others are lost
	}
	for _, it := range dow {
		switch it.kind {
		case itemNth:
			d.nth = it.nth
			d.dow &= -d.dow // likewise for #
		case itemLastDow:
			d.lastDow = true
		}
	}
	return d
}

// domBits collects the plain days of the month.
func domBits(f *fieldSet) uint32 {
	var set uint32
	for _, it := range f.items[FieldDayOfMonth] {
		if it.kind == itemAny || it.kind == itemLast || it.last {
			continue
		}
		it.expand(f.rule[FieldDayOfMonth], func(v int) { set |= 1 << v })
	}
	return set
}

// dowBits collects the days of the week.
func dowBits(f *fieldSet) uint32 {
	var set uint32
	for _, it := range f.items[FieldDayOfWeek] {
		if it.kind != itemAny {
			it.expand(f.rule[FieldDayOfWeek], func(v int) { set |= 1 << v })
		}
	}
	return set
}

// mask returns the matching days of one month as bits 1-31.
func (d *days) mask(year int, month time.Month) uint32 {
	n := daysIn(year, month)
	first := int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday())
	switch d.mode {
	case dayOfMonth:
		if d.nearest {
			return d.nearestMask(n, first, month)
		}
		return d.monthMask(n)
	case dayOfWeek:
		return d.weekMask(n, first)
	case dayBoth:
		return d.monthMask(n) & d.weekMask(n, first)
	}
	return d.monthMask(n) | d.weekMask(n, first)
}

// monthMask is the day-of-month part, without W, for a month of n days.
func (d *days) monthMask(n int) uint32 {
	if !d.last {
		return d.dom & (1<<(n+1) - 2)
	}
	if day := n - d.offset; day >= 1 {
		return 1 << day
	}
	return 0
}

// nearestMask is the day-of-month part with W, for a month of n days that
// begins on weekday first.
func (d *days) nearestMask(n, first int, month time.Month) uint32 {
	day := n - d.offset
	if !d.last {
		day = bits.TrailingZeros32(d.dom)
	}
	if day < 1 || day > n && !d.overrun(day, n, month) {
		return 0 // the month has no such day
	}
	if day = nearestWeekday(day, n, first); day > n {
		return 0
	}
	return 1 << day
}

// overrun says whether the day after the month's last one (31W in April) is
// looked at as the first of the next month: when that is a Saturday, the
// month's last day, a Friday, is the nearest weekday.
//
// Quartz 2.3.2 does this, against its own documentation, and jobs that come
// from it shall fire as before. In February, for 29W or 30W, its answer depends
// on the instant the search starts from: a search that comes from January
// misses the day. One schedule must have one answer here; this is the one of a
// chain of fires.
func (d *days) overrun(day, n int, month time.Month) bool {
	return day == n+1 && (month != time.February || !d.january)
}

// nearestWeekday moves a Saturday to the Friday before it and a Sunday to the
// Monday after it, unless that leaves the month; then it goes the other way.
func nearestWeekday(day, n, first int) int {
	switch time.Weekday((first + day - 1) % 7) {
	case time.Saturday:
		if day == 1 {
			return 3
		}
		return day - 1
	case time.Sunday:
		if day == n {
			return day - 2
		}
		return day + 1
	}
	return day
}

// weekMask is the day-of-week part.
func (d *days) weekMask(n, first int) uint32 {
	// week has bit i set when the weekday of day i+1 is in the set.
	week := (d.dow>>first | d.dow<<(7-first)) & 0x7f
	all := uint32(1)<<(n+1) - 2
	switch {
	case d.nth > 0:
		day := bits.TrailingZeros32(week) + 1 + 7*(d.nth-1)
		return 1 << day & all
	case d.lastDow:
		day := bits.TrailingZeros32(week) + 1
		return 1 << (day + (n-day)/7*7)
	}
	return (week | week<<7 | week<<14 | week<<21 | week<<28) << 1 & all
}

// daysIn returns the length of a month.
func daysIn(year int, month time.Month) int {
	switch month {
	case time.April, time.June, time.September, time.November:
		return 30
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
