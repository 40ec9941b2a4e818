package retention

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// deletedOnce is how many deleted jobs or documents go in one transaction: each
// has rows in several tables.
const deletedOnce = 100

// DeleteJobsBefore takes the triggers' locks first, as every change of a job does. A job that was
// restored meanwhile stays.
func (s *Retention) DeleteJobsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.deleteWhole(ctx, "delete old jobs", OldJobs(s.Dialect), before, limit, func(t *db.Tx, jobs []int64, most int64) (int64, error) {
		list := db.IDList(jobs)
		err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { return nil },
			"SELECT job_id FROM triggers"+t.Dialect.ByPrimary()+" WHERE job_id IN ("+list+") ORDER BY job_id"+t.Dialect.ForUpdate())
		if err != nil {
			return 0, fmt.Errorf("lock triggers: %w", err)
		}
		jobs, err = db.SelectColumn[int64](t.Ctx, t.Conn, "SELECT id FROM jobs WHERE id IN ("+list+") AND state = ?"+t.Dialect.ForShare(), int64(domain.JobDeleted))
		if err != nil || len(jobs) == 0 {
			return 0, err
		}
		list = db.IDList(jobs)
		if err := record.RecountSoon(t, "jobs", list); err != nil {
			return 0, err
		}
		deleted, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("job_revisions", "job_id IN ("+list+")"), most)
		if err != nil || deleted >= most {
			return deleted, err
		}
		for _, table := range []string{"job_events", "job_calendars", "job_scripts", "job_callbacks", "trigger_waits", "slot_waiters", "job_slots", "timer_counts", "retention_rules", "triggers"} {
			n, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE job_id IN ("+list+")")
			if err != nil {
				return deleted, fmt.Errorf("delete from %s: %w", table, err)
			}
			deleted += n
		}
		if err := deleteStatistics(t, "jobs", domain.StatisticsOfJob, list); err != nil {
			return deleted, err
		}
		n, err := t.Exec(t.Ctx, "DELETE FROM jobs WHERE id IN ("+list+")")
		return deleted + n, err
	})
}

// OldJobs finds deleted jobs of which nothing is kept that names them. One that
// code declares and somebody deleted is kept as long as the executor is there: with
// its row it would be forgotten that the code is not to make it again.
func OldJobs(d db.Dialect) string {
	return fmt.Sprintf("SELECT j.id FROM jobs AS j%s WHERE j.state = %d AND j.updated_at < ?"+
		" AND (j.declared_name = '' OR NOT EXISTS (SELECT 1 FROM executors AS x WHERE x.id = j.declared_by AND x.tenant_id = j.tenant_id AND x."+record.LivingExecutor+"))"+
		" AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.job_id = j.id)"+
		" AND NOT EXISTS (SELECT 1 FROM timers AS w WHERE w.job_id = j.id) ORDER BY j.updated_at LIMIT ?", d.ByIndex("ix_jobs_deleted"), domain.JobDeleted)
}

// DeleteExecutorsBefore takes along what came in while the executor was deleted. One that was
// restored meanwhile stays.
func (s *Retention) DeleteExecutorsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.deleteWhole(ctx, "delete old executors", OldExecutors(s.Dialect), before, limit, func(t *db.Tx, executors []int64, _ int64) (int64, error) {
		tenants, err := db.Pairs[int64, int64](t.Ctx, t.Conn, "SELECT id, tenant_id FROM executors WHERE id IN ("+db.IDList(executors)+") AND state = ? ORDER BY id"+t.Dialect.ForUpdate(), int64(domain.ExecutorDeleted))
		if err != nil || len(tenants) == 0 {
			return 0, err // another node was quicker
		}
		executors = slices.Sorted(maps.Keys(tenants))
		for _, id := range executors {
			tenant := tenants[id]
			if err := PurgeExecutor(t, tenant, id); err != nil {
				return 0, err
			}
			if _, err := t.Exec(t.Ctx, "DELETE FROM instances WHERE tenant_id = ? AND executor_id = ?", tenant, id); err != nil {
				return 0, fmt.Errorf("delete from instances: %w", err)
			}
		}
		if err := deleteStatistics(t, "executors", domain.StatisticsOfExecutor, db.IDList(executors)); err != nil {
			return 0, err
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM limits WHERE kind = ? AND subject_id IN ("+db.IDList(executors)+")", engine.KindExecutor); err != nil {
			return 0, fmt.Errorf("delete from limits: %w", err)
		}
		return t.Exec(t.Ctx, "DELETE FROM executors WHERE id IN ("+db.IDList(executors)+")")
	})
}

