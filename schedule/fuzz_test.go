package schedule

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzParse feeds arbitrary text in every dialect: either a Cron whose Next
// moves forward, or a ParseError whose place lies in the expression.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"*/5 * * * *", "0 0 2 * * MON-FRI", "0 0 12 ? * 6#3", "0 0 0 L-3W * ? 2027-2030/2", "0 0 22-2 15W,3 MAR/3 ?",
		"@daily", "@every 1h30m", "0 0 31 2 *", "0 0 ＊ * *", "0,1,2-5/2, 0 * * *", "0 0 0 ? * FRIL", "\xff\t@", "TZ=UTC * * * * *",
	} {
		f.Add(seed, int64(1_772_323_200))
	}
	zone := mustZone(f, "America/New_York")
	f.Fuzz(func(t *testing.T, expr string, sec int64) {
		if len(split(expr)) > 0 {
			checkParsersAgree(t, expr)
		}
		for _, d := range []Dialect{DialectAuto, DialectStandard, DialectSeconds, DialectQuartz} {
			c, err := Parse(expr, d)
			if err != nil {
				checkParseError(t, expr, err)
				continue
			}
			checkForward(t, c, time.Unix(sec, 0).In(zone))
		}
	})
}

func checkParseError(t *testing.T, expr string, err error) {
	t.Helper()
	var pe *ParseError
	if !errors.As(err, &pe) {
		t.Fatalf("%q: %T", expr, err)
	}
	if pe.Expr != expr || pe.Pos < 0 || pe.Pos > len(expr) || pe.Len < 1 || pe.Code == "" || pe.Msg == "" {
		t.Errorf("%q: %+v", expr, *pe)
	}
	if utf8.ValidString(expr) && !utf8.ValidString(pe.Detail()) {
		t.Errorf("%q: broken text %q", expr, pe.Detail())
	}
}

// checkForward follows a few fires.
func checkForward(t *testing.T, c *Cron, at time.Time) {
	t.Helper()
	for range 4 {
		next := c.Next(at)
		if next.IsZero() {
			return
		}
		if !next.After(at) || c.Never() {
			t.Fatalf("%q: Next(%s) = %s, never %t", c, at, next, c.Never())
		}
		at = next
	}
}
