package engine

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// EndPlan settles what a job's plan owes up to one instant, and takes back what
// it holds beyond. It returns that instant, at which the job changes: the locks
// on the job's runs may have taken a while, and what has come to its time
// meanwhile is still the old plan's. The trigger is locked; now is when it was.
func (s *core) EndPlan(t *db.Tx, trigger *record.TriggerRow, now time.Time, plan store.PlanFunc, to domain.JobState) (time.Time, error) {
	for {
		settled, err := s.settlePlan(t, trigger, now, plan)
		if err != nil {
			return now, err
		}
		ended, err := s.takeBack(t, trigger, now, to)
		if err != nil {
			return now, err
		}
		if plan == nil || settled.NextFireAt <= db.Millis(now) || settled.NextFireAt > db.Millis(ended) {
			return ended, nil
		}
		trigger, now = settled, ended // another fire time has come: settle it too
	}
}

// settlePlan gives the fire times that have passed their rows before the schedule
// changes under them, and returns the trigger as it is then. A plan holds so
// many of them only, so it may take several.
func (s *core) settlePlan(t *db.Tx, trigger *record.TriggerRow, now time.Time, plan store.PlanFunc) (*record.TriggerRow, error) {
	for plan != nil && trigger.NextFireAt <= db.Millis(now) {
		if _, _, err := s.planTriggers(t, now, []*record.TriggerRow{trigger}, plan); err != nil {
			return nil, err
		}
		job := domain.JobID(trigger.JobID)
		moved, err := lockTriggers(t, []domain.JobID{job}, false)
		if err != nil {
			return nil, err
		}
		if moved[job] == nil || moved[job].NextFireAt <= trigger.NextFireAt {
			break // what does not move on is left as it is
		}
		trigger = moved[job]
	}
	return trigger, nil
}

// takeBack ends what must not start any more. to is the state the job comes
// into; JobEnabled stands for an edit. Fires planned ahead disappear, so that
// the next revision may plan the same instants. It returns the database's time
// when all that it decides about was locked: ahead means after that.
func (s *core) takeBack(t *db.Tx, trigger *record.TriggerRow, now time.Time, to domain.JobState) (time.Time, error) {
	var ids []domain.ExecutionID
	living, err := record.LivingOf(t.Ctx, t.Conn, domain.TenantID(trigger.TenantID), domain.JobID(trigger.JobID))
	if err != nil {
		return now, err
	}
	ids, err = db.SelectColumn[domain.ExecutionID](t.Ctx, t.Conn, "SELECT id FROM executions"+t.Dialect.ByIndex("ix_executions_wake")+" WHERE "+living)
	if err != nil {
		return now, fmt.Errorf("find waiting executions: %w", err)
	}
	if len(ids) > 0 {
		if now, err = s.takeBackRuns(t, trigger, ids, now, to); err != nil {
			return now, err
		}
	}
	// What a calendar excludes ahead of its time is planned anew too.
	excluded := " FROM executions WHERE job_id = ? AND fire_at > ? AND occurrence_key = '' AND reason = ? AND tenant_id = ?"
	args := []any{trigger.JobID, db.Millis(now), string(domain.ReasonCalendar), trigger.TenantID}
	rows, err := record.ExecutionTable.SelectRows(t, "SELECT "+record.ExecutionColumns+excluded+t.Dialect.ForUpdate(), args...)
	if err == nil && len(rows) > 0 {
		_, err = t.Exec(t.Ctx, "DELETE"+excluded, args...)
	}
	if err == nil {
		err = record.InsertEndsOf(t, rows, true)
	}
	if err != nil {
		return now, fmt.Errorf("take back excluded fire times: %w", err)
	}
	return now, nil
}

// takeBackRuns is takeBack for the runs that wait.
func (s *core) takeBackRuns(t *db.Tx, trigger *record.TriggerRow, ids []domain.ExecutionID, now time.Time, to domain.JobState) (time.Time, error) {
	var ahead []domain.ExecutionID
	_, err := s.move(t, run.Request{Kind: run.Ends, IDs: ids}, func(b *Batch) (err error) {
		if b.Now.Before(now) { // set back, or nothing of it was there any more
			b.Now = now
		}
		now = b.Now
		ahead, err = b.TakeBack(to)
		return err
	})
	if err != nil {
		return now, err
	}
	if len(ahead) > 0 {
		_, err = t.Exec(t.Ctx, "DELETE FROM executions WHERE id IN ("+db.IDList(ahead)+") AND +tenant_id = ?", trigger.TenantID) // + : by id, not by an index on the tenant
	}
	return now, err
}
