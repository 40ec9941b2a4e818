package ical_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/ical"
)

func starts(events []ical.Event, layout string) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.From.Format(layout))
	}
	return out
}

func TestRecurringDays(t *testing.T) {
	const newYear = "DTSTART;VALUE=DATE:20200101"
	years := func(monthDay string, from, to int) []string {
		var out []string
		for y := from; y <= to; y++ {
			out = append(out, fmt.Sprintf("%d-%s", y, monthDay))
		}
		return out
	}
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"without an end: for ten years, and not of long ago": {[]string{newYear, "RRULE:FREQ=YEARLY"}, years("01-01", 2026, 2036)},
		"the fourth Thursday":                                {[]string{"DTSTART;VALUE=DATE:20251127", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;COUNT=3"}, []string{"2025-11-27", "2026-11-26", "2027-11-25"}},
		"until a day":                                        {[]string{"DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;UNTIL=20260119"}, []string{"2026-01-05", "2026-01-12", "2026-01-19"}},
		"until an instant":                                   {[]string{"DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;UNTIL=20260119T000000Z"}, []string{"2026-01-05", "2026-01-12", "2026-01-19"}},
		"excepted":                                           {[]string{"DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;VALUE=DATE:20260112,20260119"}, []string{"2026-01-05", "2026-01-26"}},
		"days beside the rule":                               {[]string{"DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;COUNT=2", "RDATE;VALUE=DATE:20260107"}, []string{"2026-01-05", "2026-01-07", "2026-01-12"}},
		"days without a rule":                                {[]string{"DTSTART;VALUE=DATE:20260105", "RDATE;VALUE=DATE:20260107,20260109"}, []string{"2026-01-05", "2026-01-07", "2026-01-09"}},
		"the start is not of them":                           {[]string{"DTSTART;VALUE=DATE:20260106", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2"}, []string{"2026-01-06", "2026-01-12", "2026-01-19"}},
		"the last Monday of a month":                         {[]string{"DTSTART;VALUE=DATE:20260525", "RRULE:FREQ=MONTHLY;BYDAY=-1MO;COUNT=3"}, []string{"2026-05-25", "2026-06-29", "2026-07-27"}},
		"leap days":                                          {[]string{"DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY"}, []string{"2028-02-29", "2032-02-29", "2036-02-29"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ical.Parse(file(event(append(c.lines, "SUMMARY:x")...)), time.UTC, today)
			require.NoError(t, err)
			require.Equal(t, c.want, starts(got, time.DateOnly))
			for _, e := range got {
				require.Equal(t, 24*time.Hour, e.To.Sub(e.From))
				require.Equal(t, "x", e.Summary)
				require.True(t, e.AllDay)
			}
		})
	}
}

// TestRecurringInstants: nine in the morning stays nine when the clocks change.
func TestRecurringInstants(t *testing.T) {
	lines := []string{"DTSTART;TZID=Europe/Berlin:20261019T090000", "DTEND;TZID=Europe/Berlin:20261019T100000"}
	got, err := ical.Parse(file(event(append(lines, "RRULE:FREQ=WEEKLY;UNTIL=20261102", "EXDATE;TZID=Europe/Berlin:20261102T090000")...)), time.UTC, today)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-10-19T07:00:00Z", "2026-10-26T08:00:00Z"}, starts(got, time.RFC3339))
	require.Equal(t, got[1].From.Add(time.Hour), got[1].To)

	got, err = ical.Parse(file(event(append(lines, "RRULE:FREQ=WEEKLY;UNTIL=20261102")...)), time.UTC, today)
	require.NoError(t, err)
	require.Len(t, got, 3, "the last day counts as a whole")
}

// TestRecurringIsBounded: no file makes more than so many events, or keeps the
// server counting for days that never come.
func TestRecurringIsBounded(t *testing.T) {
	_, err := ical.Parse(file(event("DTSTART;VALUE=DATE:20261001", "RRULE:FREQ=DAILY")), time.UTC, today)
	require.ErrorContains(t, err, "more than 1000 times until 2036-11-22")
	never := event("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30")
	got, err := ical.Parse(file(never), time.UTC, today)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-01-01"}, starts(got, time.DateOnly))
	_, err = ical.Parse(file(strings.Repeat(never+"\r\n", 101)), time.UTC, today)
	require.ErrorContains(t, err, "at most 100")
	weekly := event("DTSTART;VALUE=DATE:20261001", "RRULE:FREQ=WEEKLY")
	_, err = ical.Parse(file(strings.Repeat(weekly+"\r\n", 20)), time.UTC, today)
	require.ErrorContains(t, err, "more than 6000 events")
}
