package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReconcile has a row per state; what is not named is dropped and does not move.
func TestReconcile(t *testing.T) {
	type want struct {
		accepted, running Verdict
		then              State // when it moves
	}
	for from, w := range map[State]want{
		Offered:    {VerdictGrant, VerdictGrant, Running},
		Running:    {VerdictGrant, VerdictKeep, Running},
		Cancelling: {VerdictKeep, VerdictKeep, Cancelling},
		Lost:       {VerdictDrop, VerdictKeep, Lost},
	} {
		for phase, verdict := range map[HeldPhase]Verdict{HeldAccepted: w.accepted, HeldRunning: w.running} {
			e := inState(t, from)
			require.Equal(t, verdict, Held{e.ID, e.Fence, phase}.Reconcile(e, t0.Add(time.Second), testInstance, noRetry), "%s %d", from, phase)
			require.Equal(t, w.then, e.State, "%s %d", from, phase)
		}
	}
	for _, from := range States {
		for _, phase := range []HeldPhase{HeldAccepted, HeldRunning} {
			for _, held := range []struct {
				fence    int64
				instance InstanceID
				foreign  bool
			}{{0, testInstance, false}, {1, testInstance, true}, {-1, testInstance, true}, {0, testInstance + 1, true}} {
				e := inState(t, from)
				if _, named := map[State]want{Offered: {}, Running: {}, Cancelling: {}, Lost: {}}[from]; named && !held.foreign {
					continue
				}
				before := *e
				require.Equal(t, VerdictDrop, Held{e.ID, e.Fence + held.fence, phase}.Reconcile(e, t0.Add(time.Second), held.instance, noRetry), from)
				require.Equal(t, before, *e)
			}
		}
	}
}

func TestReconcileAnOfferWhoseTimeIsOver(t *testing.T) {
	e := inState(t, Offered)
	require.Equal(t, VerdictDrop, Held{e.ID, 1, HeldAccepted}.Reconcile(e, t0.Add(OfferTTL), testInstance, noRetry))
	require.Equal(t, Due, e.State, "no grant for it can exist: it may be offered anew at once")
	require.Equal(t, t0.Add(OfferTTL), e.NotBefore)
	require.Zero(t, e.Attempt)
}

// TestReconcileWaitingForARetry: the attempt was given up, but its handler goes
// on, and may end before the next one is offered.
func TestReconcileWaitingForARetry(t *testing.T) {
	p := retryPolicy(3, true)
	e := newExecution(3)
	run(t, e, t0, p)
	_, err := e.Lose(t0.Add(time.Second), ReasonLeaseExpired, "", p)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
	require.Equal(t, VerdictKeep, Held{e.ID, 1, HeldRunning}.Reconcile(e, t0.Add(time.Second), testInstance, p))
	require.Equal(t, VerdictDrop, Held{e.ID, 1, HeldAccepted}.Reconcile(e, t0.Add(time.Second), testInstance, p))
	_, err = e.Finish(t0.Add(2*time.Second), Report{Fence: 1, Outcome: OutcomeFailed}, p)
	require.NoError(t, err)
	require.Equal(t, VerdictDrop, Held{e.ID, 1, HeldRunning}.Reconcile(e, t0.Add(2*time.Second), testInstance, p), "it has been reported")
}
