package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// parked reports whether the last heartbeat said so.
func parked(s fakeadmin.Seen) bool {
	return len(s.Heartbeats) > 0 && s.Heartbeats[len(s.Heartbeats)-1].GetParked()
}

// TestAnIdleExecutorKeepsOneSession, says so, and comes back to all nodes when
// it is wanted, or when that session ends.
func TestAnIdleExecutorKeepsOneSession(t *testing.T) {
	const beat = 20 * time.Millisecond
	one, two := startAdmin(t, &fakeadmin.Admin{Node: "n1", Heartbeat: beat}), startAdmin(t, &fakeadmin.Admin{Node: "n2", Heartbeat: beat})
	f := startFleet(t, func(o *Options) {
		o.Addresses, o.IdleAfter = []string{one.Address(), two.Address()}, 300*time.Millisecond
	})
	f.events.busy.Store(true)
	f.events.waitUp(t, 2)
	saw(t, one, func(s fakeadmin.Seen) bool { return s.Sessions == 1 && len(s.Heartbeats) > 50 })
	require.Zero(t, one.Seen().Ended+two.Seen().Ended, "something runs")
	f.events.busy.Store(false)

	link := f.events.waitUp(t, 1)[0]
	home, other := one, two
	if link.Node() == "n2" {
		home, other = two, one
	}
	saw(t, home, parked)
	saw(t, other, func(s fakeadmin.Seen) bool { return s.Ended == 1 })
	require.NotContains(t, f.logs.String(), "trying again")
	require.NoError(t, f.Health())

	f.events.busy.Store(true)
	require.NoError(t, home.Sessions()[0].Control(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Wake{Wake: &proto.Wake{}}}))
	saw(t, other, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	saw(t, home, func(s fakeadmin.Seen) bool { return !parked(s) })
	require.Equal(t, 1, home.Seen().Sessions, "its session has stood all the time")

	f.events.busy.Store(false)
	require.Same(t, link, f.events.waitUp(t, 1)[0], "it chooses the same node again")
	f.events.busy.Store(true)
	home.Sessions()[0].Cut()
	saw(t, other, func(s fakeadmin.Seen) bool { return s.Sessions == 3 })
	saw(t, home, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	f.events.waitUp(t, 2)
}

// TestOneNodeAloneIsNotParked: there is nothing to close.
func TestOneNodeAloneIsNotParked(t *testing.T) {
	f := NewFleet(Options{IdleAfter: time.Second})
	f.ready = []*Link{{node: "n1"}}
	require.Empty(t, f.park(time.Now().Add(time.Hour)))
	require.Empty(t, f.parked)
}
