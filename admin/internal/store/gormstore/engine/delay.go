package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// A fixed delay counts from the end of a run. While one of its runs lives, the
// trigger fires Never and a row of trigger_waits names the run. Whatever makes
// that run terminal sets the next fire time and removes the row, in the same
// transaction and under the trigger's lock. The trigger is locked before slots
// and executions, as edits do, so that the two cannot deadlock. Only the run
// that is waited for can set the trigger, and only once: a late result, or a
// second node, finds no row.

type waitRow struct {
	JobID       int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	TenantID    int64 `gorm:"column:tenant_id"`
	ExecutionID int64 `gorm:"column:execution_id"`
}

func (waitRow) TableName() string { return "trigger_waits" }

// fixedDelay reports whether the end of an execution may set its trigger.
func fixedDelay(e *domain.Execution, spec *domain.JobSpec) bool {
	return spec.Schedule.Kind == domain.ScheduleFixedDelay && (e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire)
}

// await notes which runs the triggers wait for.
func await(t *db.Tx, waits []waitRow) error {
	if len(waits) == 0 {
		return nil
	}
	if err := t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&waits).Error; err != nil {
		return fmt.Errorf("note awaited runs: %w", err)
	}
	return nil
}

// passTaken takes out of waits the runs that were not inserted because their
// fire times have rows, as happens when the database's clock was set back.
// Nobody would ever end them, so these delays count from the fire time, or from
// now if that is later: the trigger moves on in any case.
func (s *core) passTaken(t *db.Tx, now time.Time, waits []waitRow, planned, inserted []*record.ExecutionRow) ([]waitRow, error) {
	taken := make(map[int64]*record.ExecutionRow)
	for _, r := range planned {
		taken[r.ID] = r
	}
	for _, r := range inserted {
		delete(taken, r.ID)
	}
	kept := waits[:0]
	for _, w := range waits {
		r := taken[w.ExecutionID]
		if r == nil {
			kept = append(kept, w)
			continue
		}
		if err := s.rearm(t, domain.JobID(w.JobID), later(now, db.Instant(r.FireAt))); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lockTriggers locks the triggers of fixed delays, in the order of their jobs.
func lockTriggers(t *db.Tx, jobs []domain.JobID, skipLocked bool) (map[domain.JobID]*record.TriggerRow, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	rows, err := record.TriggerTable.SelectRows(t, "SELECT "+record.TriggerColumns+" FROM triggers"+t.Dialect.ByPrimary()+" WHERE job_id IN ("+db.IDList(jobs)+") ORDER BY job_id"+lockOf(t, skipLocked))
	if err != nil {
		return nil, fmt.Errorf("lock triggers of fixed delays: %w", err)
	}
	out := make(map[domain.JobID]*record.TriggerRow, len(rows))
	for _, r := range rows {
		out[domain.JobID(r.JobID)] = r
	}
	return out, nil
}

// rearm sets the triggers that waited for executions which this batch ended.
func (b *Batch) rearm() error {
	for _, m := range b.Moves {
		if !m.E.State.Terminal() || m.Was().Terminal() || !fixedDelay(&m.E, m.Spec) {
			continue
		}
		wait, err := waitOf(b.Tx, m.E.JobID)
		if err == nil && wait == m.E.ID {
			err = b.s.rearm(b.Tx, m.E.JobID, b.Now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waitOf returns the run that a trigger waits for; 0 = none.
func waitOf(t *db.Tx, job domain.JobID) (domain.ExecutionID, error) {
	var row waitRow
	err := t.Gorm.Where("job_id = ?", int64(job)).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read awaited run: %w", err)
	}
	return domain.ExecutionID(row.ExecutionID), nil
}

// rearm sets the next fire time of a trigger whose run has ended. The trigger
// is locked. A job that is paused meanwhile is set when it is resumed, and a
// schedule that is none of this kind any more has set itself.
func (s *core) rearm(t *db.Tx, job domain.JobID, ended time.Time) error {
	var row record.JobRow
	err := t.Gorm.Where("id = ?", int64(job)).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return forgetWait(t, job)
	} else if err != nil {
		return fmt.Errorf("read job of a fixed delay: %w", err)
	}
	spec, err := s.Specs.OfJob(t, &row)
	if err != nil {
		return err
	}
	if domain.JobState(row.State) == domain.JobEnabled && spec.Schedule.Kind == domain.ScheduleFixedDelay {
		if s.nextFireOf == nil {
			return errors.New("the store cannot plan fixed delays: set Options.NextFire")
		}
		_, err = t.Exec(t.Ctx, "UPDATE triggers SET next_fire_at = ? WHERE job_id = ? AND tenant_id = ?",
			db.Millis(s.nextFireOf(ended, spec)), row.ID, row.TenantID)
		if err != nil {
			return fmt.Errorf("set fixed delay: %w", err)
		}
		t.Rearmed = true
	}
	return forgetWait(t, job)
}

func forgetWait(t *db.Tx, job domain.JobID) error {
	if _, err := t.Exec(t.Ctx, "DELETE FROM trigger_waits WHERE job_id = ?", int64(job)); err != nil {
		return fmt.Errorf("forget awaited run: %w", err)
	}
	return nil
}

// FirstFire is the next fire time of a job that was edited or resumed at now.
// A fixed delay goes on waiting for a run that still lives.
func FirstFire(t *db.Tx, job *record.JobRow, spec *domain.JobSpec, next time.Time) (time.Time, error) {
	wait, err := waitOf(t, domain.JobID(job.ID))
	if err != nil || wait == 0 {
		return next, err
	}
	if spec.Schedule.Kind == domain.ScheduleFixedDelay {
		if e, err := record.FindExecution(t, domain.TenantID(job.TenantID), wait); err != nil {
			return next, err
		} else if e != nil && !e.State.Terminal() {
			return domain.Never, nil
		}
	}
	return next, forgetWait(t, domain.JobID(job.ID))
}

// RearmDelays looks without a lock, and judges each trigger again under it.
func (s *Triggers) RearmDelays(ctx context.Context, limit int) (int, error) {
	found, err := db.LookSelect(ctx, s.DB, "find overdue fixed delays", func(w *waitRow) []any { return []any{&w.JobID, &w.TenantID, &w.ExecutionID} },
		fmt.Sprintf("SELECT w.job_id, w.tenant_id, w.execution_id FROM trigger_waits AS w LEFT JOIN executions AS e ON e.id = w.execution_id"+
			" WHERE e.id IS NULL OR e.state >= %d LIMIT %d", domain.Succeeded, limit))
	if err != nil {
		return 0, err
	}
	rearmed := 0
	var broken error
	for _, w := range found {
		did, err := db.Value(ctx, s.RunRepeatable, "set fixed delay", func(t *db.Tx) (bool, error) { return s.rearmOverdue(t, w) })
		if err != nil { // the others may go
			broken = errors.Join(broken, err)
		}
		if did {
			rearmed++
		}
	}
	return rearmed, broken
}

func (s *Triggers) rearmOverdue(t *db.Tx, w waitRow) (bool, error) {
	job := domain.JobID(w.JobID)
	locked, err := lockTriggers(t, []domain.JobID{job}, true)
	if err != nil || locked[job] == nil {
		return false, err
	}
	wait, err := waitOf(t, job)
	if err != nil || int64(wait) != w.ExecutionID {
		return false, err
	}
	if e, err := record.FindExecution(t, domain.TenantID(w.TenantID), wait); err != nil || e != nil && !e.State.Terminal() {
		return false, err
	}
	now, err := t.Clock()
	if err != nil {
		return false, err
	}
	return true, s.rearm(t, job, now)
}

// AwaitedRuns reads which runs the fixed delays among the jobs wait for.
func AwaitedRuns(ctx context.Context, q db.Querier, specs map[record.RevisionKey]record.CachedSpec, next map[int64]int64, jobs []int64) (map[int64]domain.ExecutionID, error) {
	delayed := map[int64]bool{}
	for k, c := range specs {
		if c.Spec.Schedule.Kind == domain.ScheduleFixedDelay {
			delayed[int64(k.Job)] = true
		}
	}
	var waiting []int64
	for _, id := range jobs {
		if delayed[id] && next[id] >= db.Millis(domain.Never) {
			waiting = append(waiting, id)
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	return db.Pairs[int64, domain.ExecutionID](ctx, q, "SELECT job_id, execution_id FROM trigger_waits WHERE job_id IN ("+db.IDList(waiting)+")")
}
