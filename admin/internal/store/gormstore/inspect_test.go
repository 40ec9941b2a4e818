package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// altering is a path to the database that does something to each new session.
type altering struct {
	driver.Connector
	connect func(ctx context.Context, to driver.Connector) (driver.Conn, error)
}

func (a altering) Connect(ctx context.Context) (driver.Conn, error) {
	return a.connect(ctx, a.Connector)
}

func TestTrySession(t *testing.T) {
	try := func(connect func(context.Context, driver.Connector) (driver.Conn, error)) string {
		t.Helper()
		o := mysqlOptions(t)
		o.Connector = func(c driver.Connector) driver.Connector { return altering{c, connect} }
		s, err := OpenReader(o)
		require.NoError(t, err)
		defer s.Close()
		wrong, err := s.TrySession(t.Context())
		require.NoError(t, err)
		return strings.Join(wrong, "; ")
	}
	require.Empty(t, try(func(ctx context.Context, to driver.Connector) (driver.Conn, error) { return to.Connect(ctx) }))
	after := func(statement string) func(context.Context, driver.Connector) (driver.Conn, error) {
		return func(ctx context.Context, to driver.Connector) (driver.Conn, error) {
			conn, err := to.Connect(ctx)
			if err == nil {
				_, err = conn.(driver.ExecerContext).ExecContext(ctx, statement, nil)
			}
			return conn, err
		}
	}
	require.Contains(t, try(after("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")), `_isolation is "REPEATABLE-READ" and not "READ-COMMITTED"`)
	require.Contains(t, try(after("SET SESSION time_zone = '+01:00'")), `time_zone is "+01:00" and not "+00:00"`)
	require.Contains(t, try(after("SET SESSION sql_safe_updates = 1")), `sql_safe_updates is "1" and not "0"`)
	require.Contains(t, try(after("SET SESSION sql_select_limit = 7")), `sql_select_limit is "7"`)

	cfg, err := mysql.ParseDSN(testenv.PrivateServer(t).Database(t))
	require.NoError(t, err)
	other, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	sessions := 0
	require.Contains(t, try(func(ctx context.Context, to driver.Connector) (driver.Conn, error) {
		if sessions++; sessions%2 == 0 {
			return other.Connect(ctx)
		}
		return to.Connect(ctx)
	}), "not seen by another")
}

// TestSessionOfAnOddServer: the server's own values of variables that change the result
// of statements do not reach the store. Each of them would fail a test of the suite or lose rows.
func TestSessionOfAnOddServer(t *testing.T) {
	server := testenv.PrivateServer(t)
	o := mysqlOptions(t)
	o.DSN = server.Database(t)
	root, err := sql.Open("mysql", o.DSN)
	require.NoError(t, err)
	defer root.Close()
	for _, odd := range []string{
		"autocommit = 0", "completion_type = 'RELEASE'", "default_storage_engine = 'MyISAM'", "foreign_key_checks = 0", "innodb_lock_wait_timeout = 50",
		"max_sort_length = 64", "sql_auto_is_null = 1", "sql_big_selects = 0", "max_join_size = 3", "sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'",
		"sql_safe_updates = 1", "sql_select_limit = 3", "time_zone = '+08:00'", "unique_checks = 0",
		"collation_connection = 'latin1_swedish_ci'", "character_set_results = 'latin1'",
	} {
		_, err := root.ExecContext(t.Context(), "SET GLOBAL "+odd)
		require.NoError(t, err, odd)
	}
	_, err = root.ExecContext(t.Context(), "SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY")
	require.NoError(t, err)

	s := openStore(t, o)
	for _, pool := range []*sql.DB{s.Read, s.Write, s.Leases} {
		require.NoError(t, pool.PingContext(t.Context()))
	}
	wrong, err := s.TrySession(t.Context())
	require.NoError(t, err)
	require.Empty(t, wrong)

	// More rows than the limit, a deletion without a key, and all of it is stored.
	require.NoError(t, s.Run(t.Context(), "write values", func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO cluster_values (name, value) VALUES ('odd1', 'a'), ('odd2', 'a'), ('odd3', 'b'), ('odd4', 'b'), ('odd5', 'b')")
		return err
	}))
	_, err = s.Write.ExecContext(t.Context(), "DELETE FROM cluster_values WHERE value = 'a'")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	again, err := OpenReader(o)
	require.NoError(t, err)
	defer again.Close()
	values, err := again.ClusterValues(t.Context())
	require.NoError(t, err)
	require.NotContains(t, values, "odd1")
	require.Equal(t, "b", values["odd5"])
	require.Equal(t, "b", values["odd4"])
	require.Equal(t, "b", values["odd3"])
}
