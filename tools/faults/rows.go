package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// stateName mirrors the stored numbers (admin/internal/domain/execution.go).
func stateName(n int) string {
	names := map[int]string{1: "due", 2: "offered", 3: "running", 4: "cancelling", 5: "retry_wait", 10: "succeeded",
		11: "failed", 12: "timed_out", 13: "cancelled", 14: "lost", 15: "missed", 16: "discarded", 17: "excluded"}
	if s, ok := names[n]; ok {
		return s
	}
	return fmt.Sprint(n)
}

// ended waits until every fire time up to to has come to its end: no trigger
// before it, no living execution of it.
func (s *stage) ended(ctx context.Context, to time.Time, limit time.Duration) error {
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	err = lab.Until(ctx, limit, "everything that was due has ended", func(ctx context.Context) error {
		var triggers, living int
		err := db.QueryRowContext(ctx, `SELECT
			(SELECT COUNT(*) FROM triggers WHERE next_fire_at <= ?),
			(SELECT COUNT(*) FROM executions WHERE state < 10 AND fire_at <= ?)`, to.UnixMilli(), to.UnixMilli()).Scan(&triggers, &living)
		if err != nil {
			return err
		}
		if triggers > 0 || living > 0 {
			return fmt.Errorf("%d triggers and %d runs are left", triggers, living)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = errors.Join(err, s.left(ctx, db, to))
	}
	return err
}

// showLeft shows a few of the runs that have not ended.
func (s *stage) showLeft(ctx context.Context) error {
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	return s.left(ctx, db, farFuture)
}

// left shows a few of the runs that did not end.
func (s *stage) left(ctx context.Context, db *sql.DB, to time.Time) error {
	rows, err := db.QueryContext(ctx, `SELECT id, job_id, state, fence, attempt, cause, node_id, instance_id,
		fire_at - UNIX_TIMESTAMP(NOW(3))*1000, wake_at - UNIX_TIMESTAMP(NOW(3))*1000, not_before - UNIX_TIMESTAMP(NOW(3))*1000,
		expire_at - UNIX_TIMESTAMP(NOW(3))*1000, holds_slot
		FROM executions WHERE state < 10 AND fire_at <= ? ORDER BY fire_at LIMIT 5`, to.UnixMilli())
	if err != nil {
		return err
	}
	defer rows.Close()
	var errs []error
	for rows.Next() {
		var id, job, instance int64
		var state, fence, attempt, node, slot int
		var cause string
		var fire, wake, before, expire sql.NullFloat64
		if err := rows.Scan(&id, &job, &state, &fence, &attempt, &cause, &node, &instance, &fire, &wake, &before, &expire, &slot); err != nil {
			return err
		}
		errs = append(errs, fmt.Errorf("run %d of job %d: %s, fence %d, attempt %d, cause %s, node %d, instance %d, slot %d; in ms from now: fire %.0f, wake %.0f, not before %.0f, expire %.0f",
			id, job, stateName(state), fence, attempt, cause, node, instance, slot, fire.Float64, wake.Float64, before.Float64, expire.Float64))
	}
	return errors.Join(append(errs, rows.Err())...)
}

// exportRows writes our own table into the history: what is due until to, and
// whatever was asked for.
func (s *stage) exportRows(ctx context.Context) error {
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT e.id, e.tenant_id, e.job_id, e.revision, e.cause, e.fire_at, e.occurrence_key, e.state, e.reason,
		e.fence, e.attempt, e.planned_at, e.offered_at, e.granted_at, e.started_at, e.finished_at, COALESCE(n.name, ''),
		IF(e.parent_id = 0, '', e.parent_id), ELT(e.role + 1, '', 'shard', 'before', 'after'), e.shard_index, e.shard_total, e.picks IS NOT NULL
		FROM executions e LEFT JOIN nodes n ON n.id = e.node_id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r verify.Row
		var state int
		stamps := []*verify.Time{&r.FireAt, &r.PlannedAt, &r.OfferedAt, &r.GrantedAt, &r.StartedAt, &r.FinishedAt}
		err := rows.Scan(&r.Key, &r.Tenant, &r.Job, &r.Revision, &r.Cause, &r.FireAt, &r.Request, &state, &r.Reason,
			&r.Fence, &r.Attempt, &r.PlannedAt, &r.OfferedAt, &r.GrantedAt, &r.StartedAt, &r.FinishedAt, &r.Node,
			&r.Parent, &r.Part, &r.Shard, &r.Shards, &r.Picked)
		if err != nil {
			return err
		}
		for _, at := range stamps {
			*at *= 1000 // the table has milliseconds
		}
		r.State = stateName(state)
		if err := s.history.Append(&r); err != nil {
			return err
		}
	}
	return rows.Err()
}
