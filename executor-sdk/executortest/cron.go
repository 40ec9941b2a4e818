package executortest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is a cron expression as the admin reads it: in the standard, the seconds
// and the quartz dialect. Bit n of a field says that n fits.
type cron struct {
	second, minute, hour, month uint64
	years                       map[int]bool // nil = all
	day                         dayRule
	// hourly rules fire in every hour, and repeating ones in the same way through
	// each: they go by elapsed time where clocks change.
	hourly, repeats bool
}

var (
	monthNames   = strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	weekdayNames = strings.Fields("SUN MON TUE WED THU FRI SAT")
	descriptors  = map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	}
)

// The years that a quartz expression may name.
const firstYear, lastYear = 1970, 2099

// field is what may stand in one place of an expression.
type field struct {
	low, high int
	names     []string // of low, low+1, …
	quartz    bool
}

// item is one part of a field between commas.
type item struct {
	from, to, step int
	named, single  bool
	mark           string // what follows a single value: W, L or #
	nth            int    // behind #
}

// dialectOf is the dialect that auto stands for, by the expression's shape.
func dialectOf(fields []string) string {
	if len(fields) < 6 {
		return "standard"
	}
	days := strings.ToUpper(fields[5])
	for _, name := range weekdayNames {
		days = strings.ReplaceAll(days, name, " ")
	}
	text := strings.Join(fields, " ")
	if len(fields) > 6 || strings.ContainsAny(text, "?#") || strings.ContainsAny(fields[3], "LWlw") || strings.ContainsAny(days, "LW") {
		return "quartz"
	}
	return "seconds"
}

func parseCron(expr, dialect string) (cron, error) {
	fields := strings.Fields(expr)
	if len(fields) == 1 && dialect != "quartz" {
		if known := descriptors[strings.ToLower(fields[0])]; known != "" {
			fields, dialect = strings.Fields(known), "standard"
		}
	}
	if dialect == "" || dialect == "auto" {
		dialect = dialectOf(fields)
	}
	want := map[string][2]int{"standard": {5, 5}, "seconds": {6, 6}, "quartz": {6, 7}}[dialect]
	if n := len(fields); n < want[0] || n > want[1] {
		return cron{}, fmt.Errorf("has %d fields in the dialect %q", n, dialect)
	}
	if dialect == "standard" {
		fields = append([]string{"0"}, fields...)
	}
	return readCron(fields, dialect == "quartz")
}

func readCron(fields []string, quartz bool) (c cron, err error) {
	for i, f := range []struct {
		into *uint64
		field
	}{
		{&c.second, field{0, 59, nil, quartz}}, {&c.minute, field{0, 59, nil, quartz}},
		{&c.hour, field{0, 23, nil, quartz}}, {nil, field{}}, {&c.month, field{1, 12, monthNames, quartz}},
	} {
		if f.into == nil {
			continue // the days, below
		}
		items, err := f.items(fields[i])
		if err != nil {
			return cron{}, fmt.Errorf("field %q: %w", fields[i], err)
		}
		for _, it := range items {
			if it.mark != "" {
				return cron{}, fmt.Errorf("field %q: %s has no meaning here", fields[i], it.mark)
			}
			*f.into |= it.bits(f.field)
			if i == 1 {
				c.repeats = c.repeats || !it.single && it.from <= it.to && it.from-it.step < f.low && it.to+it.step > f.high
			}
		}
	}
	c.hourly = c.hour == 1<<24-1
	c.repeats = c.repeats || c.hourly
	if c.day, err = readDays(fields[3], fields[5], quartz); err != nil {
		return cron{}, err
	}
	c.day.january = c.month>>1&1 == 1
	if len(fields) == 7 && fields[6] != "*" {
		c.years, err = readYears(fields[6])
	}
	return c, err
}

func readYears(text string) (map[int]bool, error) {
	f := field{firstYear, lastYear, nil, true}
	items, err := f.items(text)
	if err != nil {
		return nil, fmt.Errorf("field %q: %w", text, err)
	}
	out := map[int]bool{}
	for _, it := range items {
		if it.from > it.to || it.mark != "" {
			return nil, fmt.Errorf("field %q is no list of years", text)
		}
		for y := it.from; y <= it.to; y += it.step {
			out[y] = true
		}
	}
	return out, nil
}

