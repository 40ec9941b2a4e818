package console

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ListJobIDs lists jobs in the order of their ids, the ids in (after, until). Each state is
// read along an index that has the ids in order.
func (s *Jobs) ListJobIDs(ctx context.Context, p store.ListJobsParams, after, until domain.JobID) (ids []domain.JobID, err error) {
	states := []domain.JobState{domain.JobEnabled, domain.JobPaused}
	if p.State != 0 {
		states = []domain.JobState{p.State}
	}
	index := "ix_jobs_kind"
	if p.Executor != 0 {
		index = "ix_jobs_executor"
	}
	limit := record.PageSize(p.Limit)
	err = s.Look(ctx, "list ids of jobs", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		ids = nil
		for _, state := range states {
			p.State = state
			var some []domain.JobID
			err := filterJobs(g.Table("jobs AS j"+s.Dialect.ByIndex(index)), p).Where("j.id > ? AND j.id < ?", int64(after), int64(until)).
				Order("j.id").Limit(limit).Pluck("j.id", &some).Error
			if err != nil {
				return err
			}
			ids = append(ids, some...)
		}
		slices.Sort(ids)
		ids = ids[:min(len(ids), limit)]
		return nil
	})
	return ids, err
}

// CountJobIDs counts what ListJobIDs lists, most at most.
func (s *Jobs) CountJobIDs(ctx context.Context, p store.ListJobsParams, until domain.JobID, most int) (n int64, err error) {
	err = s.Look(ctx, "count ids of jobs", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		return g.Table("(?) AS found", filterJobs(g.Table("jobs AS j").Select("j.id"), p).Where("j.id < ?", int64(until)).Limit(most)).Count(&n).Error
	})
	return n, err
}

// LockJobs locks jobs until the end of the transaction, in the order of their ids, and returns
// those that exist.
func (s *Jobs) LockJobs(t *db.Tx, tenant domain.TenantID, ids []domain.JobID) (map[domain.JobID]store.LockedJob, error) {
	out := make(map[domain.JobID]store.LockedJob, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	triggers := map[int64]*record.TriggerRow{}
	var at int64
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		r := &record.TriggerRow{}
		err := rows.Scan(record.TriggerTable.Targets(r, &at)...)
		triggers[r.JobID] = r
		return err
	}, "SELECT "+t.Dialect.Clock()+", "+record.TriggerColumns+" FROM triggers WHERE job_id IN ("+db.IDList(slices.Sorted(slices.Values(ids)))+") AND +tenant_id = ? ORDER BY job_id"+t.Dialect.ForUpdate(), int64(tenant))
	if err != nil {
		return nil, fmt.Errorf("lock triggers: %w", err)
	}
	now := db.Instant(at)
	var rows []record.JobRow
	if err := t.Gorm.Where("id IN ("+db.IDList(ids)+") AND +tenant_id = ? AND +state <> ?", int64(tenant), int64(domain.JobDeleted)).Find(&rows).Error; err != nil {
		return nil, err
	}
	keys := domain.Collect(rows, func(r *record.JobRow) record.RevisionKey {
		return record.RevisionKey{Job: domain.JobID(r.ID), Revision: r.Revision}
	})
	specs, err := s.specs.Load(t.Ctx, t.Conn, keys)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		row, spec := &rows[i], specs[keys[i]].Spec
		trigger := triggers[row.ID]
		if trigger == nil {
			continue // it was deleted for good
		}
		if spec == nil {
			spec = row.Unreadable(s.specs.Why(keys[i]))
		}
		out[keys[i].Job] = store.LockedJob{
			Job: row.Job(spec),
			SetState: func(p store.SetJobStateParams) error {
				_, err := s.setLockedState(t, trigger, row, now, p, allow)
				return err
			},
			Update: func(p store.UpdateJobParams) error { return s.updateLocked(t, trigger, row, now, p, allow) },
		}
	}
	return out, nil
}

// changeOnce is how many jobs ChangeJobs changes in one transaction. Each takes about 2 ms, and
// their triggers are locked as long.
const changeOnce = 25

// ChangeJobs changes jobs in parts, each part in one transaction. A part of which one job is
// refused is changed job by job.
func (s *Jobs) ChangeJobs(ctx context.Context, tenant domain.TenantID, ids []domain.JobID, change func(i int, job *store.LockedJob) error) []error {
	errs := make([]error, len(ids))
	for from := 0; from < len(ids); from += changeOnce {
		to := min(from+changeOnce, len(ids))
		err := s.changeSome(ctx, tenant, ids, from, to, change)
		if err != nil && !refusesOne(err) {
			for i := from; i < len(ids); i++ {
				errs[i] = err
			}
			break
		}
		for i := from; i < to && err != nil; i++ {
			errs[i] = s.changeSome(ctx, tenant, ids, i, i+1, change)
		}
	}
	return errs
}

func (s *Jobs) changeSome(ctx context.Context, tenant domain.TenantID, ids []domain.JobID, from, to int, change func(int, *store.LockedJob) error) error {
	return s.Run(ctx, "change jobs", func(t *db.Tx) error {
		jobs, err := s.LockJobs(t, tenant, ids[from:to])
		if err != nil {
			return err
		}
		for i := from; i < to; i++ {
			job, found := jobs[ids[i]]
			if !found {
				return db.NotFound("job", ids[i])
			}
			if err := change(i, &job); err != nil {
				return err
			}
		}
		return nil
	})
}

