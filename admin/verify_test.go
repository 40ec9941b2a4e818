package admin_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/admin/verify/ledger"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestTheDatabaseAccountsForAllFireTimes lets a node run, pause, resume, edit
// and delete jobs, and then reads its database from outside.
func TestTheDatabaseAccountsForAllFireTimes(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			var dsn string
			n := startNode(t, func(c *admin.Config) { dsn = database(t, c.DataDir); c.Database = dsn })
			ran := make(chan struct{}, 1000)
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "tick", func(context.Context) error { ran <- struct{}{}; return nil })
			})
			job := func(name string, schedule map[string]any) string {
				return n.newJob("shop", "tick", map[string]any{"name": name, "blocking": "parallel", "schedule": schedule})
			}
			everySecond := map[string]any{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds"}
			steady := job("steady", everySecond)
			paused := job("paused", everySecond)
			deleted := job("deleted", map[string]any{"kind": "fixed_rate", "every": "500ms"})
			job("delayed", map[string]any{"kind": "fixed_delay", "every": "1s"})
			wait := func(runs int) {
				for range runs {
					select {
					case <-ran:
					case <-time.After(time.Minute):
						t.Fatal("nothing runs")
					}
				}
			}
			wait(10)
			n.do(http.MethodPost, "/api/v1/jobs/"+paused+"/pause", nil, nil, 200)
			n.do(http.MethodDelete, "/api/v1/jobs/"+deleted, nil, nil, 204)
			n.runNow(steady, nil)
			wait(6)
			n.do(http.MethodPost, "/api/v1/jobs/"+paused+"/resume", nil, nil, 200)
			wait(6)

			r := accountOf(t, dsn)
			require.Empty(t, r.Examples)
			require.Equal(t, 0, r.ExitCode(), "%+v", r)
			require.Equal(t, 4, r.Jobs)
			require.Equal(t, r.Expected, r.Accounted)
			require.GreaterOrEqual(t, r.Expected, 20)
			require.Equal(t, 1, r.Asked)

			// The same from the command's own door, which leaves the last minute alone.
			report, err := admin.Account(t.Context(), admin.Config{DataDir: n.dir, Database: dsn}, 24*time.Hour)
			require.NoError(t, err)
			require.Empty(t, report.Examples)
			_, err = admin.Account(t.Context(), admin.Config{DataDir: n.dir, Database: dsn}, 91*24*time.Hour)
			require.ErrorContains(t, err, "kept for")
		})
	}
}

// accountOf judges everything up to the present.
func accountOf(t *testing.T, database string) *verify.Report {
	t.Helper()
	driver, dsn, _ := strings.Cut(database, ":")
	s, err := gormstore.OpenReader(gormstore.Options{Driver: driver, DSN: dsn})
	require.NoError(t, err)
	defer s.Close()
	r, err := ledger.Check(t.Context(), s, ledger.Options{Since: time.Hour, Recent: time.Millisecond})
	require.NoError(t, err)
	return r
}

func TestAccountNeedsADatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, missing := range []string{dir + "/nowhere", dir} {
		_, err := admin.Account(t.Context(), admin.Config{DataDir: missing}, time.Hour)
		require.ErrorContains(t, err, "no database")
	}
	require.Empty(t, files(t, dir), "it only reads")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "carillon.db"), nil, 0o600))
	_, err := admin.Account(t.Context(), admin.Config{DataDir: dir}, time.Hour)
	require.ErrorContains(t, err, "carillon migrate")
}
