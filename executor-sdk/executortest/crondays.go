package executortest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dayRule says which days an expression means.
type dayRule struct {
	dates, weekdays uint64 // days of the month from 1, of the week from 0 = Sunday
	// anyDate and anyWeekday: the field does not count; either: one of the two is
	// enough.
	anyDate, anyWeekday, either bool

	last      bool // of the month, less before days: L, L-3
	before    int
	nearest   bool // the working day nearest to that, or to the one of dates: W
	nth       int  // weekday of the month: #; 0 = each
	lastOfDay bool // last such weekday of the month: 6L
	january   bool // the expression's months include January
}

// readDays reads the two fields for days.
func readDays(dates, weekdays string, quartz bool) (d dayRule, err error) {
	if quartz && (dates == "?") == (weekdays == "?") {
		return d, errors.New("quartz wants ? in one of the two fields for days")
	}
	if !quartz && (dates == "?" || weekdays == "?") {
		return d, errors.New("? belongs to the quartz dialect")
	}
	d.anyDate, d.anyWeekday = dates == "?", weekdays == "?"
	d.either = !quartz && dates[0] != '*' && weekdays[0] != '*'
	if !d.anyDate {
		if err = d.readDates(strings.ToUpper(dates), quartz); err != nil {
			return d, fmt.Errorf("field %q: %w", dates, err)
		}
	}
	if !d.anyWeekday {
		if err = d.readWeekdays(strings.ToUpper(weekdays), quartz); err != nil {
			return d, fmt.Errorf("field %q: %w", weekdays, err)
		}
	}
	return d, nil
}

func (d *dayRule) readDates(text string, quartz bool) error {
	if rest, ok := strings.CutPrefix(text, "L"); ok && quartz {
		d.last = true
		rest, d.nearest = strings.CutSuffix(rest, "W")
		if rest == "" {
			return nil
		}
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
		if err != nil || n < 0 || n > 30 || rest[0] != '-' {
			return errors.New("what follows L has no meaning: write L, LW, L-3 or L-3W")
		}
		d.before = n
		return nil
	}
	f := field{1, 31, nil, quartz}
	items, err := f.items(text)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.mark != "" && (it.mark != "W" || !quartz) {
			return fmt.Errorf("%s has no meaning here", it.mark)
		}
		d.nearest = it.mark == "W"
		d.dates |= it.bits(f)
	}
	return nil
}

func (d *dayRule) readWeekdays(text string, quartz bool) error {
	f := field{0, 7, weekdayNames, quartz} // 7 is Sunday too
	if quartz {
		f = field{1, 7, weekdayNames, quartz}
		if text == "L" {
			text = "7"
		}
	}
	items, err := f.items(text)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.mark != "" && (it.mark == "W" || !quartz) {
			return fmt.Errorf("%s has no meaning here", it.mark)
		}
		d.nth, d.lastOfDay = it.nth, it.mark == "L"
		switch {
		case quartz:
			d.weekdays |= it.bits(f) >> 1
		case it.from == 0 && it.to == 7 || it.from <= it.to:
			set := it.bits(f)
			d.weekdays |= set&0x7f | set>>7&1
		default: // over the end of the week, which has seven days
			it.from, it.to = it.from%7, it.to%7
			d.weekdays |= it.bits(field{0, 6, nil, false})
		}
	}
	return nil
}

// fits reports whether a date, written in UTC, is meant.
func (d dayRule) fits(day time.Time) bool {
	date, weekday := d.fitsDate(day), d.fitsWeekday(day)
	switch {
	case d.anyDate:
		return weekday
	case d.anyWeekday:
		return date
	case d.either:
		return date || weekday
	}
	return date && weekday
}

func (d dayRule) fitsDate(day time.Time) bool {
	y, m, date := day.Date()
	length := daysIn(y, m)
	switch {
	case d.nearest:
		for n := 1; n <= 31; n++ {
			if d.last && n == length-d.before || !d.last && d.dates>>n&1 == 1 {
				return date == d.nearestTo(n, length, m, day.AddDate(0, 0, n-date).Weekday())
			}
		}
		return false
	case d.last:
		return date == length-d.before
	}
	return d.dates>>date&1 == 1
}

// nearestTo is the working day nearest to day n, which is such a weekday, of a
// month; 0 when it has none. Of the day behind the end of the month Quartz finds
// the Friday before, should it be a Saturday, but for some in February.
func (d dayRule) nearestTo(n, length int, month time.Month, weekday time.Weekday) int {
	if n > length+1 || n == length+1 && (weekday != time.Saturday || month == time.February && d.january) {
		return 0
	}
	switch {
	case weekday == time.Saturday && n == 1:
		return 3
	case weekday == time.Saturday:
		return n - 1
	case weekday == time.Sunday && n == length:
		return n - 2
	case weekday == time.Sunday:
		return n + 1
	}
	return n
}

func (d dayRule) fitsWeekday(day time.Time) bool {
	y, m, date := day.Date()
	switch {
	case d.weekdays>>int(day.Weekday())&1 == 0:
		return false
	case d.nth > 0:
		return (date-1)/7+1 == d.nth
	case d.lastOfDay:
		return date+7 > daysIn(y, m)
	}
	return true
}

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}
