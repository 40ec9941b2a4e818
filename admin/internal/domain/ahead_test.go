package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOffersMayComeAheadAndGrantsMayNot.
func TestOffersMayComeAheadAndGrantsMayNot(t *testing.T) {
	for before, allowed := range map[time.Duration]bool{OfferAhead + 1: false, OfferAhead: true, 1: true, 0: true, time.Hour: false} {
		e := newExecution(1)
		now := t0.Add(-before)
		err := e.Offer(now, testNode, testInstance, false, false, noRetry)
		require.Equal(t, allowed, err == nil, before)
		if err != nil {
			require.Equal(t, CodeIllegalMove, CodeOf(err))
			continue
		}
		require.Equal(t, now, e.OfferedAt)
		if before > 0 {
			require.Equal(t, CodeIllegalMove, CodeOf(e.Grant(t0.Add(-1), e.Fence, testInstance, noRetry)))
			require.Equal(t, Offered, e.State)
		}
		require.NoError(t, e.Grant(t0, e.Fence, testInstance, noRetry))
		require.Equal(t, t0, e.GrantedAt)
	}
	e := newExecution(1)
	require.Equal(t, CodeIllegalMove, CodeOf(e.Offer(t0.Add(-1), testNode, testInstance, true, true, noRetry)), "the offer is the grant")
	require.NoError(t, e.Offer(t0, testNode, testInstance, true, true, noRetry))
}

// TestWhatComesBackAheadOfItsTimeStillWaitsForIt, unless the database's clock was
// set back so far that its time would not come.
func TestWhatComesBackAheadOfItsTimeStillWaitsForIt(t *testing.T) {
	for _, c := range []struct{ now, wait, want time.Duration }{
		{-30 * time.Millisecond, 0, 0},
		{-30 * time.Millisecond, 20 * time.Millisecond, 0},
		{-30 * time.Millisecond, time.Second, time.Second - 30*time.Millisecond},
		{5 * time.Millisecond, 0, 5 * time.Millisecond},
		{-time.Hour, 0, -time.Hour},
	} {
		e := newExecution(1)
		require.NoError(t, e.Offer(t0.Add(-40*time.Millisecond), testNode, testInstance, false, false, noRetry))
		require.NoError(t, e.GiveBack(t0.Add(c.now), 1, ReasonOfferRefused, "", c.wait))
		require.Equal(t, t0.Add(c.want), e.NotBefore, c)
		require.Equal(t, e.NotBefore.Add(PickupGrace), e.WakeAt)
	}
}

// TestAnInventoryThatComesAheadStartsNothing: the attempt is dropped, and offered
// again for its time.
func TestAnInventoryThatComesAheadStartsNothing(t *testing.T) {
	e := newExecution(1)
	require.NoError(t, e.Offer(t0.Add(-40*time.Millisecond), testNode, testInstance, false, false, noRetry))
	require.Equal(t, VerdictDrop, Held{ID: e.ID, Fence: 1, Phase: HeldAccepted}.Reconcile(e, t0.Add(-1), testInstance, noRetry))
	require.Equal(t, Due, e.State)
	require.Equal(t, t0, e.NotBefore)
}

func TestWhatAnEditMayTakeBack(t *testing.T) {
	e := newExecution(1)
	require.True(t, MaybeUnplanned(e, t0.Add(-1)))
	require.False(t, MaybeUnplanned(e, t0), "its time has come")
	require.NoError(t, e.Offer(t0.Add(-1), testNode, testInstance, false, false, noRetry))
	require.True(t, MaybeUnplanned(e, t0.Add(-1)))
	require.NoError(t, e.Grant(t0, 1, testInstance, noRetry))
	require.False(t, MaybeUnplanned(e, t0.Add(-1)), "it has begun")
}

func TestWhichJobsRunsMayBeOfferedAhead(t *testing.T) {
	for blocking, want := range map[Blocking]bool{BlockSerial: true, BlockParallel: true, BlockDiscard: false, BlockCover: false} {
		s := JobSpec{Blocking: blocking}
		require.Equal(t, want, s.MaybeAhead(), blocking)
		s.Sharding.Mode = ShardFixed
		require.False(t, s.MaybeAhead())
	}
}
