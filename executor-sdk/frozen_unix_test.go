//go:build unix

package executor_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// A process that was frozen for a moment, well within its lease, refuses the
// one-step offers that became too old meanwhile, and goes on with newer ones.
func TestFrozenProcessRefusesOldOffers(t *testing.T) {
	t.Parallel()
	admin := startAdmin(t, &fakeadmin.Admin{LeaseTTL: time.Minute, Heartbeat: time.Minute})
	child := startVictim(t, admin, t.TempDir())
	s := session(t, admin, 1)
	began := time.Now()
	good := func(d time.Duration) func(*proto.Offer) {
		return func(o *proto.Offer) { o.GoodMs = (time.Since(began) + d).Milliseconds() }
	}
	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus // the signal returns before all threads stand still
	_, err := syscall.Wait4(child.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
	require.NoError(t, s.Offer(offer(1, "quick", granted, good(time.Second)), offer(2, "quick", granted, good(time.Hour))))
	<-time.After(1500 * time.Millisecond) // the one is over then
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Results) > 0 && len(seen.Answers) == 2 })
	for _, answer := range seen.Answers {
		require.Equal(t, map[int64]string{1: "old", 2: ""}[answer.GetExecutionId()], answer.GetRejectCode())
	}
	require.Len(t, seen.Started, 1)
	require.EqualValues(t, 2, seen.Started[0].GetExecutionId())
}

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
	require.Equal(t, "FAILED stalled", brief(resultOf(seen, 1)), "and no admin is blamed")
	require.Equal(t, "lease lost: its process stood still", resultOf(seen, 1).GetError())
	for _, answer := range seen.Answers[1:] {
		require.Equal(t, "busy", answer.GetRejectCode())
	}
}
