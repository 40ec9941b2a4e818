package db

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A server that refuses connections counts as a database that is away.
func TestADatabaseWithoutAConnectionIsUnavailable(t *testing.T) {
	for _, err := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, context.DeadlineExceeded,
		&mysql.MySQLError{Number: 1040}, &mysql.MySQLError{Number: 1203}, &mysql.MySQLError{Number: 1226}, &mysql.MySQLError{Number: 3169}, &mysql.MySQLError{Number: 1927},
	} {
		require.Equal(t, domain.CodeUnavailable, domain.CodeOf(Translate("set job state", fmt.Errorf("begin: %w", err))), "%v", err)
	}
	require.Equal(t, domain.CodeInternal, domain.CodeOf(Translate("set job state", &mysql.MySQLError{Number: 1064})))
}
