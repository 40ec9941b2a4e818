package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWakeGivesFreshPatience(t *testing.T) {
	now := time.UnixMilli(1800000000000).UTC()
	waiting := Execution{State: Due, Reason: ReasonWaitSlot, Message: "m", WakeAt: now.Add(30 * time.Second), ExpireAt: now.Add(-time.Hour)}
	e := waiting
	require.NoError(t, e.Wake(now, time.Minute))
	require.Equal(t, Execution{State: Due, WakeAt: now.Add(PickupGrace), ExpireAt: now.Add(time.Minute)}, e)

	e = waiting
	e.ExpireAt = time.Time{}
	require.NoError(t, e.Wake(now, time.Minute))
	require.True(t, e.ExpireAt.IsZero(), "never means never")

	e = waiting
	e.State = Running
	require.Equal(t, CodeIllegalMove, CodeOf(e.Wake(now, time.Minute)))
}

// TestADeadlineIsNotExtended: who waits for an instance already is not woken again
// each time a run before it gives up, and no record of a wait ends after it.
func TestADeadlineIsNotExtended(t *testing.T) {
	now := time.UnixMilli(1800000000000).UTC()
	for _, reason := range []Reason{"", ReasonWaitInstance, ReasonOfferRefused} {
		e := Execution{State: Due, Reason: reason, ExpireAt: now.Add(3 * time.Second)}
		require.Equal(t, CodeIllegalMove, CodeOf(e.Wake(now, time.Minute)), reason)
		require.Equal(t, now.Add(3*time.Second), e.ExpireAt)
	}
	e := Execution{State: Due, ExpireAt: now.Add(3 * time.Second)}
	require.NoError(t, e.Wait(now, ReasonWaitInstance, "full", now.Add(10*time.Second)))
	require.Equal(t, e.ExpireAt, e.WakeAt, "somebody looks when its wait is over")
	require.False(t, e.Expired(e.ExpireAt.Add(-time.Millisecond)))
	require.True(t, e.Expired(e.ExpireAt))
	e.Reason = ReasonWaitSlot
	require.False(t, e.Expired(e.ExpireAt), "that wait does not count")
}

func TestIDFloorBoundsIDs(t *testing.T) {
	now := time.UnixMilli(1800000000123).UTC()
	id := NewIDSource(MaxNodeID, func() time.Time { return now }).Next()
	require.Equal(t, now, IDTime(id))
	require.GreaterOrEqual(t, id, IDFloor(now))
	require.Less(t, id, IDFloor(now.Add(time.Millisecond)))
	require.Zero(t, IDFloor(time.Time{}))
}
