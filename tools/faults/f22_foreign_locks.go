package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// f22 lets a stranger lock every tenth trigger row for a minute, and then
// changes the jobs table while a reader keeps the change waiting.
func f22(ctx context.Context, s *stage) error {
	if err := s.open(ctx, fleetPlan{admins: 2, executors: 2}); err != nil {
		return err
	}
	if err := s.load(ctx, s.rate()); err != nil {
		return err
	}
	db, err := s.db.Open()
	if err != nil {
		return err
	}
	defer db.Close()
	var locked map[string]bool
	held := cut{from: verify.At(time.Now())}
	err = s.fault("row locks on 10 % of the triggers", "database", func() (err error) {
		locked, err = lockTriggers(ctx, db, pick(s.set, time.Minute, 20*time.Second))
		return err
	})
	if err != nil {
		return err
	}
	held.to = verify.At(time.Now())
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	altered := cut{from: verify.At(time.Now())}
	if err := s.fault("ALTER of the jobs table behind a reader", "database", func() error { return alterJobs(ctx, db) }); err != nil {
		return err
	}
	altered.to = verify.At(time.Now())
	if err := wait(ctx, 5*time.Second); err != nil {
		return err
	}
	j, err := s.finish(ctx)
	if j == nil {
		return err
	}
	var others, during []float64
	for _, r := range j.runs {
		late := float64(r.Start-r.FireAt) / 1000
		if r.FireAt > held.from && r.FireAt < held.to && !locked[r.Job] {
			others = append(others, late)
		}
		if r.FireAt > altered.from && r.FireAt < altered.to {
			during = append(during, late)
		}
	}
	o, a := summary(others), summary(during)
	s.result.Figures["othersMs"], s.result.Figures["duringAlterMs"], s.result.Figures["locked"] = o, a, len(locked)
	s.figure("the other 90 %%: %s; %d triggers locked; during ALTER %s", o, len(locked), a)
	if len(locked) == 0 || o.Count == 0 {
		err = errors.Join(err, errors.New("nothing was locked: not enough evidence"))
	}
	return err
}

// lockTriggers holds the rows of every tenth job for a while.
func lockTriggers(ctx context.Context, db *sql.DB, d time.Duration) (map[string]bool, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	ids, err := queryIDs(ctx, tx, "SELECT job_id FROM triggers ORDER BY job_id")
	if err != nil {
		return nil, err
	}
	locked := map[string]bool{}
	for chunk := range slices.Chunk(ids, 10) {
		var id int64
		if err := tx.QueryRowContext(ctx, "SELECT job_id FROM triggers FORCE INDEX (PRIMARY) WHERE job_id = ? FOR UPDATE", chunk[0]).Scan(&id); err != nil {
			return nil, fmt.Errorf("lock a trigger: %w", err)
		}
		locked[fmt.Sprint(id)] = true
	}
	return locked, wait(ctx, d)
}

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// queryIDs reads one column of numbers.
func queryIDs(ctx context.Context, q querier, query string) ([]int64, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// alterJobs rebuilds the table while a reader's transaction keeps the change
// waiting for 8 s: behind a waiting change every new reader waits, too.
func alterJobs(ctx context.Context, db *sql.DB) error {
	reader, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Rollback() }()
	var n int
	if err := reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM jobs").Scan(&n); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(ctx, "ALTER TABLE jobs ADD COLUMN lab_note INT NOT NULL DEFAULT 0, ALGORITHM=COPY")
		done <- err
	}()
	err = wait(ctx, 8*time.Second)
	return errors.Join(err, reader.Rollback(), <-done)
}
