package web

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func FuzzHalfPairs(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d\ude00"`, `"\udfff"`, `"\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx\ude00"`, `"\\ud83d"`, `"\ufffd"`, `"\n\u0041\uD83D\uDE00"`, `"\ud83d\n"`, `"\ud83d\u0041"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var text string
		if !utf8.ValidString(raw) || json.Unmarshal([]byte(raw), &text) != nil {
			return
		}
		// encoding/json writes U+FFFD for a half. Those that were sent are taken away first.
		sent := strings.Count(raw, "\uFFFD") + strings.Count(strings.ToLower(strings.ReplaceAll(raw, `\\`, "")), `\ufffd`)
		require.Equal(t, strings.Count(text, "\uFFFD") > sent, hasHalfPair([]byte(raw)), "%q", raw)
	})
}