// PauseLocked pauses jobs that LockJobs has locked, with few statements for all of them. It
// returns those that it leaves to SetState: code declares them, a fire time has passed, or
// there is a run to take back.
func (s *Jobs) PauseLocked(t *db.Tx, ids []domain.JobID, p store.SetJobStateParams) (left []domain.JobID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	now, err := t.Clock()
	if err != nil {
		return nil, err
	}
	// A plus before a column keeps SQLite from an index that has all jobs of the tenant.
	simple, err := db.Set[domain.JobID](t.Ctx, t.Conn, "SELECT j.id FROM jobs AS j JOIN triggers AS t ON t.job_id = j.id WHERE j.id IN ("+db.IDList(ids)+") AND +j.tenant_id = ? AND +j.state = ? AND +j.kind = ? AND +j.declared_by = 0 AND t.next_fire_at > ?",
		int64(p.Tenant), int64(domain.JobEnabled), int64(domain.JobPlain), db.Millis(now))
	if err != nil {
		return nil, fmt.Errorf("look for jobs without passed fire times: %w", err)
	}
	var terms []string
	for _, id := range ids {
		terms = append(terms,
			t.Dialect.Bounded(fmt.Sprintf("SELECT job_id FROM executions%s WHERE part = %d AND wake_at > 0 AND job_id = %d AND tenant_id = %d LIMIT 1",
				t.Dialect.ByIndex("ix_executions_wake"), domain.PartitionOf(id), id, p.Tenant)),
			t.Dialect.Bounded(fmt.Sprintf("SELECT job_id FROM executions%s WHERE job_id = %d AND fire_at > %d AND occurrence_key = '' AND tenant_id = %d LIMIT 1",
				t.Dialect.ByIndex("uq_executions_occurrence"), id, db.Millis(now), p.Tenant)))
	}
	planned, err := db.Set[domain.JobID](t.Ctx, t.Conn, strings.Join(terms, " UNION ALL "))
	if err != nil {
		return nil, fmt.Errorf("look for runs to take back: %w", err)
	}
	var pause []domain.JobID
	for _, id := range ids {
		if simple[id] && !planned[id] {
			pause = append(pause, id)
		} else {
			left = append(left, id)
		}
	}
	if len(pause) == 0 {
		return left, nil
	}
	at, note, list := db.Millis(now), record.Clip(p.Note, record.MessageSize), db.IDList(pause)
	for _, write := range []struct {
		statement string
		args      []any
	}{
		{"UPDATE jobs SET state = ?, pause_note = ?, paused_by = ?, paused_at = ?, held_by = 0, updated_at = CASE WHEN updated_at > ? THEN updated_at ELSE ? END, updated_by = ? WHERE id IN (" + list + ") AND +tenant_id = ?",
			[]any{int64(domain.JobPaused), note, p.By, at, at, at, p.By, int64(p.Tenant)}},
		{"UPDATE triggers SET next_fire_at = ? WHERE job_id IN (" + list + ") AND +tenant_id = ?", []any{db.Millis(domain.Never), int64(p.Tenant)}},
		{"INSERT INTO job_events (job_id, number, tenant_id, state, at, created_by, note) SELECT j.id, COALESCE((SELECT MAX(e.number) FROM job_events AS e WHERE e.job_id = j.id), 0) + 1, j.tenant_id, j.state, j.updated_at, j.updated_by, j.pause_note FROM jobs AS j WHERE j.id IN (" + list + ") AND +j.tenant_id = ?",
			[]any{int64(p.Tenant)}},
	} {
		if _, err := t.Exec(t.Ctx, write.statement, write.args...); err != nil {
			return nil, fmt.Errorf("pause jobs: %w", err)
		}
	}
	return left, dropJobEvents(t, pause)
}

// dropJobEvents deletes events beyond the newest ones of jobs.
func dropJobEvents(t *db.Tx, jobs []domain.JobID) error {
	newest, err := db.Pairs[int64, int64](t.Ctx, t.Conn, "SELECT job_id, MAX(number) FROM job_events WHERE job_id IN ("+db.IDList(jobs)+") GROUP BY job_id")
	for job, number := range newest {
		if err == nil && number > keptJobEvents {
			_, err = t.Exec(t.Ctx, "DELETE FROM job_events WHERE job_id = ? AND number <= ?", job, number-keptJobEvents)
		}
	}
	if err != nil {
		return fmt.Errorf("drop old job events: %w", err)
	}
	return nil
}

// ListBareExecutions is ListExecutions without what other tables know of the runs.
func (s *Runs) ListBareExecutions(ctx context.Context, p store.ListExecutionsParams) (list []domain.Execution, err error) {
	err = s.Look(ctx, "list bare executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		rows, err := s.listExecutionRows(ctx, q, p)
		list = domain.Collect(rows, func(r **record.ExecutionRow) domain.Execution { return (*r).Execution() })
		return err
	})
	return list, err
}

// MatchJobs returns those of the jobs that a filter of jobs leaves, by their names. The
// filter's state and kind do not count.
func (s *Jobs) MatchJobs(ctx context.Context, p store.ListJobsParams, ids []domain.JobID) (map[domain.JobID]string, error) {
	out := make(map[domain.JobID]string, len(ids))
	p.State, p.AllKinds = 0, true
	err := s.Look(ctx, "match jobs", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		for some := range slices.Chunk(ids, db.ListOnce) {
			var rows []struct {
				ID   int64
				Name string
			}
			if err := filterJobs(g.Table("jobs AS j"+s.Dialect.ByPrimary()).Select("j.id", "j.name"), p).Where("j.id IN (" + db.IDList(some) + ")").Find(&rows).Error; err != nil {
				return err
			}
			for _, r := range rows {
				out[domain.JobID(r.ID)] = r.Name
			}
		}
		return nil
	})
	return out, err
}
