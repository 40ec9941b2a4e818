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
		row, err := record.ExecutionByID(ctx, q, tenant, id)
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
		rows, err := record.ScanExecutions(ctx, q, "SELECT "+record.ExecutionColumns+
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
// to. Four ways through the indexes:
//
//   - by fingerprint: the primary keys that counts of failures name;
//   - by job: the unique index, newest fire time first (all other lists: newest
//     id first; the two differ only for runs planned for later);
//   - by executor or instance, and within a bounded reach: the index of each executor;
//   - else: one bounded scan per phase, merged. No state asked for means all.
//     Living states share a phase, in which the others are passed over: there
//     are only as many as are on their way. Bad ends that linger share one, too.
//
// From and To bound the ids, so that a page reads few rows beyond them.
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
	if err := s.executorOf(ctx, q, &p); err != nil || p.Instance != 0 && p.Executor == 0 {
		return nil, err
	}
	f := &record.ExecutionFilter{}
	ok, err := s.filterExecutions(ctx, q, p, f)
	if err != nil || !ok {
		return nil, err
	}
	limit := record.PageSize(p.Limit)
	if p.Until == nil || !loose(p) {
		return s.listBy(ctx, q, p, f, limit)
	}
	c := record.ExecutionCount{Filter: f}
	s.countBy(p, &c)
	floor, err := c.Floor(ctx, q, s.Dialect, p.Before)
	if err != nil {
		return nil, err
	}
	f.Add("id > ?", int64(floor))
	rows, err := s.listBy(ctx, q, p, f, limit)
	if *p.Until = 0; floor > 0 && len(rows) < limit {
		*p.Until = floor + 1
	}
	return rows, err
}

// loose reports whether the index of a list has runs that its filter leaves out, as many as there
// may be. The runs of one job and of one error are few enough.
func loose(p store.ListExecutionsParams) bool {
	switch {
	case p.Job != 0, p.Fingerprint != 0:
		return false
	case p.Error != "", p.Instance != 0, p.Name+p.Label+p.Owner+p.JobQuery != "", p.Cause != "" && p.Cause != domain.CauseTimer:
		return true
	case len(p.States) == 0:
		return false
	}
	return p.Executor != 0 || p.Within.Bounded() || slices.Contains(record.PhasesOf(p.States), record.PhaseAlive)
}

// listBy reads the first rows by the index of the filter.
func (s *Runs) listBy(ctx context.Context, q db.Querier, p store.ListExecutionsParams, f *record.ExecutionFilter, limit int) ([]*record.ExecutionRow, error) {
	switch {
	case p.Fingerprint != 0:
		f.States(p.States)
		return record.ExecutionsByIndex(ctx, q, s.Dialect, record.PrimaryIndex, f, "id DESC", limit)
	case p.Job != 0:
		return record.ExecutionsByJob(ctx, q, s.Dialect, p, f, limit)
	case p.Executor != 0:
		f.States(p.States)
		return record.ExecutionsByIndex(ctx, q, s.Dialect, "ix_executions_executor", f, "id DESC", limit)
	case p.Within.Bounded():
		f.States(p.States)
		return record.ExecutionsByExecutor(ctx, q, s.Dialect, p.Within.IDs(), f, limit)
	default:
		f.States(p.States)
		return record.ExecutionsByPhase(ctx, q, s.Dialect, phasesOf(p), f, limit)
	}
}

// executorOf finds the executor of the instance that is asked for.
func (s *Runs) executorOf(ctx context.Context, q db.Querier, p *store.ListExecutionsParams) error {
	if p.Instance == 0 || p.Executor != 0 {
		return nil
	}
	return db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&p.Executor) },
		"SELECT executor_id FROM instances WHERE id = ? AND tenant_id = ?", int64(p.Instance), int64(p.Tenant))
}

// phasesOf are the phases in which the runs of a list may be.
func phasesOf(p store.ListExecutionsParams) []int64 {
	states := p.States
	if len(states) == 0 {
		states = domain.States
	}
	phases := record.PhasesOf(states)
	if p.Cause == domain.CauseTimer {
		for i := range phases {
			phases[i] += record.PhaseTimer
		}
	}
	return phases
}

