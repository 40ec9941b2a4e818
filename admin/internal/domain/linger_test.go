package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryBadEndWithAHandlerThatRunsLingers(t *testing.T) {
	for name, row := range map[string]struct {
		from    State
		outcome Outcome
		want    State
		lingers bool
	}{
		"timed out":      {Running, OutcomeTimedOut, TimedOut, true},
		"killed":         {Cancelling, OutcomeCancelled, Cancelled, true},
		"executor stops": {Running, OutcomeFailed, Failed, true},
		// Who returned without an error has returned, whatever else it says.
		"succeeded": {Running, OutcomeSucceeded, Succeeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := inState(t, row.from)
			fx, err := e.Finish(t0.Add(time.Minute), Report{Fence: e.Fence, Outcome: row.outcome, StillRunning: true}, noRetry)
			require.NoError(t, err)
			require.Equal(t, row.want, e.State)
			require.Equal(t, row.lingers, e.Lingers)
			require.Equal(t, row.lingers, e.HoldsSlot)
			require.Equal(t, !row.lingers, fx.ReleaseSlot)
			require.Equal(t, row.lingers, e.OccupiesInstance())
		})
	}
}

// TestALateReportLingersWithoutItsSlot: the slot was given away when the lease
// was over; it cannot be had back.
func TestALateReportLingersWithoutItsSlot(t *testing.T) {
	e := inState(t, Lost)
	fx, err := e.Finish(t0.Add(time.Minute), Report{Fence: e.Fence, Outcome: OutcomeFailed, StillRunning: true}, noRetry)
	require.NoError(t, err)
	require.Equal(t, Failed, e.State)
	require.True(t, e.Lingers)
	require.False(t, e.HoldsSlot)
	require.False(t, fx.ReleaseSlot)
	fx, err = e.Finish(t0.Add(2*time.Minute), Report{Fence: e.Fence, Outcome: OutcomeFailed}, noRetry)
	require.NoError(t, err)
	require.Equal(t, Effects{}, fx)
	require.False(t, e.Lingers)
}

// TestTheSecondReportFirst: the two reports of an attempt may come in any order.
func TestTheSecondReportFirst(t *testing.T) {
	e := inState(t, Running)
	_, err := e.Finish(t0.Add(time.Minute), Report{Fence: e.Fence, Outcome: OutcomeTimedOut}, noRetry)
	require.NoError(t, err)
	_, err = e.Finish(t0.Add(time.Minute), Report{Fence: e.Fence, Outcome: OutcomeTimedOut, StillRunning: true}, noRetry)
	require.Equal(t, CodeAlreadyFinished, CodeOf(err))
	require.False(t, e.Lingers)
}

func TestWhenALingeringRunIsLookedAt(t *testing.T) {
	now := t0.Add(time.Minute)
	for name, row := range map[string]struct {
		reported bool
		lease    time.Time
		action   SweepAction
		wake     time.Time
	}{
		"reported: at the lease's end":               {true, now.Add(10 * time.Second), SweepNothing, now.Add(10*time.Second + LeaseMargin)},
		"not reported: the cancel is sent again":     {false, now.Add(10 * time.Second), SweepCancel, now.Add(StartResend)},
		"not reported: not later than the lease end": {false, now.Add(time.Second), SweepCancel, now.Add(time.Second + LeaseMargin)},
		"its instance is dead":                       {false, now.Add(-time.Minute), SweepNothing, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := lingering(t, row.reported)
			require.Equal(t, t0.Add(2*time.Second+LeaseTTL+LeaseMargin), e.WakeAt)
			action, _, err := e.Sweep(now, row.lease, time.Second, noRetry)
			require.NoError(t, err)
			require.Equal(t, row.action, action)
			require.Equal(t, row.wake, e.WakeAt)
		})
	}
}
