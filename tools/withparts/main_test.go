package main

import (
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCommandGetsAServer(t *testing.T) {
	t.Setenv(testenv.EnvMySQLDSN, "")
	out := t.TempDir() + "/dsn"
	status, err := run(testenv.EnvMySQLDSN, false, testenv.Options{Product: testenv.Chosen()}, []string{"sh", "-c", `printf %s "$CARILLON_TEST_MYSQL_DSN" >` + out + `; exit 7`})
	require.NoError(t, err)
	require.Equal(t, 7, status)

	dsn, err := os.ReadFile(out)
	require.NoError(t, err)
	cfg, err := mysql.ParseDSN(string(dsn))
	require.NoError(t, err)
	require.NotEmpty(t, cfg.Addr)
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	_, err = connector.Connect(t.Context())
	require.Error(t, err, "the server should have ended with the command")
}

func TestServerOfTheCallerIsLeftAlone(t *testing.T) {
	t.Setenv(testenv.EnvMySQLDSN, "root@tcp(db.example:3306)/")
	status, err := run(testenv.EnvMySQLDSN, false, testenv.Options{Product: testenv.Chosen()}, []string{"sh", "-c", `[ "$CARILLON_TEST_MYSQL_DSN" = "root@tcp(db.example:3306)/" ]`})
	require.NoError(t, err)
	require.Equal(t, 0, status)
}

func TestExitStatusFollowsTheShell(t *testing.T) {
	status, err := runCommand([]string{"sh", "-c", "kill -TERM $$"})
	require.NoError(t, err)
	require.Equal(t, 143, status)

	status, err = runCommand([]string{"/no/such/program"})
	require.Error(t, err)
	require.Equal(t, 1, status)
}

// The command, not withparts, decides what a signal means.
func TestSignalsReachTheCommand(t *testing.T) {
	status, err := runCommand([]string{"sh", "-c",
		`sleep 60 & trap "kill $!; exit 9" TERM; kill -TERM $PPID; wait`})
	require.NoError(t, err)
	require.Equal(t, 9, status)
}
