//go:build unix

package executor_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
)

// A process that was frozen past its lease cancels its runs as soon as it
// wakes up, and starts nothing that was offered meanwhile.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	admin := startAdmin(t, &fakeadmin.Admin{LeaseTTL: 2 * time.Second, Heartbeat: 200 * time.Millisecond})
	child := startVictim(t, admin, t.TempDir())
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "slow", granted)))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Started) == 1 })
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	<-time.After(1500 * time.Millisecond) // the lease counts as lost after one second
	require.NoError(t, s.Offer(offer(2, "quick", granted), offer(3, "quick")))
	// No renewed lease between waking up and reading the offers.
	admin.HoldHeartbeats.Store(true)
	woken := time.Now()
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Results) > 0 && len(seen.Answers) == 3 })
	t.Logf("result %s after waking up", time.Since(woken).Round(time.Millisecond))
	require.Equal(t, "FAILED retryable", brief(resultOf(seen, 1)))
	require.Equal(t, "lease lost", resultOf(seen, 1).GetError())
	for _, answer := range seen.Answers[1:] {
		require.Equal(t, "busy", answer.GetRejectCode())
	}
}
