package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBackfillScope(t *testing.T) {
	for _, row := range []struct {
		o    Occurred
		want [3]bool // missing, unsuccessful, all
	}{
		{Occurred{}, [3]bool{true, true, true}},
		{Occurred{Scheduled: Missed}, [3]bool{true, true, true}},
		{Occurred{Scheduled: Discarded}, [3]bool{true, true, true}},
		{Occurred{Scheduled: Excluded}, [3]bool{true, true, true}},
		{Occurred{Scheduled: Failed}, [3]bool{false, true, true}},
		{Occurred{Scheduled: Lost}, [3]bool{false, true, true}},
		{Occurred{Scheduled: TimedOut}, [3]bool{false, true, true}},
		{Occurred{Scheduled: Cancelled}, [3]bool{false, true, true}},
		{Occurred{Scheduled: Running}, [3]bool{false, false, true}},
		{Occurred{Scheduled: Succeeded}, [3]bool{false, false, true}},
		{Occurred{Scheduled: Missed, Backfill: true}, [3]bool{}},
		{Occurred{Backfill: true}, [3]bool{}},
	} {
		for i, s := range []BackfillScope{BackfillMissing, BackfillUnsuccessful, BackfillAll} {
			require.Equal(t, row.want[i], s.Wants(row.o), "%s %+v", s, row.o)
		}
	}
}
