package gormstore

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	schema "github.com/carillon-sched/carillon/sql"
)

// waitAll records waits of runs, of one line.
func (w *world) waitAll(runs []domain.Execution, line int64) {
	w.tb.Helper()
	waits := make([]store.Wait, len(runs))
	for i, e := range runs {
		waits[i] = store.Wait{Tenant: e.TenantID, ID: e.ID, Reason: domain.ReasonWaitInstance, Line: line, Anyone: true}
	}
	_, err := w.s.RecordWaits(w.tb.Context(), waits)
	require.NoError(w.tb, err)
}

// Runs that waited before the table was there are found after the migration.
func TestTheMigrationFindsWaitingRuns(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockParallel)
			runs := w.plan(2)
			w.waitAll(runs[:4], 1)
			_, err := s.Write.ExecContext(t.Context(), "DELETE FROM waiting_runs")
			require.NoError(t, err)
			lines, err := s.WaitingLines(t.Context(), 0, 10)
			require.NoError(t, err)
			require.Empty(t, lines)

			files, file := fs.FS(schema.MySQL), "mysql/00008_waiting_runs.sql"
			if s.Dialect.Name() == "sqlite" {
				files, file = schema.SQLite, "sqlite/00008_waiting_runs.sql"
			}
			text, err := fs.ReadFile(files, file)
			require.NoError(t, err)
			_, fill, found := strings.Cut(string(text), "INSERT ")
			require.True(t, found)
			_, err = s.Write.ExecContext(t.Context(), "INSERT "+fill)
			require.NoError(t, err)
			lines, err = s.WaitingLines(t.Context(), 0, 10)
			require.NoError(t, err)
			require.Len(t, lines, 1)
			list, err := s.ListWaiting(t.Context(), store.ListWaitingParams{Line: lines[0].Line, Read: 10, Limit: 10})
			require.NoError(t, err)
			require.Equal(t, ids(runs[:4]), ids(list))
		})
	}
}

func ids(runs []domain.Execution) []domain.ExecutionID {
	return domain.Collect(runs, func(e *domain.Execution) domain.ExecutionID { return e.ID })
}

// The question for lines looks at one entry of each line, and a line is read along its index.
func TestWaitingRunsAreReadByTheirIndex(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 20, domain.BlockParallel)
			runs := w.plan(50)
			w.waitAll(runs[:990], 7)
			w.waitAll(runs[990:], 8)
			_, err := s.Write.ExecContext(t.Context(), analyze(s))
			require.NoError(t, err)
			e := &explainer{t: t, s: s, tables: map[string]bool{"waiting_runs": true}, few: 10}
			e.explain(t.Context(), s.Dialect.Distinct("waiting_runs", "line", 0, 64))
			e.explain(t.Context(), "SELECT execution_id, open_at FROM waiting_runs"+s.Dialect.ByIndex("ix_waiting_runs_line")+
				" WHERE line = 7 AND open_at <= "+s.Dialect.ClockNow()+" ORDER BY line DESC, place DESC, execution_id DESC LIMIT 10")
			e.explain(t.Context(), "SELECT execution_id, open_at FROM waiting_runs"+s.Dialect.ByIndex("ix_waiting_runs_line")+
				" WHERE line = 7 AND part IN (1,2,3) ORDER BY line, place, execution_id LIMIT 10")
			lines, err := s.WaitingLines(t.Context(), 0, 1)
			require.NoError(t, err)
			require.Equal(t, int64(7), lines[0].Line)
			lines, err = s.WaitingLines(t.Context(), 7, 1)
			require.NoError(t, err)
			require.Equal(t, int64(8), lines[0].Line)
		})
	}
}

// analyze has the database count the rows of the table.
func analyze(s *Store) string {
	if s.Dialect.Name() == "sqlite" {
		return "ANALYZE waiting_runs"
	}
	return "ANALYZE TABLE waiting_runs"
}
