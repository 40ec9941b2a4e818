package tally_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/tally"
)

func TestDurations(t *testing.T) {
	var d tally.Durations
	last := tally.Bounds[len(tally.Bounds)-1]
	for _, took := range []time.Duration{0, tally.Bounds[0], tally.Bounds[0] + 1, last, last + 1} {
		d.Add(took)
	}
	upTo, count, sum := d.Read()
	require.Len(t, upTo, len(tally.Bounds))
	require.EqualValues(t, 2, upTo[0], "a bound belongs to its bucket")
	require.EqualValues(t, 3, upTo[1])
	require.EqualValues(t, 4, upTo[len(upTo)-1])
	require.EqualValues(t, 5, count)
	require.Equal(t, 2*tally.Bounds[0]+1+2*last+1, sum)
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Add(time.Millisecond) }))
}
