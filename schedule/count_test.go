package schedule

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// genSpec draws a schedule that fires some thousand times in a few days at most.
func genSpec(t *rapid.T) Spec {
	zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Shanghai", "Pacific/Apia"}).Draw(t, "zone")
	s := Spec{Zone: zone, Kind: rapid.SampledFrom([]Kind{KindCron, KindFixedRate, KindInstants, KindDailyWindow}).Draw(t, "kind")}
	switch s.Kind {
	case KindCron:
		s.Expr = rapid.SampledFrom([]string{
			"* * * * *", "*/7 * * * *", "5/20 * * * *", "30 2 * * *", "*/5 1-3 * * *", "0 0 * * 1", "15,45 */2 1-15 * *", "*/30 0 * * * *", "*/20 */10 2 * * *", "@every 7m",
		}).Draw(t, "expr")
		s.DST = DST{
			Gap: rapid.SampledFrom([]GapPolicy{GapRunAtEnd, GapSkip}).Draw(t, "gap"), Overlap: rapid.SampledFrom([]OverlapPolicy{OverlapOnce, OverlapBoth}).Draw(t, "overlap"),
		}
	case KindFixedRate:
		s.Every = time.Duration(rapid.SampledFrom([]int{61_001, 600_000, 3_600_000, 86_400_000}).Draw(t, "every")) * time.Millisecond
		s.Anchor = countDay(t, "anchor")
	case KindInstants:
		for i := range 20 {
			s.Instants = append(s.Instants, countDay(t, fmt.Sprint("instant ", i)))
		}
	default:
		s.WindowFrom = rapid.SampledFrom([]string{"00:00", "01:30", "22:00"}).Draw(t, "windowFrom")
		s.WindowTo = rapid.SampledFrom([]string{"24:00", "03:00", "23:59:59"}).Draw(t, "windowTo")
		s.Every = time.Duration(rapid.SampledFrom([]int{3600, 420, 600}).Draw(t, "every")) * time.Second
	}
	if rapid.Bool().Draw(t, "valid") {
		s.StartAt, s.EndAt = countDay(t, "start"), countDay(t, "end").AddDate(0, 1, 0)
	}
	if rapid.Bool().Draw(t, "calendar") {
		from := countDay(t, "blackout")
		c, err := CompileCalendar(CalendarSpec{
			Zone: rapid.SampledFrom([]string{"", "Asia/Kolkata"}).Draw(t, "calendar zone"), Holidays: []string{countDay(t, "holiday").Format(time.DateOnly)},
			Blackouts: []Blackout{{From: from, To: from.Add(5*time.Hour + 7*time.Minute)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Calendars, s.Days = []*Calendar{c}, rapid.SampledFrom([]DayRule{DaysNotHolidays, DaysWorkdays, DaysAll}).Draw(t, "days")
	}
	return s
}

// countDay draws an instant in the days around changes of clocks in 2026, or in winter.
func countDay(t *rapid.T, label string) time.Time {
	day := rapid.SampledFrom([]int64{1774656000, 1792800000, 1767571200, 1775300000, 1793500000}).Draw(t, label+" day")
	day += rapid.SampledFrom([]int64{0, 40_000, 86_400, 100_000, 200_000}).Draw(t, label+" part")
	return time.UnixMilli(day*1000 + rapid.Int64Range(0, 86_400_000).Draw(t, label)).UTC()
}

// TestCountRuns: arithmetic and hours as a whole give as many fires as a list of them has.
func TestCountRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := genSpec(t)
		s, err := Compile(spec)
		if err != nil {
			t.Skip(err.Error()) // rapid draws another one instead
		}
		from := countDay(t, "from")
		if rapid.Bool().Draw(t, "whole") {
			from = from.Truncate(time.Hour)
		}
		to := from.Add(time.Duration(rapid.SampledFrom([]int64{0, 3600, 86_400, 259_200}).Draw(t, "span")+rapid.Int64Range(0, 7200).Draw(t, "more")) * time.Second)
		want := int64(0)
		for at := from.Add(-1); ; want++ {
			next, ok := s.NextRun(at)
			if !ok || !next.Before(to) {
				break
			}
			at = next
		}
		steps := 100_000
		if got, ok := s.CountRuns(from, to, &steps); !ok || got != want {
			t.Fatalf("%+v from %s to %s: %d, want %d (%v)", spec, from, to, got, want, ok)
		}
	})
}

func TestCountRunsSteps(t *testing.T) {
	from := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for expr, want := range map[string]int{"* * * * *": 168, "* * * * * *": 168, "0 2 * * *": 8, "*/5 9-17 * * 1-5": 46} {
		s, err := Compile(Spec{Kind: KindCron, Expr: expr})
		if err != nil {
			t.Fatal(err)
		}
		steps := want
		if _, ok := s.CountRuns(from, from.AddDate(0, 0, 7), &steps); !ok || steps != 0 {
			t.Errorf("%s: %d steps are left of %d", expr, steps, want)
		}
		steps = 3
		if n, ok := s.CountRuns(from, from.AddDate(0, 0, 7), &steps); ok || n != 0 {
			t.Errorf("%s: %d after too few steps", expr, n)
		}
	}
	s, err := Compile(Spec{Kind: KindFixedRate, Every: MinEvery})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	if n, ok := s.CountRuns(from, from.AddDate(0, 0, 7), &steps); !ok || n != 6_048_000 {
		t.Errorf("a rate takes no steps: %d", n)
	}
}
