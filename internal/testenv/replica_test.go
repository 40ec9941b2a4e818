//go:build proof

package testenv

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReplicaHasWhatWasCommittedAndIsPromoted, and not what it was kept from.
func TestAReplicaHasWhatWasCommittedAndIsPromoted(t *testing.T) {
	primary := PrivateServer(t, ReplicaArgs(Chosen(), 1)...)
	replica := PrivateServer(t, ReplicaArgs(Chosen(), 2)...)
	ctx := t.Context()
	require.NoError(t, replica.Follow(ctx, primary))
	require.NoError(t, primary.AwaitReplica(ctx, true))
	require.NoError(t, primary.do(ctx, "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"))
	for i := range 200 {
		require.NoError(t, primary.do(ctx, fmt.Sprintf("INSERT INTO d.t VALUES (%d)", 1000+i)))
	}
	require.NoError(t, primary.AwaitReplica(ctx, false))
	require.NoError(t, replica.StopReceiving(ctx))
	require.NoError(t, primary.do(ctx, "INSERT INTO d.t VALUES (1)"))
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Promote(ctx))
	var rows, lost int
	require.NoError(t, withServer(replica.config(), func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(IF(id = 1, 1, NULL)) FROM d.t").Scan(&rows, &lost)
	}))
	require.Equal(t, 200, rows)
	require.Zero(t, lost)
	require.NoError(t, replica.do(ctx, "INSERT INTO d.t VALUES (1)"), "it takes writes")
}
