package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// TestNextProperties: what must hold for every rule, zone and policy.
func TestNextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRule(t)
		c, err := Parse(r.text, r.dialect)
		if err != nil {
			t.Fatal(err)
		}
		loc, err := time.LoadLocation(rapid.SampledFrom(bruteZones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		dst := DST{Gap: rapid.SampledFrom([]GapPolicy{GapRunAtEnd, GapSkip}).Draw(t, "gap")}
		at := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "at"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		for range 20 {
			next, ok := c.NextIn(at, loc, dst)
			if !ok {
				break
			}
			if !next.After(at) || next.Nanosecond() != 0 || next.Location() != loc {
				t.Fatalf("%q: %s follows %s", r.text, next, at)
			}
			// Nothing fires in between, wherever one asks from.
			inside := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at))-1).Draw(t, "inside")))
			if again, _ := c.NextIn(inside, loc, dst); !again.Equal(next) {
				t.Fatalf("%q: after %s comes %s, but after %s comes %s", r.text, at, next, inside, again)
			}
			if !r.match(next) && (dst.Gap == GapSkip || !r.gapEnd(next)) {
				t.Fatalf("%q: %s does not match the fields", r.text, next)
			}
			at = next
		}
	})
}

// gapEnd: clocks go forward at this instant.
func (r *bruteRule) gapEnd(at time.Time) bool {
	_, offset := at.Zone()
	_, before := at.Add(-time.Second).Zone()
	return !r.hourly && offset > before
}

// TestAgainstRobfig compares the plain five-field language, in UTC, with the
// library most Go programs use. Left out is what it does not have or reads
// differently: wrapping ranges, Sunday as 7, steps over a starred day field.
func TestAgainstRobfig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := func(lo, hi int) string {
			if n := genNumbers(t, lo, hi, false); !n.open {
				return n.text
			}
			return "*"
		}
		text := fmt.Sprintf("%s %s %s %s %s", genNumbers(t, 0, 59, false).text, genNumbers(t, 0, 23, false).text,
			days(1, 31), genNumbers(t, 1, 12, false).text, days(0, 6))
		ours, err := Parse(text, DialectStandard)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(946_684_800, 3_786_912_000).Draw(t, "at"), 0).UTC()
		for range 50 {
			want, got := theirs.Next(at), ours.Next(at)
			if want.IsZero() { // theirs gives up after five years
				if !got.IsZero() && got.Before(at.AddDate(5, 0, 0)) {
					t.Fatalf("%q after %s: %s, want none for five years", text, at, got)
				}
				break
			}
			if !got.Equal(want) {
				t.Fatalf("%q after %s: %s, want %s", text, at, got, want)
			}
			at = got
		}
	})
}

func BenchmarkNext(b *testing.B) {
	zones := []string{"UTC", "America/New_York", "Asia/Shanghai"}
	exprs := []string{"* * * * * *", "0 0/5 * * * ?", "30 2 * * *", "0 9-17 * * MON-FRI", "0 0 12 ? * 6#3", "0 0 0 29 2 ?", "0 0 0 ? 2 1#5"}
	for _, expr := range exprs {
		c := mustParse(b, expr)
		for _, zone := range zones {
			loc := mustZone(b, zone)
			b.Run(expr+"/"+zone, func(b *testing.B) {
				start := time.Date(2026, 3, 1, 0, 0, 0, 0, loc)
				at := start
				for b.Loop() {
					next, ok := c.NextIn(at, loc, DST{})
					if at = next; !ok || next.Year() > 2090 {
						at = start
					}
				}
			})
		}
	}
	b.Run("every year in a gap/New_York", func(b *testing.B) {
		c, loc := mustParse(b, "0 30 2 ? 3 1#2"), mustZone(b, "America/New_York")
		for b.Loop() {
			c.NextIn(time.Unix(1_772_323_200, 0), loc, DST{Gap: GapSkip})
		}
	})
	b.Run("parse, standard", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("*/5 9-17 * * MON-FRI", DialectAuto); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse, standard by ours", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("0/5 9-17 * * MON-FRI", DialectAuto); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("0 0/5 9-17 ? * MON-FRI 2026-2030", DialectAuto); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse, never fires", func(b *testing.B) {
		for b.Loop() {
			if _, err := Parse("0 0 31 2 *", DialectAuto); err != nil {
				b.Fatal(err)
			}
		}
	})
}
