package admin

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What an earlier version stored in another charset comes to a callback as UTF-8.
func TestCallbacksGetUTF8(t *testing.T) {
	t.Parallel()
	const stored, clean = "{\"city\":\"\xb0\xd9\"}", "{\"city\":\"\uFFFD\"}"
	ended := endedInput{Input: []byte(stored), Output: []byte(stored)}
	ended.truncate()
	require.Equal(t, []string{clean, clean}, []string{string(ended.Input), string(ended.Output)})
}
