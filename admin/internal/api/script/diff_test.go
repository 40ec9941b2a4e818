package script

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The difference leads from one text to the other, and is as short as the
// longest common subsequence allows.
func TestDiffLines(t *testing.T) {
	for range 2000 {
		a, b := randomLines(), randomLines()
		var left, right []string
		edits := 0
		for _, l := range diffLines(a, b) {
			if l.Op != "added" {
				left = append(left, l.Text)
			}
			if l.Op != "removed" {
				right = append(right, l.Text)
			}
			if l.Op != "same" {
				edits++
			}
		}
		require.True(t, slices.Equal(a, left) && slices.Equal(b, right), "%q %q", a, b)
		require.Equal(t, len(a)+len(b)-2*common(a, b), edits, "%q %q", a, b)
	}
	many := strings.Split(strings.Repeat("x\n", 60000), "\n")
	other := strings.Split(strings.Repeat("y\n", 60000), "\n")
	require.Len(t, diffLines(many, other), 2*60000+1, "whatever differs too much is replaced as a whole")
}

func randomLines() []string {
	out := make([]string, rand.IntN(12))
	for i := range out {
		out[i] = string(rune('a' + rand.IntN(3)))
	}
	return out
}

// common is the length of the longest common subsequence.
func common(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		before := 0
		for j, y := range b {
			old := row[j+1]
			if x == y {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			before = old
		}
	}
	return row[len(b)]
}
