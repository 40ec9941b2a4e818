package main

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
	"github.com/carillon-sched/carillon/internal/lab"
)

// stateName mirrors the stored numbers (admin/internal/domain/execution.go).
func stateName(n int) string {
	names := map[int]string{1: "due", 2: "offered", 3: "running", 4: "cancelling", 5: "retry_wait", 10: "succeeded",
		11: "failed", 12: "timed_out", 13: "cancelled", 14: "lost", 15: "missed", 16: "discarded"}
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
	return lab.Until(ctx, limit, "everything that was due has ended", func(ctx context.Context) error {
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
}

// exportRows writes our own table into the history: what is due until to, and
// whatever was asked for.
func (s *stage) exportRows(ctx context.Context) error {
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT id, tenant_id, job_id, revision, cause, fire_at, occurrence_key, state, reason,
		fence, attempt, planned_at, offered_at, granted_at, started_at, finished_at FROM executions`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var r verify.Row
		var state int
		stamps := []*verify.Time{&r.FireAt, &r.PlannedAt, &r.OfferedAt, &r.GrantedAt, &r.StartedAt, &r.FinishedAt}
		err := rows.Scan(&r.Key, &r.Tenant, &r.Job, &r.Revision, &r.Cause, &r.FireAt, &r.Request, &state, &r.Reason,
			&r.Fence, &r.Attempt, &r.PlannedAt, &r.OfferedAt, &r.GrantedAt, &r.StartedAt, &r.FinishedAt)
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
