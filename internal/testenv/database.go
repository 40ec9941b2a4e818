package testenv

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// EnvMySQLDSN names the environment variable with the data source name of a
// server to test on, for example root:secret@tcp(127.0.0.1:3306)/. Its user
// must be allowed to create and drop databases. Unset or empty: tests start
// their own server.
const EnvMySQLDSN = "CARILLON_TEST_MYSQL_DSN"

// dropLimit bounds the removal of a test's database.
const dropLimit = 30 * time.Second

// shared is the process's own server. Nobody closes it: its guard does when
// the process ends.
var shared = sync.OnceValues(func() (*Server, error) { return NewServer(Options{}) })

// Database creates an empty database that no other test knows and returns its
// data source name for the driver "mysql". The database is dropped when the
// test ends; a connection that then still holds a transaction open fails the
// test.
//
// The connection speaks utf8mb4 at READ COMMITTED, reads times (parseTime),
// interpolates parameters and counts matched rows (clientFoundRows), as the
// server itself does.
func Database(tb testing.TB) string {
	tb.Helper()
	server, err := sharedConfig()
	if err != nil {
		tb.Fatalf("database server for tests: %v", err)
	}
	name, dsn, err := createDatabase(tb.Context(), server)
	if err != nil {
		tb.Fatalf("database for test: %v", err)
	}
	tb.Cleanup(func() {
		// Not tb.Context(): that one is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), dropLimit)
		defer cancel()
		if err := execute(ctx, server, "DROP DATABASE "+name); err != nil {
			tb.Errorf("drop %s (does a connection still hold a transaction open?): %v", name, err)
		}
	})
	return dsn
}

// PrivateServer starts a server for this test alone, to be killed, frozen and
// restarted; it takes about 1 s, MySQL 4. args are added to its command line
// (Options.Args). The server ends with the test. CARILLON_TEST_MYSQL_DSN has no
// say here: a server that is lent is not ours to kill.
func PrivateServer(tb testing.TB, args ...string) *Server {
	tb.Helper()
	server, err := NewServer(Options{Args: args})
	if err != nil {
		tb.Fatalf("private database server: %v", err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Errorf("close private database server: %v", err)
		}
	})
	return server
}

// Database is the function Database on this server. The database lives as long as the
// server does.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	_, dsn, err := createDatabase(tb.Context(), s.config())
	if err != nil {
		tb.Fatalf("database for test: %v", err)
	}
	return dsn
}

// sharedConfig returns the login to the server that was lent, or else to the
// process's own.
func sharedConfig() (*mysql.Config, error) {
	if dsn := os.Getenv(EnvMySQLDSN); dsn != "" {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", EnvMySQLDSN, err)
		}
		return cfg, nil
	}
	server, err := shared()
	if err != nil {
		return nil, err
	}
	return server.config(), nil
}

func createDatabase(ctx context.Context, server *mysql.Config) (name, dsn string, err error) {
	name = "carillon_test_" + newSecret()
	if err := execute(ctx, server, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		return "", "", fmt.Errorf("create %s: %w", name, err)
	}
	isolation, err := isolationVariable(ctx, server)
	if err != nil {
		return "", "", fmt.Errorf("ask for isolation: %w", err)
	}
	cfg := server.Clone()
	cfg.DBName = name
	cfg.ParseTime, cfg.InterpolateParams, cfg.ClientFoundRows = true, true, true
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params[isolation] = "'READ-COMMITTED'"
	return name, cfg.FormatDSN(), nil
}

// isolationVariable returns the name of the session variable: MySQL 8 knows
// only transaction_isolation, MariaDB before 11.1 only tx_isolation, later
// ones both.
func isolationVariable(ctx context.Context, server *mysql.Config) (string, error) {
	var name, value string
	err := withServer(server, func(db *sql.DB) error {
		// Answered in alphabetical order: the newer name comes first.
		return db.QueryRowContext(ctx, `SHOW VARIABLES
			WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')`).Scan(&name, &value)
	})
	return name, err
}

func execute(ctx context.Context, server *mysql.Config, statement string) error {
	return withServer(server, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

// withServer lends do a connection pool without a database.
func withServer(server *mysql.Config, do func(*sql.DB) error) error {
	cfg := server.Clone()
	cfg.DBName = ""
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return do(db)
}
