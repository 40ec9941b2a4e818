package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFireTime(t *testing.T) {
	now := time.Date(2026, 11, 28, 2, 30, 0, 0, time.UTC) // 10:30 in Shanghai
	for text, want := range map[string]string{
		"2026-11-21T02:00:00Z": "2026-11-21T02:00:00Z", "2026-11-21T02:00:00.5+08:00": "2026-11-21T02:00:00.5+08:00",
		"02:00": "2026-11-28T02:00:00+08:00", "23:15:10": "2026-11-27T23:15:10+08:00", "10:30": "2026-11-28T10:30:00+08:00",
		"2026-11-21 02:00": "2026-11-21T02:00:00+08:00", "2026-11-21T02:00:30": "2026-11-21T02:00:30+08:00",
	} {
		at, err := fireTime(text, "Asia/Shanghai", now)
		require.NoError(t, err, text)
		require.Equal(t, want, at, text)
	}
	at, err := fireTime("02:00", "", now)
	require.NoError(t, err)
	require.Equal(t, "2026-11-28T02:00:00Z", at)
	for _, text := range []string{"yesterday", "2:70", "2026-11-21"} {
		_, err := fireTime(text, "Asia/Shanghai", now)
		require.ErrorContains(t, err, "Asia/Shanghai")
	}
}