// items reads a list of values, ranges and steps.
func (f field) items(text string) ([]item, error) {
	var out []item
	for part := range strings.SplitSeq(strings.ToUpper(text), ",") {
		it, err := f.item(part)
		if err != nil {
			return nil, err
		}
		if out = append(out, it); len(out) > 1 && (out[0].mark != "" || it.mark != "") {
			return nil, fmt.Errorf("a list with L, W or # is not known to tests: use Admin.Fire")
		}
	}
	return out, nil
}

func (f field) item(part string) (it item, err error) {
	it.step = 1
	span, step, stepped := strings.Cut(part, "/")
	if stepped {
		if it.step, err = strconv.Atoi(step); err != nil || it.step < 1 {
			return it, fmt.Errorf("%q is no step", step)
		}
	}
	if span == "*" || span == "" && stepped && f.quartz {
		it.from, it.to = f.low, f.high
		return it, nil
	}
	first, last, isRange := strings.Cut(span, "-")
	if it.from, it.mark, err = f.value(first); err != nil {
		return it, err
	}
	it.named = first != "" && first[0] > '9'
	switch {
	case it.mark != "" && (isRange || stepped):
		return it, fmt.Errorf("%q has no meaning", part)
	case strings.HasPrefix(it.mark, "#"):
		if it.nth, err = strconv.Atoi(it.mark[1:]); err != nil || it.nth < 1 || it.nth > 5 {
			return it, fmt.Errorf("%q is no day of a month", part)
		}
		it.mark = "#"
	case isRange:
		var mark string
		if it.to, mark, err = f.value(last); err != nil || mark != "" {
			return it, fmt.Errorf("%q is no range", part)
		}
	case stepped:
		it.to = f.high
	}
	if !isRange && !stepped {
		it.to, it.single = it.from, true
	}
	if it.named && stepped && f.quartz {
		return it, fmt.Errorf("quartz ignores the step of %q, so tests refuse it", part)
	}
	return it, nil
}

// value reads a number or a name, and what follows it.
func (f field) value(text string) (n int, mark string, err error) {
	for i, name := range f.names {
		if rest, ok := strings.CutPrefix(text, name); ok {
			n, mark = i+f.low, rest
			if mark != "" && mark != "L" && mark[0] != '#' {
				return 0, "", fmt.Errorf("%q is no name", text)
			}
			return n, mark, nil
		}
	}
	digits := strings.TrimLeft(text, "0123456789")
	if n, err = strconv.Atoi(text[:len(text)-len(digits)]); err != nil || n < f.low || n > f.high {
		return 0, "", fmt.Errorf("%q is no number from %d to %d", text, f.low, f.high)
	}
	if digits != "" && digits != "W" && digits != "L" && digits[0] != '#' {
		return 0, "", fmt.Errorf("%q has no meaning here", text)
	}
	return n, digits, nil
}

// bits are the values of the item; a range may run over the end of the field.
func (it item) bits(f field) (set uint64) {
	to := it.to
	if to < it.from {
		to += f.high - f.low + 1
	}
	for n := it.from; n <= to; n += it.step {
		set |= 1 << (f.low + (n-f.low)%(f.high-f.low+1))
	}
	return set
}

// nextWall is the first time on the wall, written as UTC, that fits and is not
// before from; zero when there is none.
func (c cron) nextWall(from time.Time) time.Time {
	y, m, d := from.Date()
	clock := from.Hour()*3600 + from.Minute()*60 + from.Second()
	for last := y + 101; y <= last; d, clock = d+1, 0 {
		day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		if y, m, d = day.Date(); c.years != nil && !c.years[y] {
			m, d = 12, 31
			continue
		}
		if c.month>>m&1 == 0 {
			d = daysIn(y, m)
			continue
		}
		if !c.day.fits(day) {
			continue
		}
		for s := clock; s < 24*3600; {
			switch {
			case c.hour>>(s/3600)&1 == 0:
				s = (s/3600 + 1) * 3600
			case c.minute>>(s/60%60)&1 == 0:
				s = (s/60 + 1) * 60
			case c.second>>(s%60)&1 == 0:
				s++
			default:
				return day.Add(time.Duration(s) * time.Second)
			}
		}
	}
	return time.Time{}
}