// filterExecutions adds what all ways have in common; ok is false when nothing
// can match.
func (s *Runs) filterExecutions(ctx context.Context, q db.Querier, p store.ListExecutionsParams, f *record.ExecutionFilter) (ok bool, err error) {
	tenant := "tenant_id = ?"
	if p.Fingerprint != 0 {
		tenant = "+tenant_id = ?" // without the sign SQLite reads all runs of the tenant instead of the ids
	}
	f.Add(tenant, int64(p.Tenant))
	if p.Within.Bounded() && (p.Job != 0 || p.Executor != 0 || p.Fingerprint != 0) {
		f.Add(db.InReach("executor_id", p.Within))
	}
	if p.Job != 0 {
		f.Add("job_id = ?", int64(p.Job))
	}
	if p.Instance != 0 {
		f.Add("instance_id = ?", int64(p.Instance))
	} else {
		f.Add("parent_id = 0") // parts are listed with their run, or with what ran on an instance
	}
	if p.Executor != 0 {
		f.Add("executor_id = ?", int64(p.Executor))
	}
	if p.Job == 0 && p.Instance == 0 && p.Cause == "" && p.Fingerprint == 0 {
		f.Add("cause <> ?", string(domain.CauseTimer)) // they have their own lists, as do those of one job or instance
	}
	if p.Cause != "" {
		f.Add("cause = ?", string(p.Cause))
	}
	if p.Error != "" {
		where, args := db.TextIn(p.Error, "error")
		f.Add(where, args...)
	}
	filterDue(p, f)
	if p.Before != 0 && (p.Job == 0 || p.Fingerprint != 0) {
		f.Add("id < ?", int64(p.Before))
	}
	if p.Fingerprint != 0 {
		ids, err := db.SelectColumn[int64](ctx, q, RunsOfError(s.Dialect, p.Tenant, p.Fingerprint, p.Within, p.Before, dueSince(p)))
		if err != nil || len(ids) == 0 {
			return false, err
		}
		f.Add("id IN (" + db.IDList(ids) + ")")
	}
	return s.filterByJobs(ctx, q, p, f)
}

// dueSince is the earliest writing of a run that is due at From or later.
func dueSince(p store.ListExecutionsParams) time.Time {
	if p.From.IsZero() {
		return p.From
	}
	return p.From.Add(-store.MostAhead)
}

// filterDue adds From and To. A run is due at its fire time, or when it was written if that was
// later. Its id has the time of writing.
func filterDue(p store.ListExecutionsParams, f *record.ExecutionFilter) {
	if !p.From.IsZero() {
		f.Add("id >= ?", domain.IDFloor(dueSince(p)))
		f.Add("(fire_at >= ? OR id >= ?)", db.Millis(p.From), domain.IDFloor(p.From))
	}
	if !p.To.IsZero() {
		f.Add("id < ?", domain.IDFloor(p.To))
		f.Add("fire_at < ?", db.Millis(p.To))
	}
}

// filterByJobs turns conditions of jobs into a list of their ids. A part of the name takes the
// first jobs that match; all other conditions are exact.
func (s *Runs) filterByJobs(ctx context.Context, q db.Querier, p store.ListExecutionsParams, f *record.ExecutionFilter) (ok bool, err error) {
	conditions := jobConditions(p.Name, p.Label, p.Owner)
	exact := len(conditions) > 0
	if p.JobQuery != "" {
		where, args := db.TextIn(p.JobQuery, "j.name")
		conditions = append(conditions, condition{where, args})
	}
	if len(conditions) == 0 {
		return true, nil
	}
	statement, args := "SELECT j.id FROM jobs AS j WHERE j.tenant_id = ?", []any{int64(p.Tenant)}
	for _, c := range conditions {
		statement, args = statement+" AND "+c.where, append(args, c.args...)
	}
	jobs, err := db.SelectColumn[int64](ctx, q, statement+" AND "+db.InReach("j.executor_id", p.Within)+" ORDER BY j.name LIMIT ?", append(args, maxJobsByName+1)...)
	switch {
	case err != nil || len(jobs) == 0:
		return false, err
	case len(jobs) > maxJobsByName && exact:
		return false, domain.Invalid("query", "name, label and owner match more than %d jobs: give a filter that matches fewer", maxJobsByName)
	}
	f.Add("job_id IN (" + db.IDList(jobs[:min(len(jobs), maxJobsByName)]) + ")")
	return true, nil
}

// TotalExecutions implements store.Totals. It goes the ways of ListExecutions.
func (s *Runs) TotalExecutions(ctx context.Context, p store.ListExecutionsParams) (total store.Total, err error) {
	p.Before = 0
	err = s.Look(ctx, "count listed executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		total = store.Total{}
		if err := s.executorOf(ctx, q, &p); err != nil || p.Instance != 0 && p.Executor == 0 {
			return err
		}
		c := record.ExecutionCount{Filter: &record.ExecutionFilter{}}
		ok, err := s.filterExecutions(ctx, q, p, c.Filter)
		if err != nil || !ok {
			return err
		}
		c.Filter.States(p.States)
		s.countBy(p, &c)
		total, err = c.Total(ctx, q, s.Dialect)
		return err
	})
	return total, err
}

