package settings

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0": 0, "-1s": -time.Second,
		"1d": 24 * time.Hour, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "-1d": -24 * time.Hour, "0d": 0,
	} {
		got, err := ParseSpan(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "1", "1w", "d", "1d-2h", "1.5d", "1h2d", "2 h", "tomorrow", "1d 2h", "1dd"} {
		_, err := ParseSpan(text)
		require.ErrorContains(t, err, "units are ms, s, m, h and d", text)
	}
	for _, text := range []string{"36501d", "99999999999999999999d"} {
		_, err := ParseSpan(text)
		require.ErrorContains(t, err, "at most 36500 days", text)
	}
}

// A span means the same as a flag, as a variable and in the file.
func TestSpansOfAllLayers(t *testing.T) {
	t.Setenv("CARILLON_KEPT", "2d")
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	var text string
	Span(f, "kept", time.Hour, "")
	Span(f, "other", time.Hour, "")
	SpanTextVar(f, &text, "by", "")
	k, err := Load(f, "")
	require.NoError(t, err)
	require.Equal(t, 48*time.Hour, k.Duration("kept"))
	require.Equal(t, time.Hour, k.Duration("other"))
	require.Empty(t, text)
	require.NoError(t, f.Set("by", "1d"))
	require.Equal(t, "24h0m0s", text)
	require.ErrorContains(t, f.Set("by", "-1d"), "must not be negative")
	require.ErrorContains(t, f.Set("kept", "2 days"), "units are")
}
