package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestDurationText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "30s": 30 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "24h": 24 * time.Hour,
		"1h0m5s": time.Hour + 5*time.Second, "1.5s": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "10m": 10 * time.Minute, "20h": 20 * time.Hour,
	} {
		require.Equal(t, want, domain.DurationText(d))
		back, err := time.ParseDuration(want)
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
}

func TestInstants(t *testing.T) {
	shanghai := time.FixedZone("", 8*3600)
	require.Equal(t, "2026-11-21T04:00:00.000Z", Instant(time.Date(2026, 11, 21, 12, 0, 0, 999_999, shanghai)))
	require.Nil(t, InstantOrNull(time.Time{}))
	require.Nil(t, InstantOrNull(domain.Never))
}

func TestCursors(t *testing.T) {
	c := Cursor{List: "jobs/name", Name: "ä", At: 5, ID: 7}
	back, err := DecodeCursor(*c.Encode(), "jobs/name")
	require.NoError(t, err)
	require.Equal(t, c, back)
	start, err := DecodeCursor("", "jobs/name")
	require.NoError(t, err)
	require.Zero(t, start)
	for name, text := range map[string]string{
		"another list": *Cursor{List: "runs", ID: 1}.Encode(), "no position": *Cursor{List: "jobs/name"}.Encode(),
		"negative": *Cursor{List: "jobs/name", ID: -1}.Encode(), "not base64": "***", "not JSON": "aGVsbG8",
	} {
		_, err := DecodeCursor(text, "jobs/name")
		require.True(t, domain.Is(err, domain.CodeInvalid), name)
	}
}

func FuzzDecodeCursor(f *testing.F) {
	f.Add(*Cursor{List: "jobs/name", Name: "a", ID: 1}.Encode())
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := DecodeCursor(text, "jobs/name")
		if err == nil && text != "" && (c.ID < 0 || c.List != "jobs/name") {
			t.Fatalf("%q gave %+v", text, c)
		}
	})
}

// Values of an earlier version may have bytes that are not UTF-8; an answer has none.
func TestRawOrNull(t *testing.T) {
	for raw, want := range map[string]string{
		"": "null", "{": "null", `{"a":1}`: `{"a":1}`, "{\"city\":\"\xb0\xd9\"}": "{\"city\":\"\uFFFD\"}", `"百"`: `"百"`,
	} {
		require.Equal(t, want, string(RawOrNull([]byte(raw))))
	}
}
