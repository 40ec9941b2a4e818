package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInstantBefore(t *testing.T) {
	a := &App{Now: func() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }}
	for text, want := range map[string]string{
		"7d": "2026-11-22T12:00:00.000Z", "90m": "2026-11-29T10:30:00.000Z", "0s": "2026-11-29T12:00:00.000Z", "2026-01-02T03:04:05Z": "2026-01-02T03:04:05.000Z",
	} {
		got, err := a.InstantBefore("--since", text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "-1h", "99999999999999999999d", "yesterday"} {
		_, err := a.InstantBefore("--since", text)
		require.Error(t, err, text)
	}
}

func TestInstantAfter(t *testing.T) {
	here := time.FixedZone("here", 8*3600)
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, here)
	a := &App{Now: func() time.Time { return now }}
	for text, want := range map[string]time.Time{
		"02:00": time.Date(2026, 11, 30, 2, 0, 0, 0, here), "13:00": time.Date(2026, 11, 29, 13, 0, 0, 0, here), "12:00": time.Date(2026, 11, 30, 12, 0, 0, 0, here),
		"today 02:00": time.Date(2026, 11, 29, 2, 0, 0, 0, here), "Tomorrow 02:00": time.Date(2026, 11, 30, 2, 0, 0, 0, here), "2026-12-24 18:00": time.Date(2026, 12, 24, 18, 0, 0, 0, here),
		"2h": now.Add(2 * time.Hour), "1d": now.AddDate(0, 0, 1), "2026-01-02T03:04:05Z": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		got, err := a.InstantAfter("--from", text, now)
		require.NoError(t, err, text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
	for _, text := range []string{"", "soon", "25:00", "yesterday 02:00", "-1h", "-1d", "d", "2026-13-01 02:00"} {
		_, err := a.InstantAfter("--from", text, now)
		require.ErrorContains(t, err, "'tomorrow 02:00'", text)
	}
}
