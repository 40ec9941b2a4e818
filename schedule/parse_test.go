package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDetect(t *testing.T) {
	tests := map[string]Dialect{
		"* * * * *":              DialectStandard,
		"@daily":                 DialectStandard,
		"@every 5s":              DialectStandard,
		"0 0 2 * * *":            DialectSeconds,
		"0 0 2 * JUL WED":        DialectSeconds, // L and W of names are no marks
		"0 0 2 * jul wed-thu":    DialectSeconds,
		"0 0 2 * * 1-5":          DialectSeconds,
		"0 0 2 ? * 2":            DialectQuartz,
		"0 0 2 L * *":            DialectQuartz,
		"0 0 2 15w * *":          DialectQuartz,
		"0 0 2 * * WEDL":         DialectQuartz,
		"0 0 2 * * 6L":           DialectQuartz,
		"0 0 2 * * 6#3":          DialectQuartz,
		"0 0 2 * * ? 2027":       DialectQuartz,
		"0 0 2 * * * *":          DialectQuartz,
		"":                       DialectStandard,
		"one two":                DialectStandard,
		"0\t0  2 \t * JAN-MAR *": DialectSeconds,
	}
	for expr, want := range tests {
		if got := Detect(expr); got != want {
			t.Errorf("Detect(%q) = %s, want %s", expr, got, want)
		}
	}
}

