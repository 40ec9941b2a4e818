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