// countBy chooses the index.
func (s *Runs) countBy(p store.ListExecutionsParams, c *record.ExecutionCount) {
	c.Order, c.Range = "id", []string{fmt.Sprintf("tenant_id = %d", int64(p.Tenant))}
	if !p.From.IsZero() {
		c.Range = append(c.Range, fmt.Sprintf("id >= %d", domain.IDFloor(dueSince(p))))
	}
	if !p.To.IsZero() {
		c.Range = append(c.Range, fmt.Sprintf("id < %d", domain.IDFloor(p.To)))
	}
	switch {
	case p.Job != 0:
		c.Index, c.Order, c.Range, c.Column, c.Values = "uq_executions_occurrence", "fire_at", nil, "job_id", []int64{int64(p.Job)}
	case p.Executor != 0:
		c.Index, c.Column, c.Values = "ix_executions_executor", "executor_id", []int64{int64(p.Executor)}
	case p.Within.Bounded():
		ids := p.Within.IDs()
		c.Index, c.Column = "ix_executions_executor", "executor_id"
		c.Values = domain.Collect(ids, func(e *domain.ExecutorID) int64 { return int64(*e) })
	default:
		c.Index, c.Column = "ix_executions_phase", "phase"
		if c.Values = phasesOf(p); p.Fingerprint != 0 {
			c.Values = record.PhasesOf(domain.States)
		}
	}
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
	specs, err := s.specs.LoadLight(ctx, q, keys)
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
	return s.firstStarts(ctx, q, list[0].TenantID, ids)
}

func (s *shared) firstStarts(ctx context.Context, q db.Querier, tenant int64, runs []int64) (map[int64]int64, error) {
	return db.Pairs[int64, int64](ctx, q,
		"SELECT execution_id, MIN(started_at) FROM attempts"+s.Dialect.ByPrimary()+" WHERE execution_id IN ("+db.IDList(runs)+") AND tenant_id = ? AND started_at > 0 GROUP BY execution_id",
		tenant)
}

func (s *Runs) ListAttempts(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (out []domain.Attempt, err error) {
	err = s.Look(ctx, "list attempts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		row, err := record.ExecutionByID(ctx, q, tenant, id)
		if err != nil {
			return err
		}
		if row == nil {
			return db.NotFound("execution", id)
		}
		err = db.Query(ctx, q, func(rows *sql.Rows) error {
			r := &record.AttemptRow{}
			if err := rows.Scan(record.AttemptTable.Targets(r)...); err != nil {
				return err
			}
			out = append(out, r.Attempt())
			return nil
		}, "SELECT "+record.AttemptColumns+" FROM attempts WHERE execution_id = ? AND tenant_id = ? ORDER BY fence", int64(id), int64(tenant))
		e := row.Execution()
		out = domain.Attempts(&e, out)
		return err
	})
	return out, err
}

// CountExecutions counts final states inside the index, one range each; of the
// living ones, and within a bounded reach, the rows are read. The instant is compared with
// the time in the id.
func (s *Runs) CountExecutions(ctx context.Context, tenant domain.TenantID, within domain.Reach, since time.Time) (map[domain.State]int64, error) {
	out := map[domain.State]int64{}
	term := func(phase int64, st domain.State) string {
		statement := fmt.Sprintf("SELECT %d, COUNT(*) FROM executions%s WHERE tenant_id = %d AND phase = %d AND id >= %d",
			st, s.Dialect.ByIndex("ix_executions_phase"), tenant, phase, domain.IDFloor(since))
		if phase == record.PhaseAlive || phase == record.PhaseLingering {
			statement += fmt.Sprintf(" AND state = %d", st)
		}
		if within.Bounded() {
			statement += " AND " + db.InReach("executor_id", within)
		}
		return statement
	}
	var terms []string
	for _, st := range domain.States {
		for _, phase := range record.PhasesOf([]domain.State{st}) {
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
	return db.LookColumn[domain.ExecutionID](ctx, s.DB, "look for ended executions",
		fmt.Sprintf("SELECT id FROM executions%s WHERE id IN (%s) AND tenant_id = %d AND state >= %d", s.Dialect.ByPrimary(), db.IDList(ids), int64(tenant), int64(domain.Succeeded)))
}
