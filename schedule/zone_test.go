package schedule

import (
	"testing"
	"time"
)

// TestClockChanges shows the policies at real clock changes. Fires are written
// with their offset, so that the two passes of an overlap can be told apart.
func TestClockChanges(t *testing.T) {
	const (
		newYork  = "America/New_York"    // 2026: 8 March 02:00 → 03:00, 1 November 02:00 → 01:00
		berlin   = "Europe/Berlin"       // 2026: 29 March 02:00 → 03:00, 25 October 03:00 → 02:00
		lordHowe = "Australia/Lord_Howe" // 2026: 5 April 02:00 → 01:30, 4 October 02:00 → 02:30
		saoPaulo = "America/Sao_Paulo"   // 2018: 18 February 00:00 → 23:00, 4 November 00:00 → 01:00
		apia     = "Pacific/Apia"        // 2011: 30 December did not exist
		rabat    = "Africa/Casablanca"   // 2026: 15 February 03:00 → 02:00, 22 March 02:00 → 03:00
	)
	skip, both := DST{Gap: GapSkip}, DST{Overlap: OverlapBoth}
	tests := []struct {
		name, expr, zone string
		dst              DST
		from, want       string
	}{
		{"gap: fixed time runs at the end", "30 2 * * *", newYork, DST{}, "2026-03-07T12:00:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-09T02:30:00-04:00"},
		{"gap: fixed time is skipped", "30 2 * * *", newYork, skip, "2026-03-07T12:00:00Z",
			"2026-03-09T02:30:00-04:00"},
		{"gap: several fixed times run once", "0,20,40 2 * * *", newYork, DST{}, "2026-03-08T05:00:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-09T02:00:00-04:00"},
		{"gap: the end is a fire of its own", "0 2,3 * * *", newYork, DST{}, "2026-03-08T05:00:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-09T02:00:00-04:00"},
		{"gap: a start within the policy's instant", "30 2 * * *", newYork, DST{}, "2026-03-08T06:59:59.999Z",
			"2026-03-08T03:00:00-04:00"},
		{"gap: not twice from its own end", "30 2 * * *", newYork, DST{}, "2026-03-08T07:00:00Z",
			"2026-03-09T02:30:00-04:00"},
		{"gap: the edge before exists", "59 1 * * *", newYork, DST{}, "2026-03-08T05:00:00Z",
			"2026-03-08T01:59:00-05:00, 2026-03-09T01:59:00-04:00"},
		{"gap: the date is the missing time's", "30 2 8 3 *", newYork, DST{}, "2026-01-01T00:00:00Z",
			"2026-03-08T03:00:00-04:00, 2027-03-08T02:30:00-05:00"},
		{"gap: a time that always falls into it never fires when skipped", "0 30 2 ? 3 1#2", newYork, skip, "2026-01-01T00:00:00Z", "none"},
		{"gap: a time that always falls into it fires at its end", "0 30 2 ? 3 1#2", newYork, DST{}, "2026-01-01T00:00:00Z",
			"2026-03-08T03:00:00-04:00, 2027-03-14T03:00:00-04:00"},
		{"gap: hourly goes on by elapsed time", "0 * * * *", newYork, DST{}, "2026-03-08T05:30:00Z",
			"2026-03-08T01:00:00-05:00, 2026-03-08T03:00:00-04:00, 2026-03-08T04:00:00-04:00"},
		{"gap: half past every hour adds nothing", "30 * * * *", newYork, DST{}, "2026-03-08T05:30:00Z",
			"2026-03-08T01:30:00-05:00, 2026-03-08T03:30:00-04:00"},
		{"gap: every quarter goes on", "*/15 * * * *", newYork, DST{}, "2026-03-08T06:30:00Z",
			"2026-03-08T01:45:00-05:00, 2026-03-08T03:00:00-04:00, 2026-03-08T03:15:00-04:00"},
		{"gap: every quarter of a missing hour runs once", "*/15 2 * * *", newYork, DST{}, "2026-03-08T05:30:00Z",
			"2026-03-08T03:00:00-04:00, 2026-03-09T02:00:00-04:00"},
		{"gap: every two hours", "0 */2 * * *", newYork, DST{}, "2026-03-08T04:30:00Z",
			"2026-03-08T00:00:00-05:00, 2026-03-08T03:00:00-04:00, 2026-03-08T04:00:00-04:00"},
		{"gap: at midnight", "0 0 * * *", saoPaulo, DST{}, "2018-11-03T12:00:00Z",
			"2018-11-04T01:00:00-02:00, 2018-11-05T00:00:00-02:00"},
		{"gap: at midnight, skipped", "0 0 * * *", saoPaulo, skip, "2018-11-03T12:00:00Z", "2018-11-05T00:00:00-02:00"},
		{"gap: half an hour", "15 2 * * *", lordHowe, DST{}, "2026-10-03T00:00:00Z",
			"2026-10-04T02:30:00+11:00, 2026-10-05T02:15:00+11:00"},
		{"gap: half an hour, outside", "45 2 * * *", lordHowe, DST{}, "2026-10-03T00:00:00Z",
			"2026-10-04T02:45:00+11:00"},
		{"gap: a whole day", "0 9 * * *", apia, DST{}, "2011-12-29T00:00:00Z",
			"2011-12-29T09:00:00-10:00, 2011-12-31T00:00:00+14:00, 2011-12-31T09:00:00+14:00"},
		{"gap: a whole day, skipped", "0 9 * * *", apia, skip, "2011-12-29T20:00:00Z",
			"2011-12-31T09:00:00+14:00"},

		{"overlap: fixed time runs once, first", "30 1 * * *", newYork, DST{}, "2026-10-31T12:00:00Z",
			"2026-11-01T01:30:00-04:00, 2026-11-02T01:30:00-05:00"},
		{"overlap: fixed time runs in both", "30 1 * * *", newYork, both, "2026-10-31T12:00:00Z",
			"2026-11-01T01:30:00-04:00, 2026-11-01T01:30:00-05:00, 2026-11-02T01:30:00-05:00"},
		{"overlap: asked between the passes", "30 1 * * *", newYork, DST{}, "2026-11-01T05:45:00Z",
			"2026-11-02T01:30:00-05:00"},
		{"overlap: asked between the passes, both", "30 1 * * *", newYork, both, "2026-11-01T05:45:00Z",
			"2026-11-01T01:30:00-05:00"},
		{"overlap: the first second of the second pass", "0 1 * * *", newYork, both, "2026-11-01T05:00:00Z",
			"2026-11-01T01:00:00-05:00"},
		{"overlap: its end exists once", "0 2 * * *", newYork, DST{}, "2026-11-01T00:00:00Z",
			"2026-11-01T02:00:00-05:00, 2026-11-02T02:00:00-05:00"},
		{"overlap: hourly goes on by elapsed time", "0 * * * *", newYork, DST{}, "2026-11-01T04:30:00Z",
			"2026-11-01T01:00:00-04:00, 2026-11-01T01:00:00-05:00, 2026-11-01T02:00:00-05:00"},
		{"overlap: every quarter of the repeated hour goes on", "*/30 1 * * *", newYork, DST{}, "2026-11-01T04:30:00Z",
			"2026-11-01T01:00:00-04:00, 2026-11-01T01:30:00-04:00, 2026-11-01T01:00:00-05:00, 2026-11-01T01:30:00-05:00, 2026-11-02T01:00:00-05:00"},
		{"overlap: a list of minutes is fixed times", "0,30 1 * * *", newYork, DST{}, "2026-11-01T04:30:00Z",
			"2026-11-01T01:00:00-04:00, 2026-11-01T01:30:00-04:00, 2026-11-02T01:00:00-05:00"},
		{"overlap: berlin", "30 2 * * *", berlin, DST{}, "2026-10-24T12:00:00Z",
			"2026-10-25T02:30:00+02:00, 2026-10-26T02:30:00+01:00"},
		{"overlap: over midnight runs on one date once", "30 23 * * *", saoPaulo, DST{}, "2018-02-17T12:00:00Z",
			"2018-02-17T23:30:00-02:00, 2018-02-18T23:30:00-03:00"},
		{"overlap: half an hour", "45 1 * * *", lordHowe, DST{}, "2026-04-04T00:00:00Z",
			"2026-04-05T01:45:00+11:00, 2026-04-06T01:45:00+10:30"},
		{"overlap: half an hour, both", "45 1 * * *", lordHowe, both, "2026-04-04T00:00:00Z",
			"2026-04-05T01:45:00+11:00, 2026-04-05T01:45:00+10:30, 2026-04-06T01:45:00+10:30"},
		{"overlap: half an hour, before it", "15 1 * * *", lordHowe, both, "2026-04-04T00:00:00Z",
			"2026-04-05T01:15:00+11:00, 2026-04-06T01:15:00+10:30"},
		{"overlap: ramadan", "30 2 * * *", rabat, DST{}, "2026-02-14T12:00:00Z",
			"2026-02-15T02:30:00+01:00, 2026-02-16T02:30:00Z"},
		{"gap: after ramadan", "30 2 * * *", rabat, DST{}, "2026-03-21T12:00:00Z",
			"2026-03-22T03:00:00+01:00, 2026-03-23T02:30:00+01:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			loc := mustZone(t, tt.zone)
			c := mustParse(t, tt.expr)
			checkFires(t, func(after time.Time) (time.Time, bool) { return c.NextIn(after, loc, tt.dst) }, tt.from, tt.want)
		})
	}
}

