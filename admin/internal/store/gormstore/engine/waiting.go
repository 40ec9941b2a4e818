package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// stillDue are the states of runs that wait to be offered.
var stillDue = fmt.Sprintf("state IN (%d, %d)", domain.Due, domain.RetryWait)

func (s *Sweeps) StillDue(ctx context.Context, ids []domain.ExecutionID) (map[domain.ExecutionID]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.LookPairs[domain.ExecutionID, int64](ctx, s.DB, "look at waiting executions",
		"SELECT id, fence FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") AND "+stillDue)
}

// waitingRow is the place of a run that waits, as its row says.
type waitingRow struct {
	id     domain.ExecutionID
	openAt int64
}

// saveWaiting writes and removes rows of waiting_runs, as runs begin and cease to wait for a
// start.
func (b *Batch) saveWaiting(changes []db.Change[record.ExecutionRow]) error {
	var enter []string
	var leave []domain.ExecutionID
	for _, c := range changes {
		was, is := c.Before.Waits(), c.After.Waits()
		id := domain.ExecutionID(c.After.ID)
		switch {
		case was && !is:
			leave = append(leave, id)
		case is && (!was || b.Waits[id].Line != 0): // its line may not have been known
			e, w := &b.Moves[id].E, b.Waits[id]
			line, openAt := w.Line, db.Millis(b.Now)
			if line == 0 {
				line = domain.LineNumber(e.Executor)
			}
			if !w.Anyone {
				openAt += store.OwnFor.Milliseconds()
			}
			enter = append(enter, fmt.Sprintf("(%d,%d,%d,%d,%d,%d,%d)", id, c.After.TenantID, c.After.ExecutorID, line, db.Millis(e.Precedence()), c.After.Part, openAt))
		}
	}
	t := b.Tx
	for part := range slices.Chunk(enter, 200) {
		columns := []string{"line", "place", "part", "open_at"}
		for i, c := range columns {
			columns[i] = " " + c + " = " + t.Dialect.Inserted(c)
		}
		// A row of an unknown line, or one that has stayed behind, is replaced.
		_, err := t.Exec(t.Ctx, "INSERT INTO waiting_runs (execution_id, tenant_id, executor_id, line, place, part, open_at) VALUES "+strings.Join(part, ",")+
			t.Dialect.OnDuplicate("execution_id")+strings.Join(columns, ","))
		if err != nil {
			return err
		}
	}
	for part := range slices.Chunk(leave, 500) {
		if _, err := t.Exec(t.Ctx, "DELETE FROM waiting_runs WHERE execution_id IN ("+db.IDList(part)+")"); err != nil {
			return err
		}
	}
	return nil
}

// WaitingLines reads the index of lines: one entry of each.
func (s *Sweeps) WaitingLines(ctx context.Context, after int64, limit int) (out []store.WaitingLine, err error) {
	numbers, err := db.LookSelect(ctx, s.DB, "find waiting lines", func(n *int64) []any { return []any{n} }, s.Dialect.Distinct("waiting_runs", "line", after, limit))
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	terms := make([]string, len(numbers))
	for i, n := range numbers {
		terms[i] = s.Dialect.Bounded(fmt.Sprintf("SELECT line, tenant_id, executor_id, place, execution_id FROM waiting_runs%s WHERE line = %d ORDER BY line, place, execution_id LIMIT 1",
			s.Dialect.ByIndex("ix_waiting_runs_line"), n))
	}
	out, err = db.LookSelect(ctx, s.DB, "read waiting lines", func(l *store.WaitingLine) []any {
		return []any{&l.Line, &l.Tenant, &l.Executor, db.At(&l.First), &l.Next}
	}, strings.Join(terms, " UNION ALL "))
	slices.SortFunc(out, func(a, b store.WaitingLine) int { return cmp.Compare(a.Line, b.Line) })
	return out, err
}

