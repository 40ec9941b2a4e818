//go:build proof

package crashpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestALateCellIsPlayedAgain: nothing but lateness is forgiven, and that twice.
func TestALateCellIsPlayedAgain(t *testing.T) {
	for name, plays := range map[string][]Cell{
		"in time at once":         {{Passed: true, Targets: 2}},
		"wrong":                   {{Targets: 2, Missed: 1}},
		"late, then in time":      {{Late: true, Targets: 2}, {Passed: true, Targets: 2}},
		"late, then wrong":        {{Late: true, Targets: 2, Double: 1}, {Targets: 2}},
		"late each time it plays": {{Late: true, Targets: 2}, {Late: true, Targets: 2}, {Late: true, Targets: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			left := plays
			cell := inTime(func() Cell {
				c := left[0]
				left = left[1:]
				return c
			})
			last := plays[len(plays)-1]
			require.Empty(t, left)
			require.Equal(t, last.Passed, cell.Passed)
			require.Equal(t, len(plays), cell.Plays)
			require.Equal(t, 2*len(plays), cell.Targets)
			require.Equal(t, plays[0].Double+last.Double, cell.Double)
		})
	}
}
