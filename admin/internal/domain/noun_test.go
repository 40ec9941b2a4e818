package domain

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStateNames(t *testing.T) {
	require.Len(t, States, len(stateNames))
	for _, s := range States {
		require.NotEmpty(t, s.String())
		back, ok := ParseState(s.String())
		require.True(t, ok)
		require.Equal(t, s, back)
		require.False(t, s.Terminal() && s.OnInstance(), s.String())
	}
	_, ok := ParseState("finished")
	require.False(t, ok)
	_, ok = ParseState("")
	require.False(t, ok)
}

// Stored numbers must not change: rows of older versions hold them.
func TestStoredNumbers(t *testing.T) {
	require.Equal(t, map[State]State{Due: 1, Offered: 2, Running: 3, Cancelling: 4, RetryWait: 5, Succeeded: 10,
		Failed: 11, TimedOut: 12, Cancelled: 13, Lost: 14, Missed: 15, Discarded: 16, Excluded: 17},
		map[State]State{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14, 15: 15, 16: 16, 17: 17})
	require.Equal(t, []string{"enabled", "paused", "deleted"}, []string{JobState(1).String(), JobState(2).String(), JobState(3).String()})
}

func TestRolesContainEachOther(t *testing.T) {
	roles := []Role{RoleViewer, RoleOperator, RoleEditor, RoleScripter, RoleAdmin}
	before := Permission(0)
	for _, r := range roles {
		p := r.Permissions()
		require.Equal(t, before, p&before, string(r))
		// Who may run jobs may call handlers and set timers.
		require.Equal(t, 1, bits.OnesCount32(uint32(p&^before&^PermCall&^PermTimer)), "%s adds one right", r)
		require.Equal(t, r != RoleViewer, p&PermCall != 0, string(r))
		require.Equal(t, r != RoleViewer, p&PermTimer != 0, string(r))
		before = p
	}
	require.Equal(t, PermCall, RoleCaller.Permissions())
	require.Equal(t, PermTimer, RoleTimer.Permissions())
	require.Zero(t, Role("root").Permissions())
	require.Zero(t, Role("").Permissions())
	require.Len(t, PermissionNames, len(roles)+2)
	require.Equal(t, PermTimer, Permission(1)<<(len(PermissionNames)-1), "one name per bit")
}

func TestScopesOfKeys(t *testing.T) {
	all, shop := Scope{}, Scope{Executors: []string{"shop"}}
	cancel := Scope{Handlers: []string{"shop/cancel-order", "shop/a/b"}}
	both := Scope{Executors: []string{"bank"}, Handlers: []string{"shop/cancel-order"}}
	for _, row := range []struct {
		scope             Scope
		executor, handler string
		want              bool
	}{
		{all, "shop", "x", true},
		{shop, "shop", "x", true},
		{shop, "bank", "x", false},
		{shop, "shop/x", "x", false},
		{cancel, "shop", "cancel-order", true},
		{cancel, "shop", "a/b", true},
		{cancel, "shop", "cancel-order2", false},
		{cancel, "shop", "", false},
		{both, "bank", "x", true},
		{both, "shop", "cancel-order", true},
		{both, "shop", "x", false},
	} {
		require.Equal(t, row.want, row.scope.Allows(row.executor, row.handler), "%v %s/%s", row.scope, row.executor, row.handler)
	}
	for _, row := range []struct {
		of, in Scope
		want   bool
	}{
		{all, all, true},
		{shop, all, true},
		{all, shop, false},
		{shop, shop, true},
		{cancel, shop, true},
		{shop, cancel, false},
		{both, shop, false},
		{cancel, both, false},
		{Scope{Handlers: []string{"shop/cancel-order", "bank/x"}}, both, true},
	} {
		require.Equal(t, row.want, row.in.Contains(row.of), "%v in %v", row.of, row.in)
	}
}

func TestSlotLimit(t *testing.T) {
	for _, row := range []struct {
		blocking    Blocking
		parallelism int
		want        int
	}{
		{BlockSerial, 0, 1}, {BlockSerial, 5, 1}, {BlockDiscard, 5, 1}, {"", 5, 1},
		{BlockParallel, 5, 5}, {BlockParallel, 0, 0},
	} {
		require.Equal(t, row.want, (&JobSpec{Blocking: row.blocking, Parallelism: row.parallelism}).SlotLimit())
	}
}

func TestNeverFitsAndSortsLast(t *testing.T) {
	require.Equal(t, "9999-12-31T23:59:59Z", Never.Format("2006-01-02T15:04:05Z07:00"))
}
