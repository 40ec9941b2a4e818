package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A second implementation, made to be obviously right and nothing else: it
// looks at every half minute of a few days and asks whether the rule matches.
// It shares no code with the package; the rules are built by the generator
// beside their text, so the parser is tested too.

// bruteGrid is the distance of the instants looked at. Generated seconds are
// 0 or 30, and clock changes of our years lie on it.
const bruteGrid = 30 * time.Second

// bruteRule is an expression with its meaning.
type bruteRule struct {
	text                         string
	dialect                      Dialect
	second, minute, hour, months map[int]bool
	day                          func(time.Time) bool
	hourly, repeats              bool
}

func (r *bruteRule) match(local time.Time) bool {
	return r.second[local.Second()] && r.minute[local.Minute()] && r.hour[local.Hour()] &&
		r.months[int(local.Month())] && r.day(local)
}

// fires lists all fires in (from, to).
func (r *bruteRule) fires(from, to time.Time, loc *time.Location, dst DST) []time.Time {
	var out []time.Time
	for t := from.Add(bruteGrid); t.Before(to); t = t.Add(bruteGrid) {
		local := t.In(loc)
		if r.gapFire(local, dst) || r.match(local) && !(r.again(local) && !r.repeats && dst.Overlap != OverlapBoth) {
			out = append(out, local)
		}
	}
	return out
}

// gapFire: a gap ends at local, and a fixed time lies in it.
func (r *bruteRule) gapFire(local time.Time, dst DST) bool {
	if r.hourly || dst.Gap == GapSkip {
		return false
	}
	last := local.Add(-bruteGrid)
	_, now := local.Zone()
	if _, before := last.Zone(); before >= now {
		return false
	}
	for w := asUTC(last).Add(bruteGrid); w.Before(asUTC(local)); w = w.Add(bruteGrid) {
		if r.match(w) {
			return true
		}
	}
	return false
}

// again: the clock has shown this time before, less than a day ago.
func (r *bruteRule) again(local time.Time) bool {
	_, now := local.Zone()
	if _, before := local.Add(-25 * time.Hour).Zone(); before == now {
		return false // no change lately: none of our zones changes twice in a day
	}
	for back := 15 * time.Minute; back <= 24*time.Hour; back += 15 * time.Minute {
		if asUTC(local.Add(-back)).Equal(asUTC(local)) {
			return true
		}
	}
	return false
}

// asUTC reads a wall clock as if it were UTC.
func asUTC(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// numbers is a generated field: its text and what it means.
type numbers struct {
	text string
	set  map[int]bool
	open bool // *, */n, or a/n with a < n
}

// genNumbers makes a field of numbers lo-hi.
func genNumbers(t *rapid.T, lo, hi int, wrap bool) numbers {
	size := hi - lo + 1
	n := numbers{set: map[int]bool{}}
	add := func(from, count, step int) {
		for i := 0; i < count; i += step {
			n.set[lo+(from-lo+i)%size] = true
		}
	}
	var parts []string
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "parts") {
		a := rapid.IntRange(lo, hi).Draw(t, "a")
		step := rapid.IntRange(2, max(2, size/2)).Draw(t, "step")
		switch rapid.IntRange(0, 7).Draw(t, "form") {
		case 0:
			parts, n.open = append(parts, "*"), true
			add(lo, size, 1)
		case 1:
			parts, n.open = append(parts, fmt.Sprintf("*/%d", step)), true
			add(lo, size, step)
		case 2:
			parts = append(parts, fmt.Sprintf("%d/%d", a, step))
			n.open = n.open || a-lo < step
			add(a, hi-a+1, step)
		case 3, 4:
			b := rapid.IntRange(lo, hi).Draw(t, "b")
			if b < a && !wrap {
				a, b = b, a
			}
			count := (b-a+size)%size + 1
			if rapid.Bool().Draw(t, "stepped") {
				parts = append(parts, fmt.Sprintf("%d-%d/%d", a, b, step))
				add(a, count, step)
				n.open = n.open || b >= a && a-lo < step && b+step > hi
			} else {
				parts = append(parts, fmt.Sprintf("%d-%d", a, b))
				add(a, count, 1)
				n.open = n.open || a == lo && b == hi
			}
		default:
			parts = append(parts, fmt.Sprint(a))
			add(a, 1, 1)
		}
	}
	n.text = strings.Join(parts, ",")
	return n
}

