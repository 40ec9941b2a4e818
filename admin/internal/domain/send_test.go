package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sent is an execution after so many offers that were refused.
func sent(t *testing.T, refusals int) *Execution {
	t.Helper()
	e := newExecution(3)
	for i := range refusals {
		require.NoError(t, e.Offer(t0, testNode, testInstance+InstanceID(i), false, false, noRetry))
		require.NoError(t, e.GiveBack(t0, e.Fence, ReasonOfferRefused, "busy", 0))
	}
	return e
}

func TestSendsThatLedToNothing(t *testing.T) {
	e := sent(t, 2)
	require.Equal(t, 2, e.Sends().Failed())
	require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
	require.Equal(t, 2, e.Sends().Failed(), "the third may still be answered")
	require.NoError(t, e.Grant(t0, e.Fence, testInstance, noRetry))
	require.Equal(t, 2, e.Sends().Failed())
	_, err := e.Finish(t0, Report{Fence: e.Fence, Outcome: OutcomeNeverStarted}, noRetry)
	require.NoError(t, err)
	require.Equal(t, 3, e.Sends().Failed(), "it was granted, and has not begun")

	once := newExecution(3)
	require.NoError(t, once.Offer(t0, testNode, testInstance, true, true, noRetry))
	require.Zero(t, once.Sends().Failed())
	require.NoError(t, once.Refuse(t0, once.Fence, ReasonOfferRefused, "busy", 0))
	require.Equal(t, 1, once.Sends().Failed())
}

func TestSendsAreSpent(t *testing.T) {
	two := Policy{SendRetry: SendRetry{MaxSends: 2}}
	require.False(t, sent(t, 1).Sends().Spent(two.SendRetry))
	require.False(t, sent(t, 50).Sends().Spent(SendRetry{}), "no limit")
	e := sent(t, 2)
	require.True(t, e.Sends().Spent(two.SendRetry))
	require.Error(t, e.Offer(t0, testNode, testInstance, false, false, two))
	action, fx, err := e.Sweep(t0.Add(time.Second), time.Time{}, time.Second, two)
	require.NoError(t, err)
	require.Equal(t, SweepNothing, action)
	require.Equal(t, AlertRunFailed, fx.Alert)
	require.Equal(t, Failed, e.State)
	require.Equal(t, ReasonSendFailed, e.Reason)
	require.Equal(t, "it was sent 2 times, and no instance took it", e.Message)
	require.Zero(t, e.Attempt, "that costs no attempt")
	_, err = e.SendFailed(t0)
	require.Error(t, err)

	unanswered := newExecution(1)
	one := Policy{SendRetry: SendRetry{MaxSends: 1}}
	require.NoError(t, unanswered.Offer(t0, testNode, testInstance, false, false, one))
	_, _, err = unanswered.Sweep(t0.Add(OfferTTL), time.Time{}, time.Second, one)
	require.NoError(t, err)
	require.Equal(t, ReasonSendFailed, unanswered.Reason)
	require.Equal(t, "it was sent once, and no instance took it", unanswered.Message)
}

func TestTheWaitBeforeTheNextSend(t *testing.T) {
	r := SendRetry{Delay: time.Second, Backoff: 3, MaxDelay: 5 * time.Second}
	for refusals, want := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second} {
		e := sent(t, refusals)
		require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
		require.Equal(t, want, e.Sends().Wait(r, time.Millisecond))
		require.Equal(t, time.Millisecond, e.Sends().Wait(SendRetry{}, time.Millisecond), "as the answer suggests")
	}
	long := sent(t, 30)
	require.Equal(t, DefaultMaxSendDelay, long.Sends().Wait(SendRetry{Delay: time.Second, Backoff: 2}, 0))
}

// TestTried: what an attempt before this one met with says nothing any more.
func TestTried(t *testing.T) {
	e := sent(t, 2)
	require.True(t, e.Sends().Tried())
	require.True(t, e.Sends().TriedOn(testInstance+1))
	require.False(t, e.Sends().TriedOn(testInstance+2))
	require.NoError(t, e.Wait(t0, ReasonWaitInstance, "full", t0))
	require.False(t, e.Sends().TriedOn(0), "a wait is no send")

	require.NoError(t, e.Offer(t0, testNode, testInstance+9, false, false, noRetry))
	require.NoError(t, e.Grant(t0, e.Fence, testInstance+9, noRetry))
	_, err := e.Finish(t0.Add(time.Second), Report{Fence: e.Fence, Outcome: OutcomeFailed}, noRetry)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
	require.False(t, e.Sends().Tried())
	require.False(t, e.Sends().TriedOn(testInstance))
}
