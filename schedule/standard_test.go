package schedule

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// checkParsersAgree: what robfig's parser is let read, ours reads alike.
func checkParsersAgree(t interface{ Fatalf(string, ...any) }, expr string) (byRobfig bool) {
	p := &parser{expr: expr, tokens: split(expr), dialect: DialectStandard}
	theirs := p.standard()
	if theirs == nil {
		return false
	}
	ours, err := p.own(false)
	if err != nil {
		t.Fatalf("%q is read by robfig's parser, and refused by ours: %s", expr, err)
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Fatalf("%q: ours %+v, robfig's %+v", expr, ours, theirs)
	}
	return true
}

func TestParsersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRule(t)
		if r.dialect == DialectStandard {
			checkParsersAgree(t, r.text)
		}
	})
}

// Text of which most is wrong in one parser or in both.
func TestParsersAgreeOnMistakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.OneOf(rapid.StringMatching(`[0-9*?,/+-]{1,5}`), rapid.StringMatching(`(\*|[0-9]{1,2}|[A-Za-z]{3}|MON|jan)([-/,]([0-9]{1,2}|SUN|Dec|\*)){0,2}`))
		checkParsersAgree(t, strings.Join(rapid.SliceOfN(field, 5, 5).Draw(t, "fields"), " "))
	})
}

// TestWhoReads: what is read by robfig's parser, and what by ours because robfig's
// refuses it or means something else.
func TestWhoReads(t *testing.T) {
	for expr, byRobfig := range map[string]bool{
		"0 2 * * *": true, " */5\t9-17 1,15 jan-MAR mon,WED-fri ": true, "0 0 1-31/2 */3 1/2": true, "*/7 */5 */2 * 1": true,
		"0-58 * * * *": true, "*,5 * * * *": true, "0 0 1,* * 1": true,
		// Minutes and hours with such steps go by what is written where clocks change.
		"5/20 * * * *": false, "0 8-18/2 * * *": false, "0-59 * * * *": false,
		"0 22-2 * * *": false, "0 0 * * FRI-MON": false, "0 0 * * 7": false, "0 0 * * 5-7": false,
		// robfig's would take all of these.
		"? * * * *": false, "0 0 ? * *": false, "+5 0 * * *": false, "1,,2 * * * *": false, ",1 * * * *": false, "1, * * * *": false,
		"*-5 * * * *": false, "*/90 * * * *": false, "0 0 * * 1-5/9": false, "0 0 1 * */+2": false, "0 0 * * *\n": false,
	} {
		if got := checkParsersAgree(t, expr); got != byRobfig {
			t.Errorf("%q: read by robfig's parser: %t", expr, got)
		}
	}
}

func TestDescriptorsMeanExpressions(t *testing.T) {
	for word, expr := range map[string]string{
		"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
		"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
	} {
		got, want := mustParse(t, word), mustParse(t, expr)
		if want.expr = word; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", word, got, want)
		}
	}
}
