package generate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The guide names each key of the markers.
func TestKeysAreInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/handlers.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "## Keys of markers")
	require.True(t, found)
	for _, key := range slices.Concat(timerKeys, clockKeys) {
		require.Contains(t, table, "`"+key+"`")
	}
}