// genHour favours the hours at which clocks change.
func genHour(t *rapid.T) numbers {
	if rapid.Bool().Draw(t, "night") {
		h := rapid.IntRange(0, 3).Draw(t, "hour")
		return numbers{text: fmt.Sprint(h), set: map[int]bool{h: true}}
	}
	return genNumbers(t, 0, 23, true)
}

// genRule makes a rule in one of the dialects.
func genRule(t *rapid.T) *bruteRule {
	second := rapid.SampledFrom([]numbers{
		{"0", map[int]bool{0: true}, false}, {"30", map[int]bool{30: true}, false},
		{"0,30", map[int]bool{0: true, 30: true}, false}, {"*/30", map[int]bool{0: true, 30: true}, false},
	}).Draw(t, "second")
	minute, hour, month := genNumbers(t, 0, 59, true), genHour(t), genNumbers(t, 1, 12, true)
	if rapid.IntRange(0, 3).Draw(t, "anymonth") > 0 {
		month = numbers{text: "*", set: map[int]bool{}}
		for m := range 12 {
			month.set[m+1] = true
		}
	}
	r := &bruteRule{second: second.set, minute: minute.set, hour: hour.set, months: month.set,
		hourly: len(hour.set) == 24, repeats: len(hour.set) == 24 || minute.open}
	r.dialect = rapid.SampledFrom([]Dialect{DialectStandard, DialectSeconds, DialectQuartz}).Draw(t, "dialect")
	var dom, dow string
	if r.dialect == DialectQuartz {
		dom, dow, r.day = genQuartzDays(t)
	} else {
		dom, dow, r.day = genUnixDays(t)
	}
	fields := []string{second.text, minute.text, hour.text, dom, month.text, dow}
	if r.dialect == DialectStandard {
		fields = fields[1:]
		r.second = map[int]bool{0: true}
	}
	r.text = strings.Join(fields, " ")
	return r
}

// genUnixDays follows crontab(5).
func genUnixDays(t *rapid.T) (dom, dow string, day func(time.Time) bool) {
	star := numbers{text: "*"}
	d, w := genNumbers(t, 1, 31, true), genNumbers(t, 0, 6, true)
	switch rapid.IntRange(0, 3).Draw(t, "days") {
	case 0, 1:
		return "*", "*", func(time.Time) bool { return true }
	case 2:
		if rapid.Bool().Draw(t, "dom") {
			w = star
		} else {
			d = star
		}
	}
	inDom := func(at time.Time) bool { return d.text == "*" || d.set[at.Day()] }
	inDow := func(at time.Time) bool { return w.text == "*" || w.set[int(at.Weekday())] }
	if d.text[0] == '*' || w.text[0] == '*' {
		return d.text, w.text, func(at time.Time) bool { return inDom(at) && inDow(at) }
	}
	return d.text, w.text, func(at time.Time) bool { return inDom(at) || inDow(at) }
}

