package executortest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is an expression of 5 fields, or 6 with seconds first: bit n of a field
// says that n fits.
type cron struct {
	second, minute, hour, day, month, weekday uint64
	// Of day and weekday one is enough when neither is a star.
	anyDay, anyWeekday bool
}

var (
	monthNames   = strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	weekdayNames = strings.Fields("SUN MON TUE WED THU FRI SAT")
)

// parseCron reads what most expressions are made of: stars, numbers, names,
// ranges, steps and lists.
func parseCron(expr string) (cron, error) {
	fields := strings.Fields(expr)
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) != 6 {
		return cron{}, fmt.Errorf("has %d fields, only 5 and 6 are known here", len(fields))
	}
	var c cron
	for i, f := range []struct {
		into      *uint64
		low, high int
		names     []string
	}{
		{&c.second, 0, 59, nil}, {&c.minute, 0, 59, nil}, {&c.hour, 0, 23, nil},
		{&c.day, 1, 31, nil}, {&c.month, 1, 12, monthNames}, {&c.weekday, 0, 7, weekdayNames},
	} {
		var err error
		if *f.into, err = parseField(fields[i], f.low, f.high, f.names); err != nil {
			return cron{}, fmt.Errorf("field %q: %w", fields[i], err)
		}
	}
	c.weekday |= c.weekday >> 7 & 1 // 7 is Sunday too
	c.anyDay, c.anyWeekday = isStar(fields[3]), isStar(fields[5])
	return c, nil
}

func isStar(field string) bool { return strings.HasPrefix(field, "*") || field == "?" }

func parseField(text string, low, high int, names []string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		from, to, step := low, high, 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return 0, fmt.Errorf("%q is no step", stepText)
			}
		}
		if span != "*" && span != "?" {
			first, last, isRange := strings.Cut(span, "-")
			if from, err = value(first, low, high, names); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = value(last, low, high, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from > to {
			return 0, fmt.Errorf("%q ends before it begins", span)
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

func value(text string, low, high int, names []string) (int, error) {
	for i, name := range names {
		if strings.EqualFold(name, text) {
			return i + low, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q is no number from %d to %d", text, low, high)
	}
	return n, nil
}

// farthest is how many days are searched: some leap days lie eight years apart.
const farthest = 9 * 366

// next is the first fire after t, in its zone; zero when there is none. A time
// that the clock jumps over is where Go's time.Date puts it.
func (c cron) next(t time.Time) time.Time {
	for n := range farthest {
		day := time.Date(t.Year(), t.Month(), t.Day()+n, 0, 0, 0, 0, t.Location())
		if !c.fits(day) {
			continue
		}
		for seconds := range 24 * 60 * 60 {
			h, m, s := seconds/3600, seconds/60%60, seconds%60
			if c.hour>>h&1 == 0 || c.minute>>m&1 == 0 || c.second>>s&1 == 0 {
				continue
			}
			if at := time.Date(day.Year(), day.Month(), day.Day(), h, m, s, 0, t.Location()); at.After(t) {
				return at
			}
		}
	}
	return time.Time{}
}

func (c cron) fits(day time.Time) bool {
	date, weekday := c.day>>day.Day()&1 == 1, c.weekday>>int(day.Weekday())&1 == 1
	if c.month>>int(day.Month())&1 == 0 {
		return false
	}
	if c.anyDay || c.anyWeekday {
		return date && weekday
	}
	return date || weekday
}
