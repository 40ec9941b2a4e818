package domain

import (
	"slices"
	"strings"
	"time"
)

// CheckSchedule finds what contradicts itself in a schedule, wherever it comes
// from: what its kind does not use (whoever sent it meant it to count), and a
// jitter by which runs overtake each other. What is empty says nothing. Package
// schedule checks the rest. Locations begin with at, such as "body.schedule".
func CheckSchedule(at string, s *ScheduleSpec) []FieldError {
	var c checker
	c.schedule(at+".", s)
	return c.fields
}

func (c *checker) schedule(at string, s *ScheduleSpec) {
	c.leftovers(at, s)
	paced := s.Kind == ScheduleFixedRate || s.Kind == ScheduleDailyWindow
	c.check(!paced || s.Every <= 0 || s.JitterMax <= s.Every, at+"jitter", DurationText(s.JitterMax),
		"is longer than every, so that runs would overtake each other; at most "+DurationText(s.Every))
	for _, f := range []struct {
		name string
		at   time.Time
	}{{"anchor", s.Anchor}, {"at", s.At}, {"startAt", s.StartAt}, {"endAt", s.EndAt}} {
		c.check(f.at.IsZero() || f.at.Year() >= 1970 && f.at.Year() <= LastYear, at+f.name, f.at, "must lie in the years from 1970 to 9998")
	}
}

// LastYear is the last one that a schedule may name: Never lies in the next.
const LastYear = 9998

// leftovers refuses what a schedule of another kind is made of.
func (c *checker) leftovers(at string, s *ScheduleSpec) {
	for _, f := range []struct {
		name  string
		given bool
		value any
		kinds []ScheduleKind
	}{
		{"expr", s.Expr != "", s.Expr, []ScheduleKind{ScheduleCron}},
		{"every", s.Every != 0, DurationText(s.Every), []ScheduleKind{ScheduleFixedRate, ScheduleFixedDelay, ScheduleDailyWindow}},
		{"anchor", !s.Anchor.IsZero(), nil, []ScheduleKind{ScheduleFixedRate, ScheduleFixedDelay}},
		{"at", !s.At.IsZero(), nil, []ScheduleKind{ScheduleOnce}},
		{"instants", len(s.Instants) > 0, nil, []ScheduleKind{ScheduleInstants}},
		{"windowFrom", s.WindowFrom != "", s.WindowFrom, []ScheduleKind{ScheduleDailyWindow}},
		{"windowTo", s.WindowTo != "", s.WindowTo, []ScheduleKind{ScheduleDailyWindow}},
		{"dstGap", s.Gap != "", s.Gap, []ScheduleKind{ScheduleCron, ScheduleDailyWindow}},
		// A window goes by elapsed time: an hour that comes twice is served twice.
		{"dstOverlap", s.Overlap != "", s.Overlap, []ScheduleKind{ScheduleCron}},
	} {
		c.check(!f.given || slices.Contains(f.kinds, s.Kind), at+f.name, f.value,
			"is for schedules of kind "+kindNames(f.kinds)+"; leave it out for "+string(s.Kind))
	}
}

func kindNames(kinds []ScheduleKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// DurationText writes a duration without zero parts: "1h30m", "5m", "0s".
func DurationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
