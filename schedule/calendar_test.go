package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustCalendar(t testing.TB, spec CalendarSpec) *Calendar {
	t.Helper()
	c, err := CompileCalendar(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// chinaCalendar has the days around National Day 2026.
func chinaCalendar(t testing.TB) *Calendar {
	return mustCalendar(t, CalendarSpec{
		Holidays:   []string{"2026-10-01", "2026-10-02", "2026-10-05", "2026-10-06", "2026-10-07"},
		MakeUpDays: []string{"2026-10-10"}, // a Saturday
		Blackouts:  []Blackout{{mustAt(t, "2026-10-12T09:30:00+08:00"), mustAt(t, "2026-10-13T00:00:00+08:00")}},
	})
}

func mustAt(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestCalendarRules(t *testing.T) {
	for _, row := range []struct {
		rule DayRule
		want []string // days of October that have the run of 10:00
	}{
		{DaysAll, []string{"01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "13", "14"}},
		{"", []string{"03", "04", "08", "09", "10", "11", "13", "14"}},
		{DaysNotHolidays, []string{"03", "04", "08", "09", "10", "11", "13", "14"}},
		{DaysWorkdays, []string{"08", "09", "10", "13", "14"}},
	} {
		s, err := Compile(Spec{Kind: KindCron, Expr: "0 10 * * *", Zone: "Asia/Shanghai", Calendars: []*Calendar{chinaCalendar(t)}, Days: row.rule})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		at := mustAt(t, "2026-09-30T12:00:00+08:00")
		for end := mustAt(t, "2026-10-15T00:00:00+08:00"); ; {
			var ok bool
			if at, ok = s.NextRun(at); !ok || !at.Before(end) {
				break
			}
			got = append(got, at.Format("02"))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%q: %v, want %v", row.rule, got, row.want)
		}
	}
}

func TestCalendarZone(t *testing.T) {
	// Midnight to eight of a Tokyo day is the day before in New York.
	tokyo := mustCalendar(t, CalendarSpec{Zone: "Asia/Tokyo", Holidays: []string{"2026-05-04"}})
	own := mustCalendar(t, CalendarSpec{Holidays: []string{"2026-05-04"}})
	for _, row := range []struct {
		c    *Calendar
		want bool
	}{{tokyo, true}, {own, false}} {
		s, err := Compile(Spec{Kind: KindCron, Expr: "0 20 * * *", Zone: "America/New_York", Calendars: []*Calendar{row.c}})
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := s.Excluded(mustAt(t, "2026-05-03T20:00:00-04:00")); ok != row.want {
			t.Errorf("%+v: %v", e, ok)
		}
	}
}

func TestExcludedFiresGetTheirRow(t *testing.T) {
	s, err := Compile(Spec{Kind: KindCron, Expr: "0 10 * * *", Zone: "Asia/Shanghai", Calendars: []*Calendar{chinaCalendar(t)}})
	if err != nil {
		t.Fatal(err)
	}
	now := mustAt(t, "2026-10-09T12:00:00+08:00")
	for policy, want := range map[MisfirePolicy][]Decision{
		// 30 September to 9 October; the 1st, 2nd, 5th, 6th and 7th are holidays.
		MisfireSkip: {DecisionMissed, DecisionExcluded, DecisionExcluded, DecisionMissed, DecisionMissed,
			DecisionExcluded, DecisionExcluded, DecisionExcluded, DecisionMissed, DecisionMissed},
		MisfireOnceNow: {DecisionCoalesced, DecisionExcluded, DecisionExcluded, DecisionCoalesced, DecisionCoalesced,
			DecisionExcluded, DecisionExcluded, DecisionExcluded, DecisionCoalesced, DecisionRun},
		MisfireAll: {DecisionMissed, DecisionExcluded, DecisionExcluded, DecisionRun, DecisionRun,
			DecisionExcluded, DecisionExcluded, DecisionExcluded, DecisionRun, DecisionRun},
	} {
		plan := Due(s, DueParams{Next: mustAt(t, "2026-09-30T10:00:00+08:00"), Now: now, Policy: policy, Window: -1, MaxRuns: 4})
		var got []Decision
		for _, f := range plan.Fires {
			got = append(got, f.Decision)
			if f.Decision == DecisionExcluded && (f.Reason != ReasonCalendar || f.Excluded.Date != f.At.Format(time.DateOnly)) {
				t.Errorf("%s: %+v", policy, f)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", policy, got, want)
		}
	}
	// What stands for others is never an excluded one.
	plan := Due(s, DueParams{Next: mustAt(t, "2026-09-30T10:00:00+08:00"), Now: mustAt(t, "2026-10-02T12:00:00+08:00"), Policy: MisfireOnceNow})
	if f := plan.Fires[0]; f.Decision != DecisionRun || f.Cause != CauseMisfire {
		t.Errorf("the newest that may run: %+v", f)
	}
}

func TestFixedDelayWaitsForTheEndOfABlackout(t *testing.T) {
	window := Blackout{mustAt(t, "2026-10-12T09:00:00Z"), mustAt(t, "2026-10-12T17:00:00Z")}
	s, err := Compile(Spec{Kind: KindFixedDelay, Every: time.Minute, Calendars: []*Calendar{mustCalendar(t, CalendarSpec{Blackouts: []Blackout{window}})}})
	if err != nil {
		t.Fatal(err)
	}
	at := window.From.Add(time.Second)
	plan := Due(s, DueParams{Next: at, Now: at})
	if len(plan.Fires) != 1 || plan.Fires[0].Decision != DecisionExcluded || !plan.Next.Equal(window.To) || plan.AwaitsFinish {
		t.Errorf("%+v", plan)
	}
	if next, ok := s.NextRun(at); !ok || !next.Equal(window.To) {
		t.Errorf("next run %s", next)
	}
}

// An excluded day ends where the zone's next date begins, also where there is no
// midnight, or two, or the next day is missing.
func TestAnExcludedDayHasItsBounds(t *testing.T) {
	for _, day := range []struct{ zone, date, from, to string }{
		{"UTC", "2026-04-23", "2026-04-23T00:00:00Z", "2026-04-24T00:00:00Z"},
		{"Africa/Cairo", "2026-04-23", "2026-04-23T00:00:00+02:00", "2026-04-24T01:00:00+03:00"},   // no midnight at its end
		{"Africa/Cairo", "2026-04-24", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},   // nor at its beginning
		{"Africa/Cairo", "2026-10-29", "2026-10-29T00:00:00+03:00", "2026-10-30T00:00:00+02:00"},   // its last hour comes twice
		{"America/Havana", "2026-03-07", "2026-03-07T00:00:00-05:00", "2026-03-08T01:00:00-04:00"}, // no midnight at its end
		{"America/Havana", "2026-11-01", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"}, // its first one
		{"Pacific/Apia", "2011-12-29", "2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"},   // the next day is missing
		{"Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},   // the one before
		{"Pacific/Kwajalein", "1993-08-20", "1993-08-20T00:00:00-12:00", "1993-08-22T00:00:00+12:00"},
	} {
		t.Run(day.zone+" "+day.date, func(t *testing.T) {
			s, err := Compile(Spec{Kind: KindFixedDelay, Every: time.Second, Zone: day.zone, Calendars: []*Calendar{mustCalendar(t, CalendarSpec{Holidays: []string{day.date}})}})
			if err != nil {
				t.Fatal(err)
			}
			from, to := mustAt(t, day.from), mustAt(t, day.to)
			for at := from; at.Before(to); at = at.Add(10 * time.Minute) {
				if e, ok := s.Excluded(at); !ok || e.Date != day.date || !e.From.Equal(from) || !e.To.Equal(to) {
					t.Fatalf("at %s: %t, %s to %s, want %s to %s", at, ok, e.From, e.To, from, to)
				}
			}
			for _, at := range []time.Time{from.Add(-time.Millisecond), to} {
				if _, ok := s.Excluded(at); ok {
					t.Errorf("%s is excluded", at)
				}
			}
			// A delay that ends in its last half hour goes on after it.
			if next, ok := s.NextRun(to.Add(-30 * time.Minute)); !ok || !next.Equal(to) {
				t.Errorf("next run %s, %t", next, ok)
			}
		})
	}
}

// However often a schedule fires on an excluded day, it goes on after it.
func TestAFrequentScheduleGoesOnAfterAnExcludedDay(t *testing.T) {
	s, err := Compile(Spec{Kind: KindCron, Expr: "* * * * * *", Zone: "Pacific/Apia", Calendars: []*Calendar{mustCalendar(t, CalendarSpec{Holidays: []string{"2011-12-29"}})}})
	if err != nil {
		t.Fatal(err)
	}
	want := mustAt(t, "2011-12-31T00:00:00+14:00")
	if next, ok := s.NextRun(mustAt(t, "2011-12-29T00:00:00-10:00")); !ok || !next.Equal(want) {
		t.Errorf("next run %s, %t, want %s", next, ok, want)
	}
}

func TestNeverBecauseOfTheCalendar(t *testing.T) {
	s, err := Compile(Spec{Kind: KindCron, Expr: "0 9 * * SUN", Days: DaysWorkdays, Calendars: []*Calendar{mustCalendar(t, CalendarSpec{})}})
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := s.NextRun(mustAt(t, "2026-01-01T00:00:00Z")); ok {
		t.Errorf("runs at %s", at)
	}
	list := s.Preview(mustAt(t, "2026-01-01T00:00:00Z"), 3)
	if len(list) != 3 || list[0].Excluded == nil || list[0].Excluded.Kind != ExcludedWeekend {
		t.Errorf("%+v", list)
	}
}

func TestCalendarMistakes(t *testing.T) {
	at := mustAt(t, "2026-01-01T00:00:00Z")
	for field, spec := range map[string]CalendarSpec{
		"zone":       {Zone: "Mars/Base"},
		"weekend":    {Weekend: []time.Weekday{7}},
		"holidays":   {Holidays: []string{"2026-02-30"}},
		"makeUpDays": {Holidays: []string{"2026-02-03"}, MakeUpDays: []string{"2026-02-03"}},
		"blackouts":  {Blackouts: []Blackout{{at, at}}},
	} {
		_, err := CompileCalendar(spec)
		var ce *CalendarError
		if !errors.As(err, &ce) || ce.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// NextRun and prevRun jump over exclusions; going through every fire must come
// to the same.
func TestExclusionsAreJumpedOverExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc := rapid.SampledFrom([]string{"UTC", "Asia/Shanghai", "America/Sao_Paulo", "Asia/Beirut", "America/Havana", "Pacific/Apia"}).Draw(t, "zone")
		zone, err := LoadZone(loc)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Unix(rapid.Int64Range(1_230_000_000, 1_500_000_000).Draw(t, "start"), 0)
		if _, end := start.In(zone).ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(t, "change") {
			start = end.Add(-36 * time.Hour)
		}
		year, month, first := start.In(zone).Date()
		day := func(n int) string { // a date, which the zone may not have: instants of other days would stand for it
			return time.Date(year, month, first+n, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		}
		spec := CalendarSpec{}
		for n := range 6 {
			switch rapid.IntRange(0, 3).Draw(t, "day") {
			case 0:
				spec.Holidays = append(spec.Holidays, day(n))
			case 1:
				spec.MakeUpDays = append(spec.MakeUpDays, day(n))
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "blackouts") {
			from := start.Add(time.Duration(rapid.IntRange(-10, 150).Draw(t, "from")) * time.Hour)
			spec.Blackouts = append(spec.Blackouts, Blackout{from, from.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "for")) * time.Minute)})
		}
		c, err := CompileCalendar(spec)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Compile(Spec{
			Kind: KindCron, Expr: rapid.SampledFrom([]string{"*/10 * * * *", "0 * * * *", "30 0 * * *", "0 0,12 * * *"}).Draw(t, "expr"),
			Zone: loc, Calendars: []*Calendar{c}, Days: rapid.SampledFrom([]DayRule{DaysAll, DaysNotHolidays, DaysWorkdays}).Draw(t, "rule"),
		})
		if err != nil {
			t.Fatal(err)
		}
		var slow, fast []int64
		end := start.Add(6 * 24 * time.Hour)
		for at, ok := s.Next(start); ok && at.Before(end); at, ok = s.Next(at) {
			if _, out := s.Excluded(at); !out {
				slow = append(slow, at.Unix())
			}
		}
		for at, ok := s.NextRun(start); ok && at.Before(end); at, ok = s.NextRun(at) {
			fast = append(fast, at.Unix())
		}
		if !slices.Equal(slow, fast) {
			t.Fatalf("forward: %v, want %v", fast, slow)
		}
		fast = nil
		for at, ok := s.prevRun(end.Add(-1)); ok && at.After(start); at, ok = s.prevRun(at.Add(-time.Millisecond)) {
			fast = append(fast, at.Unix())
		}
		slices.Reverse(fast)
		if !slices.Equal(slow, fast) {
			t.Fatalf("backward: %v, want %v", fast, slow)
		}
	})
}