// TestParseFires shows each form of the language by its first fires in UTC.
func TestParseFires(t *testing.T) {
	tests := []struct {
		name, expr string
		dialect    Dialect
		from       string
		want       string // fires, separated by a comma
	}{
		{"five fields", "30 2 * * *", DialectAuto, "2026-03-01T00:00:00Z", "2026-03-01T02:30:00Z, 2026-03-02T02:30:00Z"},
		{"strictly after", "30 2 * * *", DialectAuto, "2026-03-01T02:30:00Z", "2026-03-02T02:30:00Z"},
		{"just before, with a fraction", "30 2 * * *", DialectAuto, "2026-03-01T02:29:59.999999999Z", "2026-03-01T02:30:00Z"},
		{"just after, with a fraction", "30 2 * * *", DialectAuto, "2026-03-01T02:30:00.000000001Z", "2026-03-02T02:30:00Z"},
		{"sunday is 0", "0 0 * * 0", DialectStandard, "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"},
		{"sunday is 7", "0 0 * * 7", DialectStandard, "2026-03-01T00:00:00Z", "2026-03-08T00:00:00Z"},
		{"friday to sunday as 5-7", "0 0 * * 5-7", DialectStandard, "2026-03-02T00:00:00Z", "2026-03-06T00:00:00Z, 2026-03-07T00:00:00Z, 2026-03-08T00:00:00Z, 2026-03-13T00:00:00Z"},
		{"whole week as 0-7", "0 0 * * 0-7", DialectStandard, "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z, 2026-03-04T00:00:00Z"},
		{"days wrap", "0 0 * * FRI-MON", DialectStandard, "2026-03-03T00:00:00Z", "2026-03-06T00:00:00Z, 2026-03-07T00:00:00Z, 2026-03-08T00:00:00Z, 2026-03-09T00:00:00Z, 2026-03-13T00:00:00Z"},
		{"days wrap from 7", "0 0 * * 7-2", DialectStandard, "2026-03-03T00:00:00Z", "2026-03-08T00:00:00Z, 2026-03-09T00:00:00Z, 2026-03-10T00:00:00Z, 2026-03-15T00:00:00Z"},
		{"hours wrap with step", "0 22-3/2 * * *", DialectStandard, "2026-03-03T03:00:00Z", "2026-03-03T22:00:00Z, 2026-03-04T00:00:00Z, 2026-03-04T02:00:00Z, 2026-03-04T22:00:00Z"},
		{"months wrap", "0 0 1 NOV-FEB *", DialectStandard, "2026-02-02T00:00:00Z", "2026-11-01T00:00:00Z, 2026-12-01T00:00:00Z, 2027-01-01T00:00:00Z, 2027-02-01T00:00:00Z, 2027-11-01T00:00:00Z"},
		{"open step", "5/20 * * * *", DialectStandard, "2026-03-03T00:00:00Z", "2026-03-03T00:05:00Z, 2026-03-03T00:25:00Z, 2026-03-03T00:45:00Z, 2026-03-03T01:05:00Z"},
		{"name with step", "0 0 1 MAR/3 *", DialectStandard, "2026-03-03T00:00:00Z", "2026-06-01T00:00:00Z, 2026-09-01T00:00:00Z, 2026-12-01T00:00:00Z, 2027-03-01T00:00:00Z"},
		{"either day", "0 0 13 * 5", DialectStandard, "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z, 2026-03-13T00:00:00Z, 2026-03-20T00:00:00Z, 2026-03-27T00:00:00Z, 2026-04-03T00:00:00Z, 2026-04-10T00:00:00Z, 2026-04-13T00:00:00Z"},
		{"starred days restrict each other", "0 0 */2 * 1", DialectStandard, "2026-03-01T00:00:00Z", "2026-03-09T00:00:00Z, 2026-03-23T00:00:00Z, 2026-04-13T00:00:00Z"},
		{"seconds", "*/20 0 0 1 1 *", DialectAuto, "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z, 2027-01-01T00:00:20Z, 2027-01-01T00:00:40Z, 2028-01-01T00:00:00Z"},
		{"day 2 is tuesday", "0 0 9 * * 2", DialectAuto, "2026-03-01T00:00:00Z", "2026-03-03T09:00:00Z"},
		{"day 2 is monday in quartz", "0 0 9 ? * 2", DialectAuto, "2026-03-01T00:00:00Z", "2026-03-02T09:00:00Z"},
		{"leap day", "0 0 29 2 *", DialectStandard, "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z, 2032-02-29T00:00:00Z"},
		{"leap day over 2100", "0 0 29 2 *", DialectStandard, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"forty years without a fifth sunday in february", "0 0 0 ? 2 1#5", DialectQuartz, "2088-03-01T00:00:00Z", "2128-02-29T00:00:00Z"},
		{"year list ends", "0 0 0 1 1 ? 2027,2029", DialectQuartz, "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z, 2029-01-01T00:00:00Z, none"},
		{"last year", "0 0 0 1 1 ? 2099", DialectQuartz, "2026-03-01T00:00:00Z", "2099-01-01T00:00:00Z, none"},
		{"every other year", "0 0 0 1 1 ? 2027/2", DialectQuartz, "2026-03-01T00:00:00Z", "2027-01-01T00:00:00Z, 2029-01-01T00:00:00Z"},
		{"no 31 february", "0 0 31 2 *", DialectStandard, "2026-03-01T00:00:00Z", "none"},
		{"no 30 february on a weekday", "0 0 0 30 2 ?", DialectQuartz, "2026-03-01T00:00:00Z", "none"},
		{"years past", "0 0 0 1 1 ? 1999", DialectQuartz, "2026-03-01T00:00:00Z", "none"},
		{"before all time", "0 0 1 1 *", DialectStandard, "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z, 1971-01-01T00:00:00Z"},
		{"the end of time", "0 0 1 1 *", DialectStandard, "9998-12-31T00:00:00Z", "9999-01-01T00:00:00Z, none"},
		{"descriptor", "@Weekly", DialectAuto, "2026-03-02T00:00:00Z", "2026-03-08T00:00:00Z"},
		{"every, from the epoch", "@every 1h30m", DialectAuto, "2026-03-02T00:00:01Z", "2026-03-02T01:30:00Z, 2026-03-02T03:00:00Z"},
		{"every, in milliseconds", "@every 250ms", DialectSeconds, "2026-03-02T00:00:00.3Z", "2026-03-02T00:00:00.5Z, 2026-03-02T00:00:00.75Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Parse(tt.expr, tt.dialect)
			if err != nil {
				t.Fatal(err)
			}
			checkFires(t, func(after time.Time) (time.Time, bool) { return c.NextIn(after, time.UTC, DST{}) }, tt.from, tt.want)
		})
	}
}

