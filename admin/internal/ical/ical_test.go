package ical_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/ical"
)

// today is when the files are read.
var today = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func file(lines ...string) string {
	return "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCALENDAR\r\n"
}

func event(lines ...string) string {
	return "BEGIN:VEVENT\r\nUID:1\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT"
}

func TestParse(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return v.UTC()
	}
	for name, c := range map[string]struct {
		text string
		want ical.Event
	}{
		"a day":            {event("DTSTART;VALUE=DATE:20261001", "SUMMARY:国庆节"), ical.Event{Summary: "国庆节", AllDay: true, From: at("2026-10-01T00:00:00Z"), To: at("2026-10-02T00:00:00Z")}},
		"several days":     {event("DTSTART;VALUE=DATE:20261001", "DTEND;VALUE=DATE:20261004"), ical.Event{AllDay: true, From: at("2026-10-01T00:00:00Z"), To: at("2026-10-04T00:00:00Z")}},
		"days by duration": {event("DTSTART;VALUE=DATE:20261001", "DURATION:P1W"), ical.Event{AllDay: true, From: at("2026-10-01T00:00:00Z"), To: at("2026-10-08T00:00:00Z")}},
		"Apple's marks":    {event("X-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY", "DTSTART;VALUE=DATE:20261010"), ical.Event{Special: ical.SpecialWorkday, AllDay: true, From: at("2026-10-10T00:00:00Z"), To: at("2026-10-11T00:00:00Z")}},
		"UTC":              {event("DTSTART:20261001T080000Z", "DTEND:20261001T090000Z"), ical.Event{From: at("2026-10-01T08:00:00Z"), To: at("2026-10-01T09:00:00Z")}},
		"a zone":           {event(`DTSTART;TZID="America/New_York":20261001T080000`, "DURATION:PT1H30M"), ical.Event{From: at("2026-10-01T12:00:00Z"), To: at("2026-10-01T13:30:00Z")}},
		"floating":         {event("DTSTART:20261001T080000", "DTEND:20261001T090000"), ical.Event{From: at("2026-10-01T00:00:00Z"), To: at("2026-10-01T01:00:00Z")}},
		"folded, escaped":  {event("DTSTART;VALUE=DATE:20261001", "SUMMARY:Year\\, e", " nd\\; books"), ical.Event{Summary: "Year, end; books", AllDay: true, From: at("2026-10-01T00:00:00Z"), To: at("2026-10-02T00:00:00Z")}},
		"with an alarm":    {event("DTSTART;VALUE=DATE:20261001", "BEGIN:VALARM", "DTSTART:nonsense", "END:VALARM"), ical.Event{AllDay: true, From: at("2026-10-01T00:00:00Z"), To: at("2026-10-02T00:00:00Z")}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ical.Parse(file(c.text), shanghai, today)
			require.NoError(t, err)
			c.want.Line = 3
			require.Equal(t, []ical.Event{c.want}, got)
		})
	}
}

func TestDates(t *testing.T) {
	got, err := ical.Parse(file(event("DTSTART;VALUE=DATE:20260227", "DTEND;VALUE=DATE:20260302")), time.UTC, today)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-02-27", "2026-02-28", "2026-03-01"}, got[0].Dates())
}

