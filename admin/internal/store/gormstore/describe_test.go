package gormstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
)

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
				_, err := s.write.ExecContext(t.Context(), change)
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
	_, err := s.write.ExecContext(t.Context(), "SET GLOBAL read_only = 1")
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"not_durable": false, "binlog_not_durable": false, "read_only": true}, codes())
}

func TestMultiWritersAreFatal(t *testing.T) {
	for name, c := range map[string]struct {
		set   map[string]string
		fatal bool
	}{
		"galera":           {map[string]string{"wsrep_on": "ON"}, true},
		"one writer":       {map[string]string{"wsrep_on": "OFF"}, false},
		"group, primary":   {map[string]string{"group_replication_group_name": "A", "group_replication_single_primary_mode": "ON"}, false},
		"group of writers": {map[string]string{"group_replication_group_name": "A", "group_replication_single_primary_mode": "OFF"}, true},
		"plugin, no group": {map[string]string{"group_replication_group_name": "", "group_replication_single_primary_mode": "OFF"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.set["innodb_flush_log_at_trx_commit"] = "1"
			found := mysqlFindings(c.set, func(v string) bool { return c.set[v] == "ON" })
			require.Equal(t, c.fatal, len(found) == 1)
			for _, f := range found {
				require.Equal(t, domain.Finding{Code: "multi_writer", Fatal: true, Message: f.Message}, f)
				require.True(t, strings.Contains(f.Message, "--allow-multi-writer"))
			}
		})
	}
}
