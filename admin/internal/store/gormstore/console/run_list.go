package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// maxJobsByName bounds how many jobs a search by name may match.
const maxJobsByName = 200

func (s *Runs) FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (view store.ExecutionView, err error) {
	err = s.Look(ctx, "find execution", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		row, err := s.executionByID(ctx, q, tenant, id)
		if err != nil {
			return err
		}
		if row == nil {
			return db.NotFound("execution", id)
		}
		views, err := s.executionViews(ctx, q, []*record.ExecutionRow{row})
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

// FindOccurrence reads one entry of the unique index.
func (s *Runs) FindOccurrence(ctx context.Context, tenant domain.TenantID, job domain.JobID, fireAt time.Time, key string) (view store.ExecutionView, err error) {
	err = s.Look(ctx, "find occurrence", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		rows, err := s.scanExecutions(ctx, q, "SELECT "+record.ExecutionColumns+
			" FROM executions WHERE job_id = ? AND fire_at = ? AND occurrence_key = ? AND tenant_id = ?", int64(job), db.Millis(fireAt), key, int64(tenant))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return domain.Errorf(domain.CodeNotFound, "job %s has no run for %s", job, fireAt.UTC().Format(time.RFC3339Nano))
		}
		views, err := s.executionViews(ctx, q, rows)
		if err == nil {
			view = views[0]
		}
		return err
	})
	return view, err
}

// ListExecutions never sorts and never scans more than its filters force it
// to. Three ways through the indexes:
//
//   - by job: the unique index, newest fire time first (all other lists: newest
//     id first; the two differ only for runs planned for later);
//   - by executor or instance: the executor's index;
//   - else: one bounded scan per phase, merged. No state asked for means all.
//     Living states share a phase, in which the others are passed over: there
//     are only as many as are on their way. Bad ends that linger share one, too.
//
// From and To are bounds of the ids, so that a page reads no row beyond them.
// Conditions beyond these filter the rows of the scan.
func (s *Runs) ListExecutions(ctx context.Context, p store.ListExecutionsParams) (views []store.ExecutionView, err error) {
	err = s.Look(ctx, "list executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		rows, err := s.listExecutionRows(ctx, q, p)
		if err != nil {
			return err
		}
		views, err = s.executionViews(ctx, q, rows)
		return err
	})
	return views, err
}

func (s *Runs) listExecutionRows(ctx context.Context, q db.Querier, p store.ListExecutionsParams) ([]*record.ExecutionRow, error) {
	if p.Instance != 0 && p.Executor == 0 {
		err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&p.Executor) },
			"SELECT executor_id FROM instances WHERE id = ? AND tenant_id = ?", int64(p.Instance), int64(p.Tenant))
		if err != nil || p.Executor == 0 {
			return nil, err
		}
	}
	f := &filter{}
	ok, err := s.filterExecutions(ctx, q, p, f)
	if err != nil || !ok {
		return nil, err
	}
	limit := record.PageSize(p.Limit)
	switch {
	case p.Job != 0:
		return s.listByJob(ctx, q, p, f, limit)
	case p.Executor != 0:
		f.states(p.States)
		return s.scanExecutions(ctx, q, s.listStatement("ix_executions_executor", f, "id DESC", limit), f.args...)
	default:
		f.states(p.States)
		states := p.States
		if len(states) == 0 {
			states = domain.States
		}
		return s.listByPhase(ctx, q, phasesOf(states), f, limit)
	}
}

// filter collects conditions and their arguments.
type filter struct {
	conditions []string
	args       []any
}

func (f *filter) add(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

func (f *filter) states(states []domain.State) {
	if len(states) == 0 {
		return
	}
	ids := make([]int64, len(states))
	for i, st := range states {
		ids[i] = int64(st)
	}
	f.add("state IN (" + db.IDList(ids) + ")")
}

// filterExecutions adds what all ways have in common; ok is false when nothing
// can match.
func (s *Runs) filterExecutions(ctx context.Context, q db.Querier, p store.ListExecutionsParams, f *filter) (ok bool, err error) {
	f.add("tenant_id = ?", int64(p.Tenant))
	if p.Job != 0 {
		f.add("job_id = ?", int64(p.Job))
	}
	if p.Instance != 0 {
		f.add("instance_id = ?", int64(p.Instance))
	} else {
		f.add("parent_id = 0") // parts are listed with their run, or with what ran on an instance
	}
	if p.Executor != 0 {
		f.add("executor_id = ?", int64(p.Executor))
	}
	if p.Cause != "" {
		f.add("cause = ?", string(p.Cause))
	}
	if !p.From.IsZero() {
		f.add("id >= ?", domain.IDFloor(p.From))
	}
	if !p.To.IsZero() {
		f.add("id < ?", domain.IDFloor(p.To))
	}
	if p.Before != 0 && p.Job == 0 {
		f.add("id < ?", int64(p.Before))
	}
	if p.JobQuery == "" {
		return true, nil
	}
	var jobs []int64
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		jobs = append(jobs, id)
		return err
	}, "SELECT id FROM jobs WHERE tenant_id = ? AND LOWER(name) LIKE ? ESCAPE '!' ORDER BY name LIMIT ?",
		int64(p.Tenant), contains(strings.ToLower(p.JobQuery)), maxJobsByName)
	if len(jobs) == 0 {
		return false, err
	}
	f.add("job_id IN (" + db.IDList(jobs) + ")")
	return true, err
}

