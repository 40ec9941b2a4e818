package schedule

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

// refused is a wrong expression for each message and each hint.
var refused = []struct {
	expr    string
	dialect Dialect
}{
	{"", ""}, {"* * * * *", "cobol"}, {strings.Repeat("1,", 600) + "1 * * * *", ""}, {"TZ=UTC 0 2 * * *", ""}, {"CRON_TZ=UTC 0 2 * * *", ""},
	{"1", ""}, {"1 2 3 4", ""}, {"1 2 3 4 5 6 7 8", ""}, {"0 2 * * *", DialectQuartz}, {"0 2 * * *", DialectSeconds}, {"0 0 2 * * *", DialectStandard},
	{"0 0 2 ? * *", DialectStandard}, {"0 0 2 ? * * 2027", DialectStandard}, {"1", DialectStandard}, {"0 0 2 ? * ?", ""}, {"0 0 2 1 * 2", DialectQuartz},
	{"0 0 2 1,? * 2", DialectQuartz}, {"0 0 2 1,L * ?", DialectQuartz}, {"0 0 2 1,LW * ?", DialectQuartz}, {"0 0 2 ? * 2#1,3#1", DialectQuartz},
	{"0 0 2 ? * 2,6L", DialectQuartz}, {"1,,2 * * * *", ""}, {"? * * * *", ""}, {"* * ? * *", ""}, {"0 0 ? 1 * ?", DialectQuartz},
	{"0 0 2 L-31 * ?", DialectQuartz}, {"0 0 2 ? * MON-6", DialectQuartz}, {"0 0 2 ? * * 2030-2027", DialectQuartz}, {"*/0 * * * *", ""},
	{"*/90 * * * *", ""}, {"*/90 * * * * *", DialectSeconds}, {"* */30 * * *", ""}, {"0 0 2 ? * 6#9", DialectQuartz}, {"61 * * * *", ""}, {"* 24 * * *", ""},
	{"0 0 2 ? * 0", DialectQuartz}, {"* * W * *", ""}, {"* * * * L", ""}, {"* * LW * *", ""}, {"* * * FOO *", ""}, {"* * * JANUARY *", ""}, {"* MON * * *", ""},
	{"5- * * * *", ""}, {"*/ * * * *", ""}, {"0 0 2 L/2 * ?", DialectQuartz}, {"* * 5W * *", ""}, {"0 0 2 1-5W * ?", DialectQuartz}, {"0 0 2 ? * 6W", DialectQuartz},
	{"0 0 2 15#2 * ?", DialectQuartz}, {"0 0 2 15L * ?", DialectQuartz}, {"-5 * * * *", ""}, {"+5 * * * *", ""}, {"\uff11 * * * *", ""}, {"\u4e2d * * * *", ""}, {"{} * * * *", ""},
	{"@daily", DialectQuartz}, {"@reboot", ""}, {"@sometimes", ""}, {"@daily 5", ""}, {"@every", ""}, {"@every 1h 30m", ""}, {"@every soon", ""}, {"@every 1us", ""},
}

// TestMistakesInChinese: every message and every hint that the parser can give.
func TestMistakesInChinese(t *testing.T) {
	used := map[string]bool{}
	for _, r := range refused {
		dialect := r.dialect
		if dialect == "" {
			dialect = DialectAuto
		}
		_, err := Parse(r.expr, dialect)
		var e *ParseError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", r.expr, err)
			continue
		}
		msg, hint := e.In("zh-CN")
		for _, text := range []struct{ en, zh string }{{e.Msg, msg}, {e.Hint, hint}} {
			if text.en != "" && !strings.ContainsFunc(text.zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%q: %q is not translated", r.expr, text.en)
			}
			if strings.Contains(text.zh, "{}") != strings.Contains(text.en, "{}") {
				t.Errorf("%q: blanks are left in %q", r.expr, text.zh)
			}
			for _, p := range phrases() {
				if text.en != "" && p.en.MatchString(text.en) {
					used[p.zh] = true
					break
				}
			}
		}
		en, zh := e.Detail(), e.DetailIn("zh")
		if !strings.Contains(zh, "\n  "+strings.ReplaceAll(e.Caret(), "\n", "\n  ")) {
			t.Errorf("%q: the place is another one:\n%s\n%s", r.expr, en, zh)
		}
		if strings.Contains(zh, "hint") || e.Field != FieldNone && !strings.HasPrefix(zh, labelsZH[e.Field]+"：") {
			t.Errorf("%q: %s", r.expr, zh)
		}
		if e.DetailIn("en") != en {
			t.Errorf("%q: %s", r.expr, en)
		}
	}
	for _, p := range phrasesZH {
		if !used[p[1]] {
			t.Errorf("nothing says %q", p[0])
		}
	}
}