// checkFires compares a chain of fires with a list in which "none" ends the chain.
func checkFires(t *testing.T, next func(time.Time) (time.Time, bool), from, want string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, from)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range strings.Split(want, ", ") {
		var ok bool
		if at, ok = next(at); !ok {
			got = append(got, "none")
			break
		}
		got = append(got, at.Format(time.RFC3339Nano))
	}
	if g := strings.Join(got, ", "); g != want {
		t.Errorf("after %s\n got %s\nwant %s", from, g, want)
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, expr string
		dialect    Dialect
		code       Code
		field      Field
		marked     string // the text under the carets, "" at the end of the expression
		pos        int
	}{
		{"empty", "", DialectAuto, CodeEmpty, FieldNone, "", 0},
		{"blank", " \t ", DialectAuto, CodeEmpty, FieldNone, " \t ", 0},
		{"dialect", "* * * * *", "vixie", CodeDialect, FieldNone, "* * * * *", 0},
		{"four fields", "* * * *", DialectAuto, CodeFieldCount, FieldDayOfWeek, "", 7},
		{"eight fields", "0 0 0 1 * ? 2027 x y", DialectAuto, CodeFieldCount, FieldNone, "x y", 17},
		{"five for quartz", "0 0 1 * ?", DialectQuartz, CodeFieldCount, FieldDayOfWeek, "", 9},
		{"six for standard", "0 0 2 * * *", DialectStandard, CodeFieldCount, FieldNone, "*", 10},
		{"seven for seconds", "0 0 2 * * * 2027", DialectSeconds, CodeFieldCount, FieldNone, "2027", 12},
		{"too long", "0 0 1 1 " + strings.Repeat("1,", 600) + "1", DialectAuto, CodeTooLong, FieldNone, "1," + strings.Repeat("1,", 91) + "1", 1024},
		{"minute 60", "60 * * * *", DialectAuto, CodeOutOfRange, FieldMinute, "60", 0},
		{"hour 24", "0 24 * * *", DialectAuto, CodeOutOfRange, FieldHour, "24", 2},
		{"day 0", "0 0 0 * *", DialectAuto, CodeOutOfRange, FieldDayOfMonth, "0", 4},
		{"month 13 in a list", "0 0 1 1,13 *", DialectAuto, CodeOutOfRange, FieldMonth, "13", 8},
		{"day of week 8", "0 0 * * 8", DialectAuto, CodeOutOfRange, FieldDayOfWeek, "8", 8},
		{"quartz day of week 0", "0 0 0 ? * 0", DialectAuto, CodeOutOfRange, FieldDayOfWeek, "0", 10},
		{"range end", "0 0 1-32 * *", DialectAuto, CodeOutOfRange, FieldDayOfMonth, "32", 6},
		{"year too late", "0 0 0 1 1 ? 2100", DialectAuto, CodeOutOfRange, FieldYear, "2100", 12},
		{"huge number", "99999999999999999999 * * * *", DialectAuto, CodeOutOfRange, FieldMinute, "99999999999999999999", 0},
		{"years backwards", "0 0 0 1 1 ? 2030-2027", DialectAuto, CodeBadRange, FieldYear, "2030-2027", 12},
		{"quartz mixed range", "0 0 0 ? * MON-6", DialectAuto, CodeBadRange, FieldDayOfWeek, "MON-6", 10},
		{"step 0", "*/0 * * * *", DialectAuto, CodeBadStep, FieldMinute, "0", 2},
		{"step 90", "*/90 * * * *", DialectAuto, CodeBadStep, FieldMinute, "90", 2},
		{"step missing", "*/ * * * *", DialectAuto, CodeMissing, FieldMinute, " ", 2},
		{"range end missing", "0 5- * * *", DialectAuto, CodeMissing, FieldHour, " ", 4},
		{"comma too many", "0 1,,2 * * *", DialectAuto, CodeMissing, FieldHour, ",", 4},
		{"comma at the end", "0 0 0 ? * 2,", DialectAuto, CodeMissing, FieldDayOfWeek, "", 12},
		{"name unknown", "0 0 * FOO *", DialectAuto, CodeUnknownName, FieldMonth, "FOO", 6},
		{"name too long", "0 0 * * MONDAY", DialectAuto, CodeUnknownName, FieldDayOfWeek, "MONDAY", 8},
		{"name of another field", "0 0 MON * *", DialectAuto, CodeUnknownName, FieldDayOfMonth, "MON", 4},
		{"letter", "0 x * * *", DialectAuto, CodeUnknownName, FieldHour, "x", 2},
		{"sign", "0 -1 * * *", DialectAuto, CodeCharacter, FieldHour, "-", 2},
		{"fraction", "0 1.5 * * *", DialectAuto, CodeCharacter, FieldHour, ".", 3},
		{"full width star", "0 0 ＊ * *", DialectAuto, CodeCharacter, FieldDayOfMonth, "＊", 4},
		{"line break", "0 0 * * *\n", DialectAuto, CodeCharacter, FieldDayOfWeek, "\n", 9},
		{"broken utf-8", "0 \xff * * *", DialectAuto, CodeCharacter, FieldHour, "\xff", 2},
		{"two stars", "** * * * *", DialectAuto, CodeCharacter, FieldMinute, "*", 1},
		{"? in standard", "0 0 ? * *", DialectAuto, CodeNotHere, FieldDayOfMonth, "?", 4},
		{"? in hours", "0 0 ? 1 * ?", DialectQuartz, CodeNotHere, FieldHour, "?", 4},
		{"L in standard", "0 0 L * *", DialectAuto, CodeNotHere, FieldDayOfMonth, "L", 4},
		{"6L in seconds", "0 0 0 * * 6L", DialectSeconds, CodeNotHere, FieldDayOfWeek, "L", 11},
		{"L in months", "0 0 0 1 L ?", DialectQuartz, CodeNotHere, FieldMonth, "L", 8},
		{"W alone", "0 0 0 W * ?", DialectQuartz, CodeNotHere, FieldDayOfMonth, "W", 6},
		{"W after a range", "0 0 0 1-5W * ?", DialectQuartz, CodeNotHere, FieldDayOfMonth, "W", 9},
		{"# after a range", "0 0 0 ? * 2-6#3", DialectQuartz, CodeNotHere, FieldDayOfWeek, "#", 13},
		{"LW in day of week", "0 0 0 ? * LW", DialectQuartz, CodeNotHere, FieldDayOfWeek, "W", 11},
		{"L-31", "0 0 0 L-31 * ?", DialectQuartz, CodeOutOfRange, FieldDayOfMonth, "31", 8},
		{"32W", "0 0 0 32W * ?", DialectQuartz, CodeOutOfRange, FieldDayOfMonth, "32", 6},
		{"#6", "0 0 0 ? * 2#6", DialectQuartz, CodeOutOfRange, FieldDayOfWeek, "6", 12},
		{"# without number", "0 0 0 ? * 2#", DialectQuartz, CodeMissing, FieldDayOfWeek, "", 12},
		{"step after L", "0 0 0 L/2 * ?", DialectQuartz, CodeNotHere, FieldDayOfMonth, "/", 7},
		{"L in a list", "0 0 0 L,5 * ?", DialectQuartz, CodeCombination, FieldDayOfMonth, "L", 6},
		{"LW in a list", "0 0 0 5,LW * ?", DialectQuartz, CodeCombination, FieldDayOfMonth, "LW", 8},
		{"saturday L in a list", "0 0 0 ? * 2,L", DialectQuartz, CodeCombination, FieldDayOfWeek, "L", 12},
		{"two #", "0 0 0 ? * 2#1,3#2", DialectQuartz, CodeCombination, FieldDayOfWeek, "3#2", 14},
		{"? in a list", "0 0 0 ?,5 * 2", DialectQuartz, CodeCombination, FieldDayOfMonth, "?", 6},
		{"two ?", "0 0 0 ? * ?", DialectAuto, CodeCombination, FieldDayOfWeek, "?", 10},
		{"no ?", "0 0 0 * * *", DialectQuartz, CodeCombination, FieldDayOfWeek, "*", 10},
		{"no ? with a year", "0 0 0 1 * 2 2027", DialectAuto, CodeCombination, FieldDayOfWeek, "2", 10},
		{"zone prefix", "TZ=UTC 0 0 * * *", DialectAuto, CodeNotHere, FieldNone, "TZ=UTC", 0},
		{"descriptor unknown", "@fortnightly", DialectAuto, CodeDescriptor, FieldNone, "@fortnightly", 0},
		{"descriptor reboot", " @reboot", DialectAuto, CodeDescriptor, FieldNone, "@reboot", 1},
		{"descriptor in quartz", "@daily", DialectQuartz, CodeDescriptor, FieldNone, "@daily", 0},
		{"descriptor with more", "@daily 5 6", DialectAuto, CodeFieldCount, FieldNone, "5 6", 7},
		{"every without interval", "@every", DialectAuto, CodeMissing, FieldNone, "", 6},
		{"every with nonsense", "@every soon", DialectAuto, CodeDescriptor, FieldNone, "soon", 7},
		{"every too short", "@every 1ms", DialectAuto, CodeOutOfRange, FieldNone, "1ms", 7},
		{"every negative", "@every -1h", DialectAuto, CodeOutOfRange, FieldNone, "-1h", 7},
		{"every with spaces", "@every 1h 30m", DialectAuto, CodeFieldCount, FieldNone, "30m", 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse(tt.expr, tt.dialect)
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Fatalf("error %v, want a ParseError", err)
			}
			marked := pe.Expr[pe.Pos:min(pe.Pos+pe.Len, len(pe.Expr))]
			if pe.Code != tt.code || pe.Field != tt.field || marked != tt.marked || pe.Pos != tt.pos {
				t.Errorf("%s\n got code %s field %q pos %d marked %q\nwant code %s field %q pos %d marked %q", pe.Detail(),
					pe.Code, pe.Field, pe.Pos, marked, tt.code, tt.field, tt.pos, tt.marked)
			}
			if pe.Msg == "" || pe.Expr != tt.expr {
				t.Errorf("message %q, expression %q", pe.Msg, pe.Expr)
			}
		})
	}
}