func mustParse(t testing.TB, expr string) *Cron {
	t.Helper()
	c, err := Parse(expr, DialectAuto)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestElapsed counts the fires of a whole year with both clock changes: rules
// that go by elapsed time have one for each stretch of real time.
func TestElapsed(t *testing.T) {
	loc := mustZone(t, "America/New_York")
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, loc)
	end := from.AddDate(1, 0, 0)
	for expr, step := range map[string]time.Duration{"0 * * * *": time.Hour, "*/15 * * * *": 15 * time.Minute} {
		c := mustParse(t, expr)
		for at := from; at.Before(end); {
			next := c.Next(at)
			if next.Sub(at) != step {
				t.Fatalf("%s: %s then %s", expr, at, next)
			}
			at = next
		}
	}
}

// TestPastZoneTable crosses 31 December of leap years beyond the zones' tables,
// where time.ZoneBounds is wrong.
func TestPastZoneTable(t *testing.T) {
	c := mustParse(t, "30 12 * * *")
	for _, name := range bruteZones {
		loc := mustZone(t, name)
		for _, year := range []int{2036, 2040, 2044, 2096} {
			at := time.Date(year, 12, 25, 12, 30, 0, 0, loc)
			for day := 26; day < 45; day++ {
				if at = c.Next(at); !at.Equal(time.Date(year, 12, day, 12, 30, 0, 0, loc)) {
					t.Fatalf("%s: %s, want day %d", name, at, day)
				}
			}
		}
	}
}

// A fixed time that the clock passes twice fires at the first, or at both.
func TestATimeThatComesTwice(t *testing.T) {
	loc := mustZone(t, "America/New_York")
	from := mustAt(t, "2026-10-31T12:00:00-04:00")
	first, again, next := "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"
	for policy, want := range map[OverlapPolicy][]string{"": {first, next}, OverlapOnce: {first, next}, OverlapBoth: {first, again, next}} {
		at := from
		for _, w := range want {
			var ok bool
			if at, ok = mustParse(t, "30 1 * * *").NextIn(at, loc, DST{Overlap: policy}); !ok || !at.Equal(mustAt(t, w)) {
				t.Fatalf("%q: %s, want %s", policy, at, w)
			}
		}
	}
}
