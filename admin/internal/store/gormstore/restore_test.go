package gormstore

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// restoreSQLite puts a backup back into a file that others have open.
func restoreSQLite(t *testing.T, file, backup string) {
	t.Helper()
	db, err := sql.Open("sqlite", db.SQLiteDSN(file, false, 0))
	require.NoError(t, err)
	defer db.Close()
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.Raw(func(raw any) error {
		b, err := raw.(interface {
			NewRestore(string) (*sqlite.Backup, error)
		}).NewRestore(backup)
		if err != nil {
			return err
		}
		if _, err := b.Step(-1); err != nil {
			return err
		}
		return b.Finish()
	}))
}