// genQuartzDays has one ? and the letters.
func genQuartzDays(t *rapid.T) (dom, dow string, day func(time.Time) bool) {
	n := rapid.IntRange(1, 28).Draw(t, "n")
	weekday := rapid.IntRange(1, 7).Draw(t, "weekday")
	offset := rapid.IntRange(0, 27).Draw(t, "offset")
	nth := rapid.IntRange(1, 5).Draw(t, "nth")
	onWeekday := func(at time.Time) bool { return int(at.Weekday())+1 == weekday }
	switch rapid.IntRange(0, 8).Draw(t, "days") {
	case 0:
		return "L", "?", func(at time.Time) bool { return at.Day() == lastDay(at) }
	case 1:
		return "LW", "?", func(at time.Time) bool { return at.Day() == closest(at, lastDay(at)) }
	case 2:
		return fmt.Sprintf("L-%d", offset), "?", func(at time.Time) bool { return at.Day() == lastDay(at)-offset }
	case 3:
		return fmt.Sprintf("L-%dW", offset), "?", func(at time.Time) bool { return at.Day() == closest(at, lastDay(at)-offset) }
	case 4:
		return fmt.Sprintf("%dW", n), "?", func(at time.Time) bool { return at.Day() == closest(at, n) }
	case 5:
		return "?", fmt.Sprintf("%dL", weekday), func(at time.Time) bool { return onWeekday(at) && at.AddDate(0, 0, 7).Month() != at.Month() }
	case 6:
		return "?", fmt.Sprintf("%d#%d", weekday, nth), func(at time.Time) bool { return onWeekday(at) && (at.Day()+6)/7 == nth }
	case 7:
		w := genNumbers(t, 1, 7, true)
		return "?", w.text, func(at time.Time) bool { return w.set[int(at.Weekday())+1] }
	}
	d := genNumbers(t, 1, 31, true)
	return d.text, "?", func(at time.Time) bool { return d.set[at.Day()] }
}

func lastDay(at time.Time) int {
	return time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// closest finds the weekday nearest to a day without leaving its month.
func closest(at time.Time, day int) int {
	for _, move := range []int{0, -1, 1, -2, 2} {
		d := time.Date(at.Year(), at.Month(), day+move, 0, 0, 0, 0, time.UTC)
		if d.Month() == at.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d.Day()
		}
	}
	return 0
}

// bruteZones differ in how and how often their clocks change.
var bruteZones = []string{
	"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Asia/Shanghai",
	"Pacific/Apia", "America/St_Johns", "Asia/Tehran", "UTC",
}

// genWindow takes four days, mostly around a clock change.
func genWindow(t *rapid.T, loc *time.Location) (from, to time.Time) {
	sec := rapid.Int64Range(1_136_073_600, 2_051_222_400).Draw(t, "instant") // 2006 to 2034
	middle := time.Unix(sec-sec%30, 0)
	if _, end := middle.In(loc).ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 4).Draw(t, "quiet") > 0 {
		// Truncated: the last entry of a zone's table need not lie on the grid.
		middle = end.Truncate(bruteGrid).Add(time.Duration(rapid.IntRange(-300, 300).Draw(t, "shift")) * bruteGrid)
	}
	return middle.Add(-24 * time.Hour).UTC(), middle.Add(48 * time.Hour).UTC()
}

func TestAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRule(t)
		c, err := Parse(r.text, r.dialect)
		if err != nil {
			t.Fatal(err)
		}
		dst := DST{
			Gap:     rapid.SampledFrom([]GapPolicy{"", GapRunAtEnd, GapSkip}).Draw(t, "gap"),
			Overlap: rapid.SampledFrom([]OverlapPolicy{"", OverlapOnce, OverlapBoth}).Draw(t, "overlap"),
		}
		for range 3 {
			name := rapid.SampledFrom(bruteZones).Draw(t, "zone")
			loc, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			from, to := genWindow(t, loc)
			want := r.fires(from, to, loc, dst)
			got := chain(c, from, to, loc, dst)
			if d := firstDifference(got, want); d != "" {
				t.Fatalf("%s %q in %s, %v, from %s: %s", r.dialect, r.text, name, dst, from.Format(time.RFC3339), d)
			}
		}
	})
}

// chain follows Next from one instant to another.
func chain(c *Cron, from, to time.Time, loc *time.Location, dst DST) []time.Time {
	var out []time.Time
	for at, ok := c.NextIn(from, loc, dst); ok && at.Before(to); at, ok = c.NextIn(at, loc, dst) {
		out = append(out, at)
	}
	return out
}

// firstDifference describes where two lists of instants part.
func firstDifference(got, want []time.Time) string {
	i := 0
	for i < len(got) && i < len(want) && got[i].Equal(want[i]) {
		i++
	}
	at := func(list []time.Time) string {
		if i < len(list) {
			return list[i].Format(time.RFC3339)
		}
		return "none"
	}
	if i == len(got) && i == len(want) {
		return ""
	}
	return fmt.Sprintf("fire %d of %d is %s, want %s", i+1, len(want), at(got), at(want))
}
