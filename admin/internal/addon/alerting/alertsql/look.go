package alertsql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Bounds of one look at a rule's condition.
const (
	lookInterval = 10 * time.Second
	lookRuns     = 1000 // living runs of the tenant, the oldest
	lookJobs     = 100  // jobs; the next look goes on behind them
	lookEnds     = 2000 // runs of a job, of which none has succeeded
	usualRuns    = 100  // runs of a job that say what is usual
	usualAtLeast = 10   // fewer say nothing
)

// nextLook is when a rule is looked at; nil: events say that its condition holds.
func nextLook(s *noun.AlertRuleSpec, now time.Time) *int64 {
	if s.Condition.Kind.Kind() == "" || !s.Enabled {
		return nil
	}
	at := db.Millis(now)
	return &at
}

// EvaluateAlertRules looks without a lock first: there is hardly ever anything.
func (s *Alerts) EvaluateAlertRules(ctx context.Context) (found bool, err error) {
	err = s.LookRows(ctx, "look for alert rules", func(rows *sql.Rows) error { return rows.Scan(&found) },
		"SELECT EXISTS (SELECT 1 FROM alert_rules WHERE next_at <= "+s.Dialect.ClockNow()+")")
	if err != nil || !found {
		return false, err
	}
	return db.Value(ctx, s.RunRepeatable, "evaluate alert rules", func(t *db.Tx) (bool, error) {
		now, err := t.Clock()
		if err != nil {
			return false, err
		}
		var list []struct{ ID, NextJob int64 }
		err = t.Gorm.Table("alert_rules").Clauses(t.SkipLocked()...).Where("next_at <= ?", db.Millis(now)).Order("next_at").Limit(1).Find(&list).Error
		if err != nil || len(list) == 0 {
			return false, err
		}
		due, err := rulesIn(t, "d.id = ?", list[0].ID)
		if err != nil || len(due) == 0 {
			return false, err
		}
		rule := due[0]
		l := look{t: t, now: now, rule: &rule, after: domain.JobID(list[0].NextJob)}
		if rule.Spec.Condition.Kind == noun.ConditionAbsent {
			err = l.absent()
		} else {
			err = l.runs()
		}
		if err != nil {
			return false, err
		}
		if err := l.write(); err != nil {
			return false, err
		}
		next := now
		if l.after == 0 {
			next = now.Add(lookInterval)
		}
		_, err = t.Exec(t.Ctx, "UPDATE alert_rules SET next_at = ?, next_job = ? WHERE id = ?", db.Millis(next), int64(l.after), list[0].ID)
		return true, err
	})
}

// look is one evaluation of a rule.
type look struct {
	t     *db.Tx
	now   time.Time
	rule  *noun.AlertRule
	after domain.JobID // the last job that was looked at; 0: all were
	found []eventRow
}

// add notes that the condition holds for a job or a run of it. The key is the same
// as long as nothing changes, so that it is written once.
func (l *look) add(job *record.JobRow, run domain.ExecutionID, since time.Time, detail string) {
	kind := l.rule.Spec.Condition.Kind.Kind()
	key := fmt.Sprintf("%s/%s/%d/%s", kind, l.rule.ID, job.ID, run)
	if run == 0 {
		key = fmt.Sprintf("%s/%s/%d/since/%d", kind, l.rule.ID, job.ID, db.Millis(since))
	}
	l.found = append(l.found, eventRow{
		TenantID: int64(l.rule.TenantID), Kind: string(kind), JobID: job.ID, Revision: job.Revision, ExecutionID: int64(run), ExecutorID: job.ExecutorID,
		RuleID: int64(l.rule.ID), DedupeKey: key, Detail: detail, CreatedAt: db.Millis(l.now),
	})
}

func (l *look) write() error {
	for n := range l.found {
		id, err := l.t.DB.NewID()
		if err != nil {
			return err
		}
		l.found[n].ID = id
	}
	return insertEvents(l.t, l.found)
}

func (l *look) matches(job *record.JobRow) bool {
	return job.TenantID == int64(l.rule.TenantID) &&
		l.rule.Spec.Match.MatchesJob("", domain.ExecutorID(job.ExecutorID), domain.JobID(job.ID), job.LabelMap())
}

// runs looks at the tenant's oldest living runs: those that wait or run for long
// are among them.
func (l *look) runs() error {
	type living struct {
		id                      domain.ExecutionID
		job                     int64
		state                   domain.State
		fireAt, notBefore, from int64
		cause                   domain.Cause
	}
	var list []living
	condition := &l.rule.Spec.Condition
	err := db.Query(l.t.Ctx, l.t.Conn, func(rows *sql.Rows) error {
		var r living
		err := rows.Scan(&r.id, &r.job, &r.state, &r.fireAt, &r.notBefore, &r.from, &r.cause)
		if r.cause == domain.CauseBackfill { // its fire time is a logical date
			r.fireAt = 0
		}
		waits := (r.state == domain.Due || r.state == domain.Offered) && r.from == 0 && l.now.Sub(db.Instant(max(r.fireAt, r.notBefore))) > condition.After
		runs := (r.state == domain.Running || r.state == domain.Cancelling) && r.from > 0 && l.now.Sub(db.Instant(r.from)) > condition.After
		if condition.Kind == noun.ConditionLate && waits || condition.Kind == noun.ConditionLong && runs {
			list = append(list, r)
		}
		return err
	}, "SELECT id, job_id, state, fire_at, not_before, CASE WHEN started_at = 0 THEN granted_at ELSE started_at END, cause FROM executions"+l.t.Dialect.ByIndex("ix_executions_phase")+
		" WHERE tenant_id = ? AND phase = 0 ORDER BY id LIMIT ?", int64(l.rule.TenantID), lookRuns)
	if err != nil || len(list) == 0 {
		return err
	}
	jobs, err := db.ByID[record.JobRow](l.t.Gorm, "id IN ?", domain.Collect(list, func(r *living) int64 { return r.job }), func(r record.JobRow) int64 { return r.ID })
	if err != nil {
		return fmt.Errorf("load jobs: %w", err)
	}
	usual := map[int64]time.Duration{}
	for _, r := range list {
		job, ok := jobs[r.job]
		if !ok || !l.matches(&job) {
			continue
		}
		since := db.Instant(max(r.fireAt, r.notBefore, r.from))
		if condition.Factor > 0 {
			if _, known := usual[r.job]; !known {
				if usual[r.job], err = l.usual(r.job); err != nil {
					return err
				}
			}
			if bound := time.Duration(float64(usual[r.job]) * condition.Factor); bound == 0 || l.now.Sub(since) <= bound {
				continue
			}
		}
		l.add(&job, r.id, since, fmt.Sprintf("for %s so far", l.now.Sub(since).Round(time.Second)))
	}
	return nil
}