func (s *Runs) listStatement(index string, f *filter, order string, limit int) string {
	return fmt.Sprintf("SELECT %s FROM executions%s WHERE %s ORDER BY %s LIMIT %d",
		record.ExecutionColumns, s.Dialect.ByIndex(index), strings.Join(f.conditions, " AND "), order, limit)
}

// phasesOf returns the phases in which runs in these states may be.
func phasesOf(states []domain.State) []int64 {
	var out []int64
	for _, st := range states {
		switch {
		case st == domain.Failed, st == domain.TimedOut, st == domain.Cancelled:
			out = append(out, int64(st), record.PhaseLingering)
		case st.Terminal():
			out = append(out, int64(st))
		case st == domain.Due:
			out = append(out, record.PhaseAlive, record.PhaseCold)
		default:
			out = append(out, record.PhaseAlive)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *Runs) listByPhase(ctx context.Context, q db.Querier, phases []int64, f *filter, limit int) ([]*record.ExecutionRow, error) {
	var terms []string
	var args []any
	for _, phase := range phases {
		one := &filter{conditions: slices.Clone(f.conditions)}
		one.add(fmt.Sprintf("phase = %d", phase))
		terms = append(terms, s.Dialect.Bounded(s.listStatement("ix_executions_phase", one, "id DESC", limit)))
		args = append(args, f.args...)
	}
	rows, err := s.scanExecutions(ctx, q, strings.Join(terms, " UNION ALL "), args...)
	slices.SortFunc(rows, func(a, b *record.ExecutionRow) int { return int(b.ID - a.ID) })
	return rows[:min(len(rows), limit)], err
}

// listByJob continues after the fire time of the cursor's row, or after the
// time inside its id when retention has removed the row.
func (s *Runs) listByJob(ctx context.Context, q db.Querier, p store.ListExecutionsParams, f *filter, limit int) ([]*record.ExecutionRow, error) {
	f.states(p.States)
	if p.Before != 0 {
		fireAt, key := db.Millis(domain.IDTime(int64(p.Before))), ""
		row, err := s.executionByID(ctx, q, p.Tenant, p.Before)
		if err != nil {
			return nil, err
		}
		if row != nil {
			fireAt, key = row.FireAt, row.OccurrenceKey
		}
		f.add("fire_at <= ? AND (fire_at < ? OR occurrence_key < ?)", fireAt, fireAt, key)
	}
	return s.scanExecutions(ctx, q, s.listStatement("uq_executions_occurrence", f, "fire_at DESC, occurrence_key DESC", limit), f.args...)
}

func (s *Runs) scanExecutions(ctx context.Context, q db.Querier, statement string, args ...any) ([]*record.ExecutionRow, error) {
	var out []*record.ExecutionRow
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		r := &record.ExecutionRow{}
		out = append(out, r)
		return rows.Scan(record.ExecutionTable.Targets(r)...)
	}, statement, args...)
	return out, err
}