func TestParseErrorText(t *testing.T) {
	_, err := Parse("0 25 * * *", DialectAuto)
	if want := `cron "0 25 * * *": column 3, hour: 25 is outside 0-23`; err.Error() != want {
		t.Errorf("Error() = %s\n     want %s", err, want)
	}
	_, err = Parse("0 0 ＊ * *", DialectAuto)
	var pe *ParseError
	errors.As(err, &pe)
	want := "day-of-month: '＊' has no meaning here\n" +
		"  0 0 ＊ * *\n" +
		"      ^\n" +
		"hint: this is a full-width character: write *"
	if pe.Detail() != want {
		t.Errorf("Detail() =\n%s\nwant\n%s", pe.Detail(), want)
	}
	_, err = Parse("0\t0 1-", DialectAuto)
	errors.As(err, &pe)
	if want := "0 0 1-\n      ^"; pe.Caret() != want {
		t.Errorf("Caret() =\n%s\nwant\n%s", pe.Caret(), want)
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		expr    string
		dialect Dialect
		want    string
	}{
		{"0 2 * * *", DialectAuto, ""},
		{"0 0 31 2 *", DialectAuto, "never_fires"},
		{"0 0 13 * 5", DialectAuto, "either_day"},
		{"0 0 0 * * 1-5", DialectAuto, "day_numbers"},
		{"0 0 0 * * 1-5", DialectSeconds, ""},
		{"0 0 0 * * MON", DialectAuto, ""},
		{"0 0 0 ? MAR/3 2", DialectAuto, "ignored_step"},
		{"0 0 0 ? * MON-FRI/2", DialectAuto, "ignored_step"},
		{"0 0 0 1W,15W * ?", DialectAuto, "ignored_days"},
		{"0 0 0 ? * 2,6#3", DialectAuto, "ignored_days"},
		{"*/7 * * * *", DialectAuto, "uneven_step"},
		{"0 */5 * * *", DialectAuto, "uneven_step"},
		{"10-40/7 * * * *", DialectAuto, ""},
		{"0 0 31 * *", DialectAuto, "short_months"},
		{"0 0 0 L * ?", DialectAuto, ""},
		{"0 0 15,31 * *", DialectAuto, ""},
	}
	for _, tt := range tests {
		c, err := Parse(tt.expr, tt.dialect)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range c.Warnings() {
			got = append(got, string(w))
			if w.Text("en") == "" || w.Text("zh-CN") == "" || w.Text("en") == w.Text("zh") {
				t.Errorf("%s lacks a text", w)
			}
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%s (%s): warnings %q, want %q", tt.expr, tt.dialect, g, tt.want)
		}
	}
}
