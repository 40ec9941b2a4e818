package generate

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every kind of schedule becomes calls of the SDK.
func TestScheduleKeys(t *testing.T) {
	for marker, want := range map[string][]string{
		`delay=90s jitter=5s`:                                {"executor.Delay(90*time.Second)", "executor.Jitter(5*time.Second)"},
		`at=2026-12-24T18:00:00Z`:                            {"executor.At(time.UnixMilli(1798135200000))"},
		`at=2026-12-24T18:00:00Z,2026-12-25T18:00:00Z`:       {"executor.Instants(time.UnixMilli(1798135200000), time.UnixMilli(1798221600000))"},
		`every=15m window=09:00-17:30:30 zone=Asia/Shanghai`: {`executor.Window("09:00", "17:30:30")`, `executor.Zone("Asia/Shanghai")`},
		`cron="0 2 * * *" gap=skip overlap=both`:             {"executor.ClockChanges(executor.SkipGap, executor.OverlapBoth)"},
		`cron="0 2 * * *" gap=skip`:                          {"executor.ClockChanges(executor.SkipGap, executor.OverlapOnce)"},
		`every=1h start-at=2026-12-24T18:00:00Z`:             {"executor.Between(time.UnixMilli(1798135200000), time.Time{})"},
		`every=1h misfire=all misfire-max-runs=7`:            {"executor.Misfire(executor.AllMisfires)", "executor.MisfireLimit(0, 7)"},
		`every=1h misfire=all misfire-window=2h`:             {"executor.MisfireLimit(2*time.Hour, 0)"},
		`every=1h misfire=skip misfire-threshold=1m30s`:      {"executor.MisfireThreshold(90*time.Second)"},
		`cron="0 2 * * *" calendars="cn, freeze" days=workdays misfire=all`: {
			`executor.Calendars("cn", "freeze")`, "executor.Days(executor.Workdays)", "executor.Misfire(executor.AllMisfires)",
		},
	} {
		t.Run(marker, func(t *testing.T) {
			dir := write(t, map[string]string{"a.go": around("//carillon:clock name=a "+marker, goodMethod)})
			require.NoError(t, Run([]string{dir}, false, Options{}, io.Discard))
			code, err := os.ReadFile(filepath.Join(dir, GoFile))
			require.NoError(t, err)
			flat := strings.Join(strings.Fields(string(code)), " ")
			for _, call := range want {
				require.Contains(t, flat, call)
			}
		})
	}
}

func TestScheduleKeyMistakes(t *testing.T) {
	for marker, want := range map[string]string{
		"delay=5s every=5s":                  "every and delay exclude each other",
		"at=noon":                            `at="noon" is no instant`,
		"window=09:00-17:00":                 `key "window" has a meaning only beside every`,
		"every=5m window=9-17":               `window="9-17" is no part of a day`,
		"cron=@daily days=workdays":          `key "days" has a meaning only beside calendars`,
		"every=5m gap=skip":                  `key "gap" has a meaning only beside cron or window`,
		"jitter=5s":                          `key "jitter" has a meaning only with a schedule`,
		`cron=@daily calendars="cn,"`:        "has an empty name",
		"cron=@daily overlap=never":          `overlap="never" is not known`,
		"cron=@daily calendars=cn days=some": `days="some" is not known`,
	} {
		t.Run(marker, func(t *testing.T) {
			dir := write(t, map[string]string{"a.go": around("//carillon:clock name=a "+marker, goodMethod)})
			_, err := readPackage(dir, Options{})
			require.ErrorContains(t, err, want)
		})
	}
}

// The documentation names every key.
func TestDocumentationNamesEveryKey(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(doc), "// # Keys")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "// # Callbacks")
	require.True(t, ok)
	words := strings.FieldsFunc(text, func(r rune) bool { return !isKeyByte(byte(min(r, 127))) })
	for _, key := range append(slices.Clone(clockKeys), timerKeys...) {
		require.Contains(t, words, key)
	}
}
