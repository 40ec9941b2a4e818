package settings_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/settings"
)

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("server", pflag.ContinueOnError)
	f.String("data", "default", "")
	f.String("mail-host", "", "")
	f.Duration("log-retention", time.Hour, "")
	f.Bool("insecure-bind", false, "")
	require.NoError(t, f.Parse(args))
	return f
}

func TestAFlagWinsOverEnvironmentOverFileOverDefault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("data: file\nmail-host: file\nlog-retention: 3h\n"), 0o600))
	t.Setenv("CARILLON_DATA", "env")
	t.Setenv("CARILLON_MAIL_HOST", "env")
	t.Setenv("CARILLON_TEST_MYSQL_DSN", "of another program")

	k, err := settings.Load(flags(t, "--data", "flag"), path)
	require.NoError(t, err)
	require.Equal(t, "flag", k.String("data"))
	require.Equal(t, "env", k.String("mail-host"))
	require.Equal(t, 3*time.Hour, k.Duration("log-retention"))
	require.False(t, k.Bool("insecure-bind"))
	require.False(t, k.Exists("test-mysql-dsn"))
}

func TestDefaultsStandWhenNothingIsGiven(t *testing.T) {
	k, err := settings.Load(flags(t), "")
	require.NoError(t, err)
	require.Equal(t, "default", k.String("data"))
	require.Equal(t, time.Hour, k.Duration("log-retention"))
}

func TestAnUnknownKeyInTheFileIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("mail-hots: x\n"), 0o600))
	_, err := settings.Load(flags(t), path)
	require.ErrorContains(t, err, `"mail-hots"; did you mean mail-host?`)
}
