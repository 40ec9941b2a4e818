package gormstore

import (
	"context"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

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
	require.Contains(t, try(after("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")), "isolation level is REPEATABLE-READ")
	require.Contains(t, try(after("SET SESSION time_zone = '+01:00'")), "time zone is +01:00")

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
