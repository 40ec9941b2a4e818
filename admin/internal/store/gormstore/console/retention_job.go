package console

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// deletedOnce is how many deleted jobs or scripts go in one transaction: each
// has rows in several tables.
const deletedOnce = 100

// DeleteJobsBefore takes the triggers' locks first, as every change of a job
// does. That a job is deleted is final, and it gets no new runs.
func (s *Retention) DeleteJobsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return s.deleteWhole(ctx, "delete old jobs", OldJobs(s.Dialect), before, limit, func(t *db.Tx, jobs []int64, most int64) (int64, error) {
		list := db.IDList(jobs)
		err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { return nil },
			"SELECT job_id FROM triggers"+t.Dialect.ByPrimary()+" WHERE job_id IN ("+list+") ORDER BY job_id"+t.Dialect.ForUpdate())
		if err != nil {
			return 0, fmt.Errorf("lock triggers: %w", err)
		}
		deleted, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("job_revisions", "job_id IN ("+list+")"), most)
		if err != nil || deleted >= most {
			return deleted, err
		}
		for _, table := range []string{"job_events", "job_calendars", "job_scripts", "trigger_waits", "slot_waiters", "job_slots", "triggers"} {
			n, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE job_id IN ("+list+")")
			if err != nil {
				return deleted, fmt.Errorf("delete from %s: %w", table, err)
			}
			deleted += n
		}
		n, err := t.Exec(t.Ctx, "DELETE FROM jobs WHERE id IN ("+list+")")
		return deleted + n, err
	})
}

// OldJobs finds deleted jobs of which nothing is kept that names them.
func OldJobs(d db.Dialect) string {
	return fmt.Sprintf("SELECT j.id FROM jobs AS j%s WHERE j.state = %d AND j.updated_at < ?"+
		" AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.job_id = j.id) ORDER BY j.updated_at LIMIT ?", d.ByIndex("ix_jobs_deleted"), domain.JobDeleted)
}

// DeleteScriptsBefore reads all scripts, which people write: they are few.
func (s *Retention) DeleteScriptsBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	oldScripts := fmt.Sprintf("SELECT id FROM scripts WHERE state = %d AND updated_at < ? LIMIT ?", scriptDeleted)
	return s.deleteWhole(ctx, "delete old scripts", oldScripts, before, limit, func(t *db.Tx, scripts []int64, most int64) (int64, error) {
		list := db.IDList(scripts)
		deleted, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("script_revisions", "script_id IN ("+list+")"), most)
		if err != nil || deleted >= most {
			return deleted, err
		}
		n, err := t.Exec(t.Ctx, "DELETE FROM scripts WHERE id IN ("+list+")")
		return deleted + n, err
	})
}

// deleteWhole removes what find names, with all that belongs to it, until about
// limit rows are gone; what has more rows than that goes in several steps.
func (s *Retention) deleteWhole(ctx context.Context, what, find string, before time.Time, limit int,
	remove func(t *db.Tx, ids []int64, most int64) (int64, error),
) (deleted int64, err error) {
	for deleted < int64(limit) {
		var ids []int64
		err := s.Look(ctx, what, func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
			ids = nil
			return db.Query(ctx, q, func(rows *sql.Rows) error {
				var id int64
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			}, find, db.Millis(before), deletedOnce)
		})
		if err != nil || len(ids) == 0 {
			return deleted, err
		}
		var n int64
		err = s.RunRepeatable(ctx, what, func(t *db.Tx) (err error) {
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
	err = s.RunRepeatable(ctx, "delete old refresh tokens", func(t *db.Tx) (err error) {
		deleted, err = t.Exec(t.Ctx, t.Dialect.DeleteBounded("refresh_tokens", "expires_at < ?"), db.Millis(before), int64(limit))
		return err
	})
	return deleted, err
}