// ListWaiting reads the index of lines, and then the rows of the runs.
func (s *Sweeps) ListWaiting(ctx context.Context, p store.ListWaitingParams) ([]domain.Execution, error) {
	if p.Limit <= 0 || p.Read <= 0 {
		return nil, nil
	}
	where := fmt.Sprintf("line = %d", p.Line)
	if len(p.Partitions) == 0 {
		where += " AND open_at <= " + s.Dialect.ClockNow()
	} else if len(p.Partitions) < domain.Partitions {
		parts := domain.Collect(p.Partitions, func(p *int) int64 { return int64(*p) })
		where += " AND part IN (" + db.IDList(parts) + ")"
	}
	order := ""
	if p.Newest {
		order = " DESC"
	}
	rows, err := db.LookSelect(ctx, s.DB, "find waiting executions", func(r *waitingRow) []any { return []any{&r.id, &r.openAt} },
		fmt.Sprintf("SELECT execution_id, open_at FROM waiting_runs%s WHERE %s ORDER BY line%[3]s, place%[3]s, execution_id%[3]s LIMIT %d",
			s.Dialect.ByIndex("ix_waiting_runs_line"), where, order, p.Read))
	if err != nil {
		return nil, err
	}
	at := make(map[domain.ExecutionID]int, len(rows))
	ids := make([]domain.ExecutionID, len(rows))
	for i, r := range rows {
		ids[i], at[r.id] = r.id, i
	}
	if p.Unattended != nil {
		ids = p.Unattended(ids)
	}
	ids = ids[:min(len(ids), p.Limit)]
	var out []domain.Execution
	looked := ids[:0:0]
	for bytes, few := 0, 20; len(ids) > 0 && bytes < store.MaxListedInput; few = 500 { // the first ones show how large they are
		if len(out) > 0 && bytes/len(out) > 1<<10 {
			few = 20
		}
		part := ids[:min(few, len(ids))]
		ids, looked = ids[len(part):], append(looked, part...)
		rows, err := db.LookSelect(ctx, s.DB, "read waiting executions", func(r *record.ExecutionRow) []any { return record.ExecutionTable.Targets(r) },
			"SELECT "+record.ExecutionColumns+" FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(part)+")")
		if err != nil {
			return nil, err
		}
		for i := range rows {
			out = append(out, rows[i].Execution())
			bytes += int(rows[i].TextSize())
		}
	}
	slices.SortFunc(out, func(a, b domain.Execution) int { return cmp.Compare(at[a.ID], at[b.ID]) })
	found := make(map[domain.ExecutionID]bool, len(out))
	out = slices.DeleteFunc(out, func(e domain.Execution) bool {
		found[e.ID] = domain.AwaitsStart(&e)
		return !found[e.ID] || db.Millis(e.WakeAt) >= record.ParkedFrom
	})
	var gone []waitingRow
	for _, id := range looked {
		if !found[id] {
			gone = append(gone, rows[at[id]])
		}
	}
	s.removeWaiting(ctx, gone)
	return out, nil
}

// removeWaiting removes places of runs that did not wait when they were read. A run that
// has begun to wait again since then has a place with another open_at.
func (s *Sweeps) removeWaiting(ctx context.Context, rows []waitingRow) {
	for part := range slices.Chunk(rows, 200) {
		terms := make([]string, len(part))
		for i, r := range part {
			terms[i] = fmt.Sprintf("(execution_id = %d AND open_at = %d)", r.id, r.openAt)
		}
		err := s.Run(ctx, "remove waiting executions", func(t *db.Tx) error {
			_, err := t.Exec(t.Ctx, "DELETE FROM waiting_runs WHERE "+strings.Join(terms, " OR "))
			return err
		})
		if err != nil {
			s.Logger.Warn("places of runs that wait no more are not removed; the next look tries again", "count", len(part), "err", err)
			return
		}
	}
}

// waitingJobsRead bounds the rows that are looked through for the jobs of an
// executor.
const waitingJobsRead = 5_000

func (s *Sweeps) ListWaitingJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []store.WaitingJob, err error) {
	var alive []string
	for _, of := range []int64{0, record.PhaseTimer} {
		alive = append(alive, s.Dialect.Bounded(fmt.Sprintf("SELECT job_id, revision FROM executions%s WHERE tenant_id = %d AND phase = %d AND executor_id = %d AND %s ORDER BY id LIMIT %d",
			s.Dialect.ByIndex("ix_executions_phase"), tenant, of+record.PhaseAlive, executor, stillDue, waitingJobsRead)))
	}
	return db.LookSelect(ctx, s.DB, "list waiting jobs", func(j *store.WaitingJob) []any { return []any{&j.Job, &j.Revision} },
		"SELECT job_id, MAX(revision) FROM ("+strings.Join(alive, " UNION ALL ")+") AS alive GROUP BY job_id ORDER BY job_id")
}
