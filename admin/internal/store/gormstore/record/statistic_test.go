package record

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestEncodeEnds: an end without an error has the bytes of the version before, whose bodies can
// be read.
func TestEncodeEnds(t *testing.T) {
	ends := []domain.RunEnd{
		{Tenant: 1, Executor: 2, Job: 3, Minute: 4, State: domain.Succeeded, Late: -1, Took: 70},
		{Tenant: 1, Executor: 2, Job: 4, Minute: 4, State: domain.Cancelled, Undone: true, Late: 5, Took: -1},
	}
	before := []byte{1, 2, 4, 6, 8, 10, 0, 71, 0, 0, 2, 0, 13 | 0x80, 6, 0}
	require.Equal(t, before, EncodeEnds(slices.Clone(ends)))
	got, err := DecodeEnds(before)
	require.NoError(t, err)
	require.Equal(t, ends, got)

	bad := domain.RunEnd{Tenant: 1, Executor: 2, Job: 4, Minute: 4, State: domain.Failed, Late: -1, Took: -1, Run: 1 << 60, Error: 0xfedcba9876543210, ErrorText: "io: no"}
	undone := bad
	undone.Undone, undone.Run = true, 7
	other := bad
	other.Error, other.ErrorText = 9, "io: yes"
	ends = append(ends, bad, undone, other)
	body := EncodeEnds(slices.Clone(ends))
	got, err = DecodeEnds(body)
	require.NoError(t, err)
	require.Equal(t, ends, got)
	require.Equal(t, len(before)+3*(6+1+8+1)+9+1+9+len("io: no")+len("io: yes"), len(body), "a text is written once")

	whole := map[int]bool{}
	for n := 1; n <= len(body); n++ {
		got, err := DecodeEnds(body[:n])
		if err == nil {
			whole[n] = true
			require.Equal(t, ends[:len(got)], append([]domain.RunEnd{}, got...))
		}
	}
	require.Len(t, whole, 1+len(ends), "all others are cut off")
	_, err = DecodeEnds([]byte{3})
	require.Error(t, err)
}

// TestEndOfARowHasTheMeasuredDuration: the duration is that of the executor, not the time until
// the end was stored.
func TestEndOfARowHasTheMeasuredDuration(t *testing.T) {
	started := time.Now().Truncate(time.Millisecond)
	row := ToExecutionRow(&domain.Execution{TenantID: 1, Executor: 2, JobID: 3, State: domain.Succeeded, Attempt: 1, FireAt: started, PlannedAt: started, StartedAt: started, FinishedAt: started.Add(900 * time.Millisecond), Took: 40 * time.Millisecond})
	ends := appendEnd(nil, row, false)
	require.Len(t, ends, 1)
	require.EqualValues(t, 40, ends[0].Took)
}