// usual is what 99 of 100 of a job's last successful runs took at most; 0: there were
// too few.
func (l *look) usual(job int64) (time.Duration, error) {
	var took []int64
	err := db.Query(l.t.Ctx, l.t.Conn, func(rows *sql.Rows) error {
		var state domain.State
		var from, to, us int64
		err := rows.Scan(&state, &from, &to, &us)
		if us == 0 {
			us = 1000 * (to - from)
		}
		if state == domain.Succeeded && from > 0 {
			took = append(took, us)
		}
		return err
	}, fmt.Sprintf("SELECT state, started_at, finished_at, took_us FROM executions%s WHERE job_id = %d ORDER BY fire_at DESC LIMIT %d",
		l.t.Dialect.ByIndex("uq_executions_occurrence"), job, usualRuns))
	if err != nil || len(took) < usualAtLeast {
		return 0, err
	}
	slices.Sort(took)
	return time.Duration(took[(len(took)*99-1)/100]) * time.Microsecond, nil
}

// absent goes through the tenant's enabled jobs.
func (l *look) absent() error {
	var jobs []record.JobRow
	err := l.t.Gorm.Where("tenant_id = ? AND kind = 0 AND state = ? AND id > ?", int64(l.rule.TenantID), int64(domain.JobEnabled), int64(l.after)).
		Order("id").Limit(lookJobs).Find(&jobs).Error
	if err != nil {
		return fmt.Errorf("load jobs: %w", err)
	}
	l.after = 0
	if len(jobs) == lookJobs {
		l.after = domain.JobID(jobs[len(jobs)-1].ID)
	}
	if len(jobs) == 0 {
		return nil
	}
	online, err := l.online(jobs)
	if err != nil {
		return fmt.Errorf("look for instances: %w", err)
	}
	bound := l.rule.Spec.Condition.After
	for n := range jobs {
		// Neither a new job nor a changed rule can have seen a success in time.
		job := &jobs[n]
		known := db.Instant(max(job.CreatedAt, job.UpdatedAt, db.Millis(l.rule.UpdatedAt)))
		if !l.matches(job) || l.now.Sub(known) <= bound {
			continue
		}
		succeeded, err := l.succeededSince(job.ID, l.now.Add(-bound))
		if err != nil {
			return err
		}
		if !succeeded {
			l.add(job, 0, absentSince(l.now), fmt.Sprintf("no run of job %q has succeeded for %s", job.Name, bound))
			// What was told as a part of an outage is told again if it outlasts that.
			if !online[job.ExecutorID] {
				l.found[len(l.found)-1].DedupeKey += "/offline"
			}
		}
	}
	return nil
}

// absentSince is in the key of what says that a job is absent: it is told again on
// another day, if it was closed meanwhile.
func absentSince(now time.Time) time.Time { return now.Truncate(24 * time.Hour) }

// online are the executors of jobs that have an instance.
func (l *look) online(jobs []record.JobRow) (map[int64]bool, error) {
	ids := db.IDs(jobs, func(r record.JobRow) int64 { return r.ExecutorID })
	slices.Sort(ids)
	return db.Set[int64](l.t.Ctx, l.t.Conn, "SELECT e.id FROM executors AS e WHERE e.id IN ("+db.IDList(slices.Compact(ids))+
		") AND EXISTS (SELECT 1 FROM instances AS i WHERE i.tenant_id = e.tenant_id AND i.executor_id = e.id AND i.gone_at = 0 AND i.lease_until > "+l.t.Dialect.ClockNow()+")")
}

// succeededSince looks at the runs of a job from the newest one on.
func (l *look) succeededSince(job int64, since time.Time) (found bool, err error) {
	err = db.Query(l.t.Ctx, l.t.Conn, func(rows *sql.Rows) error { return rows.Scan(&found) },
		fmt.Sprintf("SELECT COALESCE(MAX(state = %d AND finished_at > %d), 0) FROM (SELECT state, finished_at FROM executions%s WHERE job_id = %d AND fire_at > %d ORDER BY fire_at DESC LIMIT %d) AS newest",
			domain.Succeeded, db.Millis(since), l.t.Dialect.ByIndex("uq_executions_occurrence"), job, db.Millis(since.Add(-24*time.Hour)), lookEnds))
	return found, err
}
