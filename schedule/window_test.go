package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bruteWindow lists a daily window's fires in (from, to) by looking at every
// minute's clock: the window of a day opens at the first minute that shows
// open or more, and closes after the last one that shows shut or less.
func bruteWindow(from, to time.Time, loc *time.Location, open, shut, every time.Duration, gap GapPolicy) []time.Time {
	var clocks []time.Time // wall times of all minutes
	begin := from.Add(-72 * time.Hour)
	for t := begin; t.Before(to.Add(72 * time.Hour)); t = t.Add(time.Minute) {
		clocks = append(clocks, asUTC(t.In(loc)))
	}
	var fires []time.Time
	for day := asUTC(from.In(loc)).Truncate(24*time.Hour).AddDate(0, 0, -2); day.Before(asUTC(to.In(loc))); day = day.AddDate(0, 0, 1) {
		first := slices.IndexFunc(clocks, func(w time.Time) bool { return !w.Before(day.Add(open)) })
		last := len(clocks) - 1
		for clocks[last].After(day.Add(shut)) {
			last--
		}
		if last < first && gap != GapSkip {
			last = first
		}
		for i := first; i <= last; i += int(every / time.Minute) {
			fires = append(fires, begin.Add(time.Duration(i)*time.Minute))
		}
	}
	slices.SortFunc(fires, time.Time.Compare)
	fires = slices.CompactFunc(fires, time.Time.Equal)
	return slices.DeleteFunc(fires, func(t time.Time) bool { return !t.After(from) || !t.Before(to) })
}

func TestWindowAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The hours at which clocks change are the interesting ones.
		minute := rapid.SampledFrom([]int{0, 1, 30, 60, 90, 119, 120, 121, 150, 179, 180, 720, 1380, 1410, 1439})
		open := time.Duration(minute.Draw(t, "open")) * time.Minute
		shut := time.Duration(minute.Draw(t, "shut")) * time.Minute
		if open == shut {
			open, shut = 0, 24*time.Hour
		}
		every := time.Duration(rapid.IntRange(1, 200).Draw(t, "every")) * time.Minute
		gap := rapid.SampledFrom([]GapPolicy{GapRunAtEnd, GapSkip}).Draw(t, "gap")
		name := rapid.SampledFrom(bruteZones).Draw(t, "zone")
		s, err := Compile(Spec{
			Kind: KindDailyWindow, Zone: name, Every: every, DST: DST{Gap: gap},
			WindowFrom: clockText(int64(open / time.Second)), WindowTo: clockText(int64(shut / time.Second)),
		})
		if err != nil {
			t.Fatal(err)
		}
		from, to := genWindow(t, s.Zone())
		from = from.Truncate(time.Minute)
		if shut < open {
			shut += 24 * time.Hour
		}
		var got []time.Time
		for at, ok := s.Next(from); ok && at.Before(to); at, ok = s.Next(at) {
			got = append(got, at)
		}
		if d := firstDifference(got, bruteWindow(from, to, s.Zone(), open, shut, every, gap)); d != "" {
			t.Fatalf("%s (%s) from %s: %s", s.Explain("en"), gap, from.Format(time.RFC3339), d)
		}
	})
}

// TestWindowOverMidnightTwice: in Newfoundland clocks went from 00:01 back to
// 23:01, so two days' windows lie across each other. Their fires come in order.
func TestWindowOverMidnightTwice(t *testing.T) {
	s := mustCompile(t, Spec{Kind: KindDailyWindow, WindowFrom: "00:00", WindowTo: "24:00", Every: 25 * time.Minute, Zone: "America/St_Johns"})
	want := "2010-11-07T00:00:00-02:30, 2010-11-06T23:10:00-03:30, 2010-11-06T23:25:00-03:30, 2010-11-06T23:35:00-03:30, " +
		"2010-11-06T23:50:00-03:30, 2010-11-07T00:00:00-03:30, 2010-11-07T00:15:00-03:30"
	checkFires(t, s.Next, "2010-11-07T02:20:00Z", want)
}

// TestOverrun: a nearest weekday that the month does not have (days.overrun).
func TestOverrun(t *testing.T) {
	tests := []struct{ expr, from, want string }{
		{"0 0 0 31W * ?", "2027-03-31T00:00:00Z", "2027-04-30T00:00:00Z, 2027-05-31T00:00:00Z, 2027-07-30T00:00:00Z"},
		{"0 0 0 29W 2 ?", "2024-03-01T00:00:00Z", "2025-02-28T00:00:00Z, 2028-02-29T00:00:00Z, 2031-02-28T00:00:00Z"},
		{"0 0 0 29W * ?", "2025-01-01T00:00:00Z", "2025-01-29T00:00:00Z, 2025-03-28T00:00:00Z"},
		{"0 0 0 30W 2 ?", "2026-03-01T00:00:00Z", "2036-02-29T00:00:00Z, 2064-02-29T00:00:00Z"},
		{"0 0 0 L-29W * ?", "2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z, 2026-04-01T00:00:00Z, 2026-05-01T00:00:00Z"},
	}
	for _, tt := range tests {
		c := mustParse(t, tt.expr)
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			checkFires(t, func(after time.Time) (time.Time, bool) { return c.NextIn(after, time.UTC, DST{}) }, tt.from, tt.want)
		})
	}
}
