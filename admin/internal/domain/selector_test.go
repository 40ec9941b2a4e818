package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilters(t *testing.T) {
	labels := map[string]string{"team": "pay", "tier": "gold", "note": "a (b) c"}
	for text, want := range map[string]bool{
		"": true, "team": true, "team=pay": true, "team=ops": false, "team=pay,tier=gold": true, "team=pay,tier=iron": false, "team==pay": true,
		"team in (ops, pay)": true, "team!=ops,!legacy": true, "note=a (b) c": true, `note="a (b) c",team`: true, `note!="a (b) c"`: false, "old": false,
	} {
		s, err := ParseFilter(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s.Matches(labels), text)
	}
	for text, want := range map[string]string{
		"team=a,team=b":          "nothing meets both team=a and team=b, because a label has one value: write team in (a, b) for one of them",
		"team=a,team in (b, c)":  "write team in (a, b, c) for one of them",
		"team in (a, b),team!=a": "",
		"team=a,team!=a":         "nothing meets both team=a and team!=a: leave one of them out",
		"!team,team=a":           "leave one of them out",
		"team,!team":             "leave one of them out",
		"team=a,team=a":          "",
		"a:b=c":                  "no label has a colon in its key",
		"team=a,":                "expected a label's name",
		"team=a,,b":              "expected a label's name",
		"team=a b,c":             "expected a comma",
	} {
		_, err := ParseFilter(text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.ErrorContains(t, err, want, text)
	}
}

// A selector that is written out is read as the same one.
func TestQuotedValuesOfSelectors(t *testing.T) {
	s, err := ParseSelector(`a="x, y",b in ("1 2", z)`)
	require.NoError(t, err)
	require.True(t, s.Matches(map[string]string{"a": "x, y", "b": "1 2"}))
	require.Equal(t, `a="x, y"`, s.Unmet(nil))
	again, err := ParseSelector(s.Unmet(nil))
	require.NoError(t, err)
	require.True(t, again.Matches(map[string]string{"a": "x, y"}))
}