// OldExecutors finds deleted executors that nothing names.
func OldExecutors(d db.Dialect) string {
	return fmt.Sprintf("SELECT x.id FROM executors AS x%s WHERE x.state = %d AND x.changed_at < ?"+
		" AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.tenant_id = x.tenant_id AND j.executor_id = x.id)"+
		" AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.tenant_id = x.tenant_id AND e.executor_id = x.id) ORDER BY x.changed_at LIMIT ?",
		d.ByIndex("ix_executors_state"), domain.ExecutorDeleted)
}

// ofExecutor are the tables whose rows go with an executor at once: what its
// processes have registered, and who may register.
var ofExecutor = []string{"handlers", "executor_builds", "job_proposals", "refused_declarations", "executor_denials", "join_tokens", "executor_aliases"}

// PurgeExecutor deletes what goes with an executor at once.
func PurgeExecutor(t *db.Tx, tenant, id int64) error {
	if _, err := t.Exec(t.Ctx, "DELETE FROM join_token_boots WHERE token_id IN (SELECT j.id FROM join_tokens AS j WHERE j.tenant_id = ? AND j.executor_id = ?)", tenant, id); err != nil {
		return fmt.Errorf("delete from join_token_boots: %w", err)
	}
	if err := record.RecountTenantSoon(t, tenant); err != nil {
		return err
	}
	for _, table := range ofExecutor {
		if _, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE tenant_id = ? AND executor_id = ?", tenant, id); err != nil {
			return fmt.Errorf("delete from %s: %w", table, err)
		}
	}
	return nil
}

// deleteWhole removes what find names, with all that belongs to it, until about
// limit rows are gone; what has more rows than that goes in several steps.
func (s *Retention) deleteWhole(ctx context.Context, what, find string, before time.Time, limit int,
	remove func(t *db.Tx, ids []int64, most int64) (int64, error),
) (deleted int64, err error) {
	for deleted < int64(limit) {
		ids, err := db.LookColumn[int64](ctx, s.DB, what, find, db.Millis(before), deletedOnce)
		if err != nil || len(ids) == 0 {
			return deleted, err
		}
		n, err := db.Value(ctx, s.RunRepeatable, what, func(t *db.Tx) (int64, error) { return remove(t, ids, int64(limit)-deleted) })
		if err != nil || n == 0 { // another node was quicker
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

// DeleteRefreshTokensBefore goes along ix_refresh_tokens_expires.
func (s *Retention) DeleteRefreshTokensBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old refresh tokens", func(t *db.Tx) (int64, error) {
		return t.Exec(t.Ctx, t.Dialect.DeleteBounded("refresh_tokens", "expires_at < ?"), db.Millis(before), int64(limit))
	})
}

// deleteStatistics goes with rows of jobs or executors, which are about to be deleted.
func deleteStatistics(t *db.Tx, table string, kind domain.StatisticKind, ids string) error {
	var terms, weeks []string
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var tenant, id int64
		err := rows.Scan(&tenant, &id)
		terms = append(terms, fmt.Sprintf("(tenant_id = %d AND kind = %d AND subject_id = %d)", tenant, kind, id))
		if kind == domain.StatisticsOfJob {
			weeks = append(weeks, fmt.Sprintf("(tenant_id = %d AND job_id = %d)", tenant, id))
		}
		return err
	}, "SELECT tenant_id, id FROM "+table+" WHERE id IN ("+ids+")")
	if err == nil && len(terms) > 0 {
		_, err = t.Exec(t.Ctx, "DELETE FROM statistics WHERE "+strings.Join(terms, " OR "))
	}
	if err == nil && len(weeks) > 0 {
		_, err = t.Exec(t.Ctx, "DELETE FROM job_weeks WHERE "+strings.Join(weeks, " OR "))
	}
	if err != nil {
		return fmt.Errorf("delete statistics: %w", err)
	}
	return nil
}
