package spelling

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNear(t *testing.T) {
	names := []string{"reconcile-orders", "refund", "daily-report", "cancel-unpaid", "Refund2"}
	for given, want := range map[string][]string{
		"reconcile-order": {`"reconcile-orders"`},
		"REFUND":          {`"refund"`, `"Refund2"`},
		"rfeund":          {`"refund"`, `"Refund2"`},
		"report":          {`"daily-report"`},
		"xyz":             {},
		"":                {},
	} {
		got := near(given, names)
		if given == "" {
			continue // an empty name never gets here
		}
		require.Equal(t, want, got, given)
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"abcd", "acbd", 1}, {"same", "same", 0}, {"ca", "abc", 3},
	} {
		require.Equal(t, tt.want, distance(tt.a, tt.b), "%s %s", tt.a, tt.b)
		require.Equal(t, tt.want, distance(tt.b, tt.a), "%s %s", tt.b, tt.a)
	}
}

func TestHint(t *testing.T) {
	require.Equal(t, `did you mean "running"?`, Hint("runing", []string{"due", "running", "failed"}))
	require.Empty(t, Hint("xyz", []string{"due", "running", "failed"}))
}
