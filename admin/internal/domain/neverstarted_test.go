package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestALateNeverStarted: the journal of an executor that comes back proves that
// an attempt never began which was given up. Its run goes on, and the attempt
// does not count.
func TestALateNeverStarted(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	lost := func(p Policy, attempts int) Execution {
		e := Execution{ID: 1, State: Due, MaxAttempts: attempts, NotBefore: now, ExpireAt: now.Add(5 * time.Minute)}
		require.NoError(t, e.Offer(now, 1, 2, false, false, p))
		require.NoError(t, e.Grant(now.Add(time.Second), e.Fence, 2, p))
		_, err := e.Lose(now.Add(20*time.Second), ReasonLeaseExpired, "silent", p)
		require.NoError(t, err)
		return e
	}
	back := now.Add(time.Minute)
	for name, c := range map[string]struct {
		p     Policy
		state State
	}{
		"lost":                   {Policy{}, Lost},
		"waiting for a next one": {Policy{RetryLost: true}, RetryWait},
		"that costs an attempt":  {Policy{RetryLost: true, Retry: Retry{MaxAttempts: 2}}, RetryWait},
	} {
		t.Run(name, func(t *testing.T) {
			most := max(1, c.p.Retry.MaxAttempts)
			e := lost(c.p, most)
			require.Equal(t, c.state, e.State)
			report := Report{ExecutionID: 1, Fence: e.Fence, Outcome: OutcomeNeverStarted, Error: "no grant came in time"}
			fx, err := e.Finish(back, report, c.p)
			require.NoError(t, err)
			require.Zero(t, fx)
			require.Equal(t, Due, e.State)
			require.Equal(t, ReasonNotStarted, e.Reason)
			require.Equal(t, back, e.NotBefore)
			require.Zero(t, e.Attempt)
			require.Zero(t, e.LostAttempts)
			require.Equal(t, most, e.MaxAttempts)
			require.True(t, e.FinishedAt.IsZero())
			_, err = e.Finish(back, report, c.p)
			require.Error(t, err, "once")
		})
	}
	t.Run("its wait for an instance goes on", func(t *testing.T) {
		e := lost(Policy{}, 1)
		_, err := e.Finish(now.Add(time.Hour), Report{Fence: e.Fence, Outcome: OutcomeNeverStarted}, Policy{})
		require.NoError(t, err)
		require.True(t, e.Expired(now.Add(time.Hour)))
	})
	t.Run("the parent of a part has counted on its end", func(t *testing.T) {
		e := lost(Policy{}, 1)
		e.Parent, e.Part = 9, PartShard
		_, err := e.Finish(back, Report{Fence: e.Fence, Outcome: OutcomeNeverStarted}, Policy{})
		require.Equal(t, CodeAlreadyFinished, CodeOf(err))
		require.Equal(t, Lost, e.State)
	})
}
