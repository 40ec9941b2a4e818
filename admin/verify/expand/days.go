package expand

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// unixDays follows crontab(5): two restricted fields are joined by "or", and
// one that begins with * does not restrict.
func unixDays(dom, dow string) (func(date) bool, error) {
	inMonth, err := readField(dom, kinds[3], false)
	if err != nil {
		return nil, err
	}
	inWeek, err := readField(dow, unixWeek, false)
	if err != nil {
		return nil, err
	}
	if dom[0] == '*' || dow[0] == '*' {
		return func(d date) bool { return inMonth.has(d.day) && inWeek.has(int(d.weekday)) }, nil
	}
	return func(d date) bool { return inMonth.has(d.day) || inWeek.has(int(d.weekday)) }, nil
}

// quartzDays reads the field that is not ?. january: the months hold January.
func quartzDays(dom, dow string, january bool) (func(date) bool, error) {
	switch {
	case dom == "?" && dow != "?":
		return quartzWeekdays(dow)
	case dow == "?" && dom != "?":
		return quartzMonthdays(dom, january)
	}
	return nil, fmt.Errorf("exactly one of %q and %q has to be ?", dom, dow)
}

// quartzWeekdays reads L, 6L, 6#3 and plain lists; 1 is Sunday.
func quartzWeekdays(text string) (func(date) bool, error) {
	if text == "L" {
		return func(d date) bool { return d.weekday == time.Saturday }, nil
	}
	if day, ok := strings.CutSuffix(text, "L"); ok {
		n, _, err := quartzWeek.number(day)
		return func(d date) bool { return int(d.weekday)+1 == n && d.day+7 > d.last }, err
	}
	if !strings.Contains(text, "#") {
		f, err := readField(text, quartzWeek, true)
		return func(d date) bool { return f.has(int(d.weekday) + 1) }, err
	}
	// Of a list with a #, only the lowest day counts.
	var nth int
	parts := strings.Split(text, ",")
	for i, part := range parts {
		day, count, ok := strings.Cut(part, "#")
		if !ok {
			continue
		}
		var err error
		if nth, err = strconv.Atoi(count); err != nil {
			return nil, fmt.Errorf("day of week %q: %w", text, err)
		}
		parts[i] = day
	}
	f, err := readField(strings.Join(parts, ","), quartzWeek, true)
	lowest := f.lowest()
	return func(d date) bool { return int(d.weekday)+1 == lowest && (d.day+6)/7 == nth }, err
}

// quartzMonthdays reads L, L-3, LW, L-3W, 15W and plain lists.
func quartzMonthdays(text string, january bool) (func(date) bool, error) {
	if strings.HasPrefix(text, "L") {
		rest, nearest := strings.CutSuffix(text[1:], "W")
		back := 0
		if rest != "" {
			var err error
			if back, err = strconv.Atoi(strings.TrimPrefix(rest, "-")); err != nil {
				return nil, fmt.Errorf("day of month %q: %w", text, err)
			}
		}
		if nearest {
			return func(d date) bool { return d.day == workday(d, d.last-back, january) }, nil
		}
		return func(d date) bool { return d.day == d.last-back }, nil
	}
	if !strings.Contains(text, "W") {
		f, err := readField(text, kinds[3], true)
		return func(d date) bool { return f.has(d.day) }, err
	}
	// Of a list with a W, only the lowest day counts.
	f, err := readField(strings.ReplaceAll(text, "W", ""), kinds[3], true)
	lowest := f.lowest()
	return func(d date) bool { return d.day == workday(d, lowest, january) }, err
}

// lowest is the first number of a set that is not empty.
func (f field) lowest() int {
	return f.lo + slices.Index(f.set, true)
}

// workday finds the day from Monday to Friday that is nearest to a day of d's
// month and lies in it; 0: none. The day after the month's last one is taken
// for a Saturday of the next month, whose Friday is in this one, because
// Quartz does; in February not when the rule has January too.
func workday(d date, day int, january bool) int {
	beyond := day == d.last+1 && (d.month != time.February || !january)
	if day < 1 || day > d.last && !beyond {
		return 0
	}
	free := []time.Weekday{time.Saturday, time.Sunday}
	for _, move := range []int{0, -1, 1, -2, 2} {
		t := time.Date(d.year, d.month, day+move, 0, 0, 0, 0, time.UTC)
		if slices.Contains(free, t.Weekday()) {
			continue
		}
		if beyond { // the nearest one of all, if it is in this month
			if t.Month() == d.month {
				return t.Day()
			}
			return 0
		}
		if t.Month() == d.month {
			return t.Day()
		}
	}
	return 0
}
