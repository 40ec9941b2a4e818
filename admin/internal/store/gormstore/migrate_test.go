package gormstore

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	schema "github.com/carillon-sched/carillon/sql"
)

// Migration 00060 gives fire times that a calendar excludes their own state, and
// leaves all others alone.
func TestExcludedFireTimesGetTheirState(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockParallel)
			w.plan(10)
			exec := func(statement string, args ...any) {
				_, err := s.write.ExecContext(ctx, statement, args...)
				require.NoError(t, err)
			}
			exec("UPDATE executions SET state = 15, phase = 15, wake_at = NULL, reason = 'calendar' WHERE job_id = ?", int64(w.jobs[0]))
			exec("UPDATE executions SET state = 15, phase = 15, wake_at = NULL, reason = 'misfire' WHERE job_id = ?", int64(w.jobs[1]))

			provider, err := s.provider()
			require.NoError(t, err)
			states := func() (out [3][2]int64) {
				require.NoError(t, query(ctx, s.read, func(rows *sql.Rows) error {
					var job, state, phase int64
					if err := rows.Scan(&job, &state, &phase); err != nil {
						return err
					}
					for i, id := range w.jobs {
						if int64(id) == job {
							out[i] = [2]int64{state, phase}
						}
					}
					return nil
				}, "SELECT DISTINCT job_id, state, phase FROM executions"))
				return out
			}
			before := [3][2]int64{{15, 15}, {15, 15}, {1, 0}}
			require.Equal(t, before, states())
			for range 2 { // also from there
				_, err = provider.ApplyVersion(ctx, 60, false)
				require.NoError(t, err)
				require.Equal(t, before, states())
				_, err = provider.ApplyVersion(ctx, 60, true)
				require.NoError(t, err)
				require.Equal(t, [3][2]int64{{17, 17}, {15, 15}, {1, 0}}, states())
			}

			files := fs.FS(schema.SQLite)
			if name == "mysql" {
				files = schema.MySQL
			}
			text, err := fs.ReadFile(files, name+"/00060_excluded.sql")
			require.NoError(t, err)
			e := &explainer{t: t, s: s}
			for _, statement := range strings.Split(string(text), ";") {
				if at := strings.Index(statement, "\nUPDATE"); at >= 0 {
					e.explain(ctx, statement[at:])
				}
			}
		})
	}
}
