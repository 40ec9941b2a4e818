package gormstore

import (
	"errors"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// TestTheClusterOfTheDatabase: with a cluster that was lent (withparts -cluster) all
// of its servers are seen, and the one that answers is the writer.
func TestTheClusterOfTheDatabase(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	require.NoError(t, s.Ping(t.Context())) // the writer is known when somebody has written
	d, err := s.DescribeDatabase(t.Context())
	require.NoError(t, err)
	if os.Getenv(testenv.EnvCluster) == "" {
		require.Nil(t, d.Group)
		return
	}
	require.NotNil(t, d.Group)
	require.True(t, d.Group.Quorum)
	require.Len(t, d.Group.Members, 3)
	writers := 0
	for _, m := range d.Group.Members {
		if m.Role == "writer" {
			writers++
			require.True(t, m.Current && m.ID == d.Group.Writer, "%+v", m)
			require.Contains(t, []string{"online", "synced"}, m.State)
		}
	}
	require.Equal(t, 1, writers)
}

func TestDescribeDatabase(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			d, err := s.DescribeDatabase(t.Context())
			require.NoError(t, err)
			if name == "sqlite" {
				require.Equal(t, "sqlite", d.Kind)
			} else {
				require.Contains(t, []string{"mariadb", "mysql"}, d.Kind)
			}
			require.NotEmpty(t, d.Version)
			require.Equal(t, "primary", d.Role)
			require.False(t, d.ReadOnly)
			require.Positive(t, d.Latency)
			for _, f := range d.Findings {
				require.False(t, f.Fatal, f.Message)
			}

			// A key of that name over other columns is no wall.
			for _, change := range map[string][]string{
				"sqlite": {"DROP INDEX uq_executions_occurrence", "CREATE UNIQUE INDEX uq_executions_occurrence ON executions (job_id, fire_at)"},
				"mysql":  {"ALTER TABLE executions DROP KEY uq_executions_occurrence, ADD UNIQUE KEY uq_executions_occurrence (job_id, fire_at)"},
			}[name] {
				_, err := s.Write.ExecContext(t.Context(), change)
				require.NoError(t, err)
			}
			d, err = s.DescribeDatabase(t.Context())
			require.NoError(t, err)
			require.Equal(t, "unique_key_missing", d.Findings[len(d.Findings)-1].Code)
			require.True(t, d.Findings[len(d.Findings)-1].Fatal)
		})
	}
}

func TestAnUnsafeServerIsNamed(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateServer(t, "--log-bin=bin", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2")
	o := mysqlOptions(t)
	o.DSN = server.Database(t)
	s := openStore(t, o)
	codes := func() map[string]bool {
		d, err := s.DescribeDatabase(t.Context())
		require.NoError(t, err)
		out := map[string]bool{}
		for _, f := range d.Findings {
			out[f.Code] = f.Fatal
		}
		return out
	}
	require.Equal(t, map[string]bool{"not_durable": false, "binlog_not_durable": false}, codes())
	_, err := s.Write.ExecContext(t.Context(), "SET GLOBAL read_only = 1")
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"not_durable": false, "binlog_not_durable": false, "read_only": true}, codes())
}

// Rows that a moved tenant has left behind are no lag of this cell, and verify does not
// call them missed.
func TestWhatAMovedTenantHasLeftBehind(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockSerial)
			require.NotEmpty(t, w.plan(1))
			tenant, err := s.FindTenantByName(t.Context(), "world")
			require.NoError(t, err)
			exec := func(statement string, args ...any) {
				t.Helper()
				_, err := s.Write.ExecContext(t.Context(), statement, args...)
				require.NoError(t, err)
			}
			exec("UPDATE triggers SET next_fire_at = 1000")
			seen := func() (jobs, runs, lags int) {
				require.NoError(t, s.ReadLedger(t.Context(), func(r store.LedgerReader) error {
					list, err := r.Jobs(t.Context(), 0, 100)
					jobs = len(list)
					return errors.Join(err, r.Executions(t.Context(), 0, math.MaxInt64, func(*store.LedgerEntry) error { runs++; return nil }))
				}))
				list, err := s.ListPartitionLags(t.Context())
				require.NoError(t, err)
				for _, l := range list {
					if !l.NextFireAt.IsZero() || !l.OldestWakeAt.IsZero() {
						lags++
					}
				}
				return jobs, runs, lags
			}
			jobs, runs, lags := seen()
			require.True(t, jobs == 3 && runs > 0 && lags > 0, "%d %d %d", jobs, runs, lags)
			exec("UPDATE tenants SET state = 2 WHERE id = ?", int64(tenant.ID))
			jobs, _, lags = seen()
			require.Equal(t, []int{3, 0}, []int{jobs, lags}, "disabled: it waits, and is looked at")
			for _, left := range []string{"state = 5, cell = 'eu2'", "state = 4, cell = 'eu2'", "state = 3, cell = 'eu2'"} {
				exec("UPDATE tenants SET "+left+" WHERE id = ?", int64(tenant.ID))
				jobs, runs, lags = seen()
				require.Equal(t, []int{0, 0, 0}, []int{jobs, runs, lags}, left)
			}
		})
	}
}
