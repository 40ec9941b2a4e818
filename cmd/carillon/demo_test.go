package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePasswordOfADemo: that of the operator, or a random one; a later start goes on
// with the one that the first administrator has.
func TestThePasswordOfADemo(t *testing.T) {
	dir := t.TempDir()
	for _, given := range []string{"a long demo password", "", "another one"} {
		state, err := loadDemoState(dir, given)
		require.NoError(t, err)
		require.Equal(t, "a long demo password", state.Password)
	}
	one, err := loadDemoState(t.TempDir(), "")
	require.NoError(t, err)
	other, err := loadDemoState(t.TempDir(), "")
	require.NoError(t, err)
	require.NotEqual(t, one.Password, other.Password)
}