func TestCancelledEventsAndZonesArePassedOver(t *testing.T) {
	got, err := ical.Parse(file(
		"BEGIN:VTIMEZONE", "TZID:X", "BEGIN:STANDARD", "DTSTART:19700101T000000", "RRULE:FREQ=YEARLY", "END:STANDARD", "END:VTIMEZONE",
		event("DTSTART;VALUE=DATE:20261001", "STATUS:CANCELLED")), time.UTC, today)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestMistakesHaveTheirLine(t *testing.T) {
	day := "DTSTART;VALUE=DATE:20261001"
	for name, c := range map[string]struct {
		text string
		line int
	}{
		"no calendar":          {"hello: world", 1},
		"no property":          {file("nonsense"), 3},
		"not closed":           {"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + day, 3},
		"closes another":       {file("BEGIN:VEVENT", day, "END:VALARM", "END:VEVENT"), 5},
		"no start":             {file(event("SUMMARY:x")), 3},
		"no date":              {file(event("DTSTART;VALUE=DATE:20260230")), 5},
		"no instant":           {file(event("DTSTART:2026-10-01")), 5},
		"unknown zone":         {file(event("DTSTART;TZID=Customized Time Zone:20261001T080000")), 5},
		"every hour":           {file(event(day, "RRULE:FREQ=HOURLY")), 3},
		"no rule":              {file(event(day, "RRULE:FREQ=YEARLY;BYMOON=1")), 3},
		"two rules":            {file(event(day, "RRULE:FREQ=YEARLY", "RRULE:FREQ=DAILY")), 7},
		"an occurrence":        {file(event(day, "RECURRENCE-ID;VALUE=DATE:20261001")), 6},
		"a rule of exceptions": {file(event(day, "RRULE:FREQ=YEARLY", "EXRULE:FREQ=YEARLY")), 7},
		"too many times":       {file(event(day, "RRULE:FREQ=DAILY")), 3},
		"no EXDATE":            {file(event(day, "RRULE:FREQ=YEARLY", "EXDATE;VALUE=DATE:2026")), 7},
		"another kind":         {file(event(day, "RRULE:FREQ=YEARLY", "EXDATE:20261001T000000Z")), 3},
		"a period":             {file(event(day, "RDATE;VALUE=PERIOD:20261001T000000Z/PT1H")), 6},
		"before all calendars": {file(event("DTSTART;VALUE=DATE:00010101", "RRULE:FREQ=YEARLY")), 3},
		"ends before":          {file(event(day, "DTEND;VALUE=DATE:20261001")), 7},
		"day and instant":      {file(event(day, "DTEND:20261002T000000Z")), 7},
		"bad duration":         {file(event(day, "DURATION:1D")), 6},
		"months are no minute": {file(event(day, "DURATION:P1M")), 6},
		"half a day":           {file(event(day, "DURATION:PT12H")), 7},
		"years":                {file(event(day, "DTEND;VALUE=DATE:20361001")), 7},
		"a long property":      {file(event(day, "SUMMARY:"+strings.Repeat("\r\n x", ical.MaxProperty))), 6},
		"many properties":      {file(strings.Repeat("X:\r\n", ical.MaxProperties)), ical.MaxProperties + 1},
		"a long rule":          {file(event(day, "RRULE:FREQ=YEARLY;BYMONTHDAY=1"+strings.Repeat(",1", 250))), 6},
		"many exceptions":      {file(event(day, "EXDATE;VALUE=DATE:20261001"+strings.Repeat(",20261001", 1000))), 6},
		"a long duration":      {file(event(day, "DURATION:P"+strings.Repeat("0", 64)+"1D")), 6},
		"bad parameter":        {file(event("DTSTART;VALUE:20261001")), 5},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ical.Parse(c.text, time.UTC, today)
			var e *ical.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.line, e.Line, e.Msg)
		})
	}
}

// A file costs memory, and so time, in proportion to its length, whatever its
// lines are: what is copied anew with each line would show as the square.
func TestWorkGrowsWithTheLength(t *testing.T) {
	day := event("DTSTART;VALUE=DATE:20261001")
	for name, text := range map[string]func(n int) string{
		"a folded property":  func(n int) string { return file("X:" + strings.Repeat("\r\n x", n)) },
		"folded of one byte": func(n int) string { return file("X:" + strings.Repeat("\n ", 20*n) + "x") },
		"folded parameters":  func(n int) string { return file("X" + strings.Repeat(";\r\n A=1", n/4) + ":x") },
		"many folded":        func(n int) string { return file(strings.Repeat("X:a\r\n b\r\n", n)) },
		"events":             func(n int) string { return file(strings.Repeat(day+"\r\n", n/8)) },
		"days with exceptions": func(n int) string {
			return file(event("DTSTART;TZID=Asia/Shanghai:20261001T000000", "EXDATE;TZID=Asia/Shanghai:20261001T000000"+strings.Repeat(",20261001T000000", n/64)))
		},
		"open components": func(n int) string { return strings.Repeat("BEGIN:VCALENDAR\n", n) },
	} {
		t.Run(name, func(t *testing.T) {
			const n = 15_000
			// What else the process asks for meanwhile is less than 64 KiB.
			small, large := max(allocated(text(n)), 64<<10), allocated(text(4*n))
			require.Less(t, large, 8*small, "four times the file takes %d bytes instead of %d", large, small)
		})
	}
}

// allocated is how many bytes the reading of a file asks for.
func allocated(text string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = ical.Parse(text, time.UTC, today)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzParse(f *testing.F) {
	f.Add(file(event("DTSTART;VALUE=DATE:20261001", "DURATION:P1DT2H", "SUMMARY:a\\nb")))
	f.Add(file(event(`DTSTART;TZID="Europe/Berlin";X=1:20261001T080000`, "DTEND:20261001T080000Z")))
	f.Add(file(event("DTSTART;TZID=Europe/Berlin:20261019T090000", "RRULE:FREQ=MONTHLY;BYDAY=-1MO,2TU;BYSETPOS=-1;INTERVAL=2;WKST=SU;COUNT=9", "EXDATE:20261102T080000Z")))
	f.Add(file(event("DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY;BYWEEKNO=53;BYYEARDAY=-1;BYMONTHDAY=29;BYMONTH=2;UNTIL=20300101", "RDATE;VALUE=DATE:20260107,20260109")))
	f.Fuzz(func(t *testing.T, text string) {
		events, err := ical.Parse(text, time.UTC, today)
		if err != nil {
			var e *ical.Error
			require.ErrorAs(t, err, &e)
			require.Positive(t, e.Line)
			return
		}
		for _, e := range events {
			require.False(t, e.To.Before(e.From))
			if e.AllDay {
				require.NotEmpty(t, e.Dates())
			}
		}
	})
}
