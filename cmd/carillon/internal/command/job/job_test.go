package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/apiclient"
)

// TestWaitingCell: a list says how many runs wait, and why they pile up.
func TestWaitingCell(t *testing.T) {
	require.Empty(t, waitingCell(apiclient.Job{}))
	require.Equal(t, "2", waitingCell(apiclient.Job{Waiting: 2}))
	require.Equal(t, "101, runs take longer than the interval", waitingCell(apiclient.Job{Waiting: 101, PilesUp: true}))
}
