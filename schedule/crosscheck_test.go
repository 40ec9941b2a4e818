package schedule

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// crosscheck is how many expressions TestCrossCheck compares in all zones:
// a sample here, thousands with make crosscheck.
var crosscheck = flag.Int("crosscheck", 24, "expressions that TestCrossCheck compares in each of its zones")

// The years that are compared, and how many fires of one expression in one
// zone. What fires more often is compared around clock changes only.
const (
	crossFrom  = 2008
	crossYears = 20
	crossFires = 2000
)

// crossZones change their clocks in every way that zones of these years do, or
// not at all.
var crossZones = []string{
	"UTC", "Africa/Cairo", "Africa/Casablanca", "Africa/El_Aaiun", "Africa/Johannesburg", "Africa/Juba", "Africa/Lagos", "Africa/Sao_Tome",
	"Africa/Tripoli", "Africa/Windhoek", "America/Anchorage", "America/Araguaina", "America/Argentina/San_Luis", "America/Asuncion",
	"America/Bogota", "America/Caracas", "America/Chicago", "America/Denver", "America/Godthab", "America/Grand_Turk", "America/Halifax",
	"America/Havana", "America/Los_Angeles", "America/Mexico_City", "America/Miquelon", "America/Montevideo", "America/New_York",
	"America/Phoenix", "America/Port-au-Prince", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Casey",
	"Antarctica/Troll", "Asia/Amman", "Asia/Beirut", "Asia/Damascus", "Asia/Dhaka", "Asia/Gaza", "Asia/Jerusalem", "Asia/Kathmandu",
	"Asia/Kolkata", "Asia/Pyongyang", "Asia/Shanghai", "Asia/Tehran", "Asia/Tokyo", "Asia/Ulaanbaatar", "Atlantic/Azores", "Australia/Adelaide",
	"Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin", "Europe/Istanbul", "Europe/London", "Europe/Moscow", "Europe/Volgograd",
	"Pacific/Apia", "Pacific/Auckland", "Pacific/Chatham", "Pacific/Easter",
}

// stretch is a stretch of a zone's time with one offset, in Unix seconds.
type stretch struct{ start, end, offset int64 }

// timeline walks a zone in quarters of an hour and narrows each change down to
// its second: nothing but Zone is asked.
func timeline(loc *time.Location, from, to int64) []stretch {
	offset := func(u int64) int64 {
		_, o := time.Unix(u, 0).In(loc).Zone()
		return int64(o)
	}
	list := []stretch{{start: from, offset: offset(from)}}
	for u := from + 900; u < to; u += 900 {
		if offset(u) == offset(u-900) {
			continue
		}
		low, high := u-900, u // offset(low) is the old one, offset(high) the new one
		for high-low > 1 {
			if middle := (low + high) / 2; offset(middle) == offset(low) {
				low = middle
			} else {
				high = middle
			}
		}
		list[len(list)-1].end = high
		list = append(list, stretch{start: high, offset: offset(high)})
	}
	list[len(list)-1].end = to
	return list
}

// crossRule is a rule of the other brute force with its numbers in order.
type crossRule struct {
	*bruteRule
	seconds, minutes, hours []int
}