// executionViews adds names and what earlier attempts tell, one query per table.
func (s *Runs) executionViews(ctx context.Context, q db.Querier, rows []*record.ExecutionRow) ([]store.ExecutionView, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var keys []record.RevisionKey
	var jobs, executors, instances []int64
	for _, r := range rows {
		keys = append(keys, record.RevisionKey{Job: domain.JobID(r.JobID), Revision: r.Revision})
		jobs, executors = append(jobs, r.JobID), append(executors, r.ExecutorID)
		if r.InstanceID != 0 {
			instances = append(instances, r.InstanceID)
		}
	}
	specs, err := s.specs.Load(ctx, q, keys)
	if err != nil {
		return nil, err
	}
	jobNames, err1 := namesOf(ctx, q, "jobs", jobs)
	executorNames, err2 := executorNames(ctx, q, executors)
	instanceNames, err3 := namesOf(ctx, q, "instances", instances)
	starts, err4 := s.FirstStarts(ctx, q, rows)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	views := make([]store.ExecutionView, len(rows))
	for i, r := range rows {
		views[i] = store.ExecutionView{
			Execution: r.Execution(), JobName: jobNames[r.JobID],
			ExecutorName: executorNames[r.ExecutorID], InstanceName: instanceNames[r.InstanceID],
			FirstStartAt: db.Instant(starts[r.ID]),
		}
		if c := specs[keys[i]]; c.Spec != nil {
			views[i].Handler, views[i].JitterMax = c.Spec.For(views[i].Part).Handler, c.Spec.Schedule.JitterMax
		}
	}
	return views, nil
}

// FirstStarts finds when the earlier attempts of runs started first, by primary
// key. Runs that were offered once have none.
func (s *Runs) FirstStarts(ctx context.Context, q db.Querier, list []*record.ExecutionRow) (map[int64]int64, error) {
	var ids []int64
	for _, r := range list {
		if r.Fence > 1 {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	out := make(map[int64]int64, len(ids))
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id, at int64
		err := rows.Scan(&id, &at)
		out[id] = at
		return err
	}, "SELECT execution_id, MIN(started_at) FROM attempts"+s.Dialect.ByPrimary()+" WHERE execution_id IN ("+db.IDList(ids)+") AND tenant_id = ? AND started_at > 0 GROUP BY execution_id",
		list[0].TenantID)
	return out, err
}

// ListAttempts puts the current attempt behind the archived ones, unless it
// was archived too because another one follows.
func (s *Runs) ListAttempts(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (out []domain.Attempt, err error) {
	err = s.Look(ctx, "list attempts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		row, err := s.executionByID(ctx, q, tenant, id)
		if err != nil {
			return err
		}
		if row == nil {
			return db.NotFound("execution", id)
		}
		archived := false
		err = db.Query(ctx, q, func(rows *sql.Rows) error {
			r := &record.AttemptRow{}
			if err := rows.Scan(record.AttemptTable.Targets(r)...); err != nil {
				return err
			}
			archived = archived || r.Fence == row.Fence
			out = append(out, r.Attempt())
			return nil
		}, "SELECT "+record.AttemptColumns+" FROM attempts WHERE execution_id = ? AND tenant_id = ? ORDER BY fence", int64(id), int64(tenant))
		e := row.Execution()
		onInstance := e.State == domain.Running || e.State == domain.Cancelling
		if !archived && (onInstance || e.State.Terminal() && !e.GrantedAt.IsZero()) {
			out = append(out, e.CurrentAttempt())
		}
		return err
	})
	return out, err
}

// CountExecutions counts final states inside the index, one range each; of the
// living ones the rows are read. The instant is compared with the time in the id.
func (s *Runs) CountExecutions(ctx context.Context, tenant domain.TenantID, since time.Time) (map[domain.State]int64, error) {
	out := map[domain.State]int64{}
	term := func(phase int64, st domain.State) string {
		statement := fmt.Sprintf("SELECT %d, COUNT(*) FROM executions%s WHERE tenant_id = %d AND phase = %d AND id >= %d",
			st, s.Dialect.ByIndex("ix_executions_phase"), tenant, phase, domain.IDFloor(since))
		if phase == record.PhaseAlive || phase == record.PhaseLingering {
			statement += fmt.Sprintf(" AND state = %d", st)
		}
		return statement
	}
	var terms []string
	for _, st := range domain.States {
		for _, phase := range phasesOf([]domain.State{st}) {
			terms = append(terms, term(phase, st))
		}
	}
	err := s.Look(ctx, "count executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		clear(out)
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var state domain.State
			var n int64
			err := rows.Scan(&state, &n)
			if n > 0 {
				out[state] += n
			}
			return err
		}, strings.Join(terms, " UNION ALL "))
	})
	return out, err
}

// EndedAmong goes by the primary key.
func (s *Runs) EndedAmong(ctx context.Context, tenant domain.TenantID, ids []domain.ExecutionID) (ended []domain.ExecutionID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.Look(ctx, "look for ended executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		ended = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			err := rows.Scan(&id)
			ended = append(ended, id)
			return err
		}, fmt.Sprintf("SELECT id FROM executions%s WHERE id IN (%s) AND tenant_id = %d AND state >= %d", s.Dialect.ByPrimary(), db.IDList(ids), int64(tenant), int64(domain.Succeeded)))
	})
	return ended, err
}
