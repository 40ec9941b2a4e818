//go:build proof

package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAClusterGoesOnWithoutAMember: and has it back.
func TestAClusterGoesOnWithoutAMember(t *testing.T) {
	c := PrivateCluster(t, ClusterOptions{})
	for i := range c.Members() {
		m, err := c.Look(t.Context(), i)
		require.NoError(t, err)
		require.True(t, m.Usable)
		require.Equal(t, 3, m.Size)
		require.Equal(t, i == 0 || c.product == MariaDB, m.Writer)
	}
	first := open(t, c.Members()[0].DSN())
	mustExec(t, first, "CREATE DATABASE bells")
	mustExec(t, first, "CREATE TABLE bells.bell (id INT PRIMARY KEY)")
	require.NoError(t, c.Members()[2].Kill())
	mustExec(t, first, "INSERT INTO bells.bell VALUES (1)")
	require.NoError(t, c.Start(2))
	require.Equal(t, 1, count(t, open(t, c.Members()[2].DSN()), "SELECT COUNT(*) FROM bells.bell"))

	require.NoError(t, c.HandOver(0))
	for i := range c.Members() {
		m, err := c.Look(t.Context(), i)
		require.NoError(t, err)
		require.Equal(t, i == 1 || c.product == MariaDB, m.Writer, "member %d", i+1)
	}
}