func sorted(set map[int]bool) []int {
	var list []int
	for n := range set {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// fires lists the fires in (from, to) by going through the calendar: each date
// that matches, each time of day on it, and each instant at which the zone
// shows that date and time. It is the inverse of Next, which goes through the
// zone, and shares no code with it.
func (r crossRule) fires(from, to int64, line []stretch, dst DST) []int64 {
	var out []int64
	first, _ := slices.BinarySearchFunc(line, from-2*86400, func(s stretch, u int64) int {
		if s.end <= u {
			return -1
		}
		return 1
	})
	for day := from/86400 - 1; day <= to/86400+1; day++ {
		date := time.Unix(day*86400, 0).UTC()
		if !r.months[int(date.Month())] || !r.day(date) {
			continue
		}
		for _, h := range r.hours {
			for _, m := range r.minutes {
				for _, s := range r.seconds {
					out = r.at(out, day*86400+int64(h*3600+m*60+s), line[first:], dst)
				}
			}
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(u int64) bool { return u <= from || u >= to })
}

// at adds the instants of one wall time.
func (r crossRule) at(out []int64, shown int64, line []stretch, dst DST) []int64 {
	passes := 0
	for i, s := range line {
		if s.start > shown+86400 {
			break
		}
		u := shown - s.offset
		switch {
		case u >= s.start && u < s.end:
			if passes++; passes == 1 || r.repeats || dst.Overlap == OverlapBoth {
				out = append(out, u)
			}
		case i > 0 && u < s.start && shown-line[i-1].offset >= s.start && passes == 0:
			// The stretch before has ended when it would show it, and this one
			// has passed it already when it begins.
			if !r.hourly && dst.Gap != GapSkip {
				out = append(out, s.start)
			}
		}
	}
	return out
}

// crossRules makes n rules that differ by their number only.
func crossRules(n int) []crossRule {
	gen := rapid.Custom(func(t *rapid.T) crossRule {
		r := genRule(t)
		if r.dialect == DialectQuartz && rapid.IntRange(0, 3).Draw(t, "years") == 0 {
			first, step := rapid.IntRange(crossFrom, crossFrom+9).Draw(t, "year"), rapid.IntRange(1, 5).Draw(t, "each")
			r.text += fmt.Sprintf(" %d-%d/%d", first, first+9, step)
			day := r.day
			r.day = func(at time.Time) bool {
				y := at.Year()
				return y >= first && y <= first+9 && (y-first)%step == 0 && day(at)
			}
		}
		return crossRule{r, sorted(r.second), sorted(r.minute), sorted(r.hour)}
	})
	list := make([]crossRule, n)
	for i := range list {
		list[i] = gen.Example(i + 1)
	}
	return list
}

// crossSpans are the spans in which a rule is compared in a zone: all years,
// or some days around some of its clock changes when it fires often.
func crossSpans(r crossRule, line []stretch, rng *rand.Rand) [][2]int64 {
	from, to := line[0].start+7*86400, line[len(line)-1].end-7*86400
	days := 0
	for day := from / 86400; day < to/86400; day++ {
		if date := time.Unix(day*86400, 0).UTC(); r.months[int(date.Month())] && r.day(date) {
			days++
		}
	}
	perDay := len(r.hours) * len(r.minutes) * len(r.seconds)
	if days*perDay <= crossFires {
		return [][2]int64{{from, to}}
	}
	var spans [][2]int64
	for range max(2, crossFires/(3*perDay)) {
		middle := from + rng.Int64N(to-from)
		if i := 1 + rng.IntN(max(len(line)-1, 1)); i < len(line) {
			middle = line[i].start
		}
		spans = append(spans, [2]int64{max(from, middle-36*3600), min(to, middle+36*3600)})
	}
	return spans
}

// TestCrossCheck compares the engine with a second implementation over 60
// zones and 20 years. make crosscheck does it with thousands of expressions.
func TestCrossCheck(t *testing.T) {
	from := time.Date(crossFrom, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 7*86400
	to := time.Date(crossFrom+crossYears, 1, 1, 0, 0, 0, 0, time.UTC).Unix() + 7*86400
	rules := crossRules(*crosscheck)
	total, mismatches := 0, 0
	for _, name := range crossZones {
		loc := mustZone(t, name)
		line := timeline(loc, from, to)
		rng := rand.New(rand.NewPCG(1, uint64(len(line))))
		for i, r := range rules {
			c, err := Parse(r.text, r.dialect)
			if err != nil {
				t.Fatal(err)
			}
			dst := DST{Gap: []GapPolicy{GapRunAtEnd, GapSkip}[i%2], Overlap: []OverlapPolicy{OverlapOnce, OverlapBoth}[i/2%2]}
			for _, span := range crossSpans(r, line, rng) {
				want := r.fires(span[0], span[1], line, dst)
				total += len(want)
				if d := crossDifference(c, want, span, loc, dst); d != "" {
					if mismatches++; mismatches <= 20 {
						t.Errorf("%s %q in %s, %v: %s", r.dialect, r.text, name, dst, d)
					}
				}
			}
		}
	}
	t.Logf("%d expressions in %d zones over %d years: %d fires compared, %d mismatches", len(rules), len(crossZones), crossYears, total, mismatches)
	if len(crossZones) != 60 || total < 1000*len(rules) {
		t.Errorf("only %d fires in %d zones were compared", total, len(crossZones))
	}
}

// crossDifference follows Next through a span and tells where it parts.
func crossDifference(c *Cron, want []int64, span [2]int64, loc *time.Location, dst DST) string {
	at := time.Unix(span[0], 0)
	for i := 0; ; i++ {
		next, ok := c.NextIn(at, loc, dst)
		if !ok || next.Unix() >= span[1] {
			if i < len(want) {
				return fmt.Sprintf("none after %s, want %s", at.In(loc).Format(time.RFC3339), time.Unix(want[i], 0).In(loc).Format(time.RFC3339))
			}
			return ""
		}
		if i >= len(want) || next.Unix() != want[i] {
			text := "none"
			if i < len(want) {
				text = time.Unix(want[i], 0).In(loc).Format(time.RFC3339)
			}
			return fmt.Sprintf("%s, want %s", next.Format(time.RFC3339), text)
		}
		at = next
	}
}
