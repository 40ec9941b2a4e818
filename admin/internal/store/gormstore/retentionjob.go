package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// deletedOnce is how many deleted jobs or scripts go in one transaction: each
// has rows in several tables.
const deletedOnce = 100

// DeleteJobsBefore takes the triggers' locks first, as every change of a job
// does. That a job is deleted is final, and it gets no new runs.
func (s *Retention) DeleteJobsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.deleteWhole(ctx, "delete old jobs", oldJobs(s.d), before, limit, func(t *txn, jobs []int64, most int64) (int64, error) {
		list := idList(jobs)
		err := query(t.ctx, t.q, func(*sql.Rows) error { return nil },
			"SELECT job_id FROM triggers"+t.d.byPrimary()+" WHERE job_id IN ("+list+") ORDER BY job_id"+t.d.forUpdate())
		if err != nil {
			return 0, fmt.Errorf("lock triggers: %w", err)
		}
		deleted, err := t.exec(t.ctx, t.d.deleteBounded("job_revisions", "job_id IN ("+list+")"), most)
		if err != nil || deleted >= most {
			return deleted, err
		}
		for _, table := range []string{"job_events", "job_calendars", "job_scripts", "trigger_waits", "slot_waiters", "job_slots", "triggers"} {
			n, err := t.exec(t.ctx, "DELETE FROM "+table+" WHERE job_id IN ("+list+")")
			if err != nil {
				return deleted, fmt.Errorf("delete from %s: %w", table, err)
			}
			deleted += n
		}
		n, err := t.exec(t.ctx, "DELETE FROM jobs WHERE id IN ("+list+")")
		return deleted + n, err
	})
}

// oldJobs finds deleted jobs of which nothing is kept that names them.
func oldJobs(d dialect) string {
	return fmt.Sprintf("SELECT j.id FROM jobs AS j%s WHERE j.state = %d AND j.updated_at < ?"+
		" AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.job_id = j.id) ORDER BY j.updated_at LIMIT ?", d.byIndex("ix_jobs_deleted"), domain.JobDeleted)
}

// DeleteScriptsBefore reads all scripts, which people write: they are few.
func (s *Retention) DeleteScriptsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	oldScripts := fmt.Sprintf("SELECT id FROM scripts WHERE state = %d AND updated_at < ? LIMIT ?", scriptDeleted)
	return s.deleteWhole(ctx, "delete old scripts", oldScripts, before, limit, func(t *txn, scripts []int64, most int64) (int64, error) {
		list := idList(scripts)
		deleted, err := t.exec(t.ctx, t.d.deleteBounded("script_revisions", "script_id IN ("+list+")"), most)
		if err != nil || deleted >= most {
			return deleted, err
		}
		n, err := t.exec(t.ctx, "DELETE FROM scripts WHERE id IN ("+list+")")
		return deleted + n, err
	})
}

// deleteWhole removes what find names, with all that belongs to it, until about
// limit rows are gone; what has more rows than that goes in several steps.
func (s *Retention) deleteWhole(ctx context.Context, what, find string, before time.Time, limit int,
	remove func(t *txn, ids []int64, most int64) (int64, error),
) (deleted int64, err error) {
	for deleted < int64(limit) {
		var ids []int64
		err := s.look(ctx, what, func(ctx context.Context, q querier, _ *gorm.DB) error {
			ids = nil
			return query(ctx, q, func(rows *sql.Rows) error {
				var id int64
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			}, find, millis(before), deletedOnce)
		})
		if err != nil || len(ids) == 0 {
			return deleted, err
		}
		var n int64
		err = s.runRepeatable(ctx, what, func(t *txn) (err error) {
			n, err = remove(t, ids, int64(limit)-deleted)
			return err
		})
		if err != nil || n == 0 { // another node was quicker
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

// DeleteRefreshTokensBefore goes along ix_refresh_tokens_expires.
func (s *Retention) DeleteRefreshTokensBefore(ctx context.Context, before time.Time, limit int) (deleted int64, err error) {
	err = s.runRepeatable(ctx, "delete old refresh tokens", func(t *txn) (err error) {
		deleted, err = t.exec(t.ctx, t.d.deleteBounded("refresh_tokens", "expires_at < ?"), millis(before), int64(limit))
		return err
	})
	return deleted, err
}
