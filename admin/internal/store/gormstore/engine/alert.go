package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// RecordAlerts fills in what the caller left out of an event: id and time.
func (s *core) RecordAlerts(ctx context.Context, events []domain.AlertEvent) error {
	if len(events) == 0 {
		return nil
	}
	return s.RunRepeatableAt(ctx, "record alerts", func(t *db.Tx, now time.Time) error { return insertAlerts(t, events, now) })
}

func insertAlerts(t *db.Tx, events []domain.AlertEvent, now time.Time) (err error) {
	rows := make([]record.AlertEventRow, len(events))
	for i, e := range events {
		rows[i] = record.AlertEventRow{
			ID: e.ID, TenantID: int64(e.TenantID), Kind: string(e.Kind), JobID: int64(e.JobID), Revision: e.Revision,
			ExecutionID: int64(e.ExecutionID), DedupeKey: e.DedupeKey, Detail: record.Clip(e.Detail, record.MessageSize), CreatedAt: db.Millis(e.CreatedAt),
			Reason: string(e.Reason), ExecutorID: int64(e.Executor), Missed: int64(e.Missed),
		}
		if rows[i].CreatedAt == 0 {
			rows[i].CreatedAt = db.Millis(now)
		}
		if rows[i].ID == 0 {
			if rows[i].ID, err = t.DB.NewID(); err != nil {
				return err
			}
		}
	}
	return record.InsertAlerts(t, rows)
}

// Missed runs of a job are told together. While its runs are missed the job has
// one event that is open: it counts them, under a key of its own, until its
// time has come. Then the event takes a key that nothing is added to, and the
// next one is opened, which is told MissedRepeat later, or goes if it counts nothing.

// missedRuns are those of one transaction.
type missedRuns map[domain.JobID]*missedOfJob

type missedOfJob struct {
	last domain.Execution
	runs int64
}

// addNew adds a run that was missed when it was planned, if it has to be told.
func (m *missedRuns) addNew(e *domain.Execution) {
	if domain.MissedUntold(e) {
		m.add(e)
	}
}

func (m *missedRuns) add(e *domain.Execution) {
	if *m == nil {
		*m = missedRuns{}
	}
	of := (*m)[e.JobID]
	if of == nil {
		of = &missedOfJob{last: *e}
		(*m)[e.JobID] = of
	}
	if of.runs++; e.FireAt.After(of.last.FireAt) {
		of.last = *e
	}
}

// openKey is the key of a job's open event.
func openKey(job int64) string { return fmt.Sprintf("%s/%d", domain.AlertRunMissed, job) }

// insert adds them to the jobs' open events, in the order of the jobs, so that
// transactions do not wait for each other in a circle.
func (m missedRuns) insert(t *db.Tx, now time.Time) error {
	if t.DB.NoOutbox {
		return nil
	}
	of := make([]*missedOfJob, 0, len(m))
	for _, o := range m {
		of = append(of, o)
	}
	slices.SortFunc(of, func(a, b *missedOfJob) int { return cmp.Compare(a.last.JobID, b.last.JobID) })
	for part := range slices.Chunk(of, 200) {
		values := make([]string, len(part))
		args := make([]any, 0, len(part))
		for i, o := range part {
			id, err := t.DB.NewID()
			if err != nil {
				return err
			}
			e := &o.last
			values[i] = fmt.Sprintf("(%d, %d, '%s', %d, %d, %d, ?, %d, %d, %d, '%s')", id, e.TenantID, domain.AlertRunMissed, e.JobID, e.Revision, e.ID,
				db.Millis(now), o.runs, db.Millis(now.Add(domain.MissedGather)), e.Reason)
			args = append(args, openKey(int64(e.JobID)))
		}
		_, err := t.Exec(t.Ctx, "INSERT INTO alert_events (id, tenant_id, kind, job_id, revision, execution_id, dedupe_key, created_at, missed, tell_at, reason) VALUES "+
			strings.Join(values, ", ")+t.Dialect.OnDuplicate("tenant_id, dedupe_key")+
			" revision = "+t.Dialect.Inserted("revision")+", execution_id = "+t.Dialect.Inserted("execution_id")+", reason = "+t.Dialect.Inserted("reason")+
			", missed = alert_events.missed + "+t.Dialect.Inserted("missed"), args...)
		if err != nil {
			return fmt.Errorf("count missed runs: %w", err)
		}
	}
	return nil
}

// TakeEvents locks up to limit events that no subscriber has taken and whose time has come.
// It returns their number, and those that are to be told. The transaction of the subscriber
// sets expanded_at of each one, or deletes it.
func TakeEvents(t *db.Tx, now time.Time, limit int) (n int, told []record.AlertEventRow, err error) {
	var rows []record.AlertEventRow
	err = t.Gorm.Clauses(t.SkipLocked()...).Where("expanded_at = 0 AND tell_at <= ?", db.Millis(now)).
		Order("tell_at").Order("id").Limit(limit).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return 0, nil, err
	}
	if told, err = closeMissed(t, rows, now); err != nil {
		return 0, nil, err
	}
	return len(rows), told, nil
}

// closeMissed closes the open events among those that a subscriber takes
// and opens the next ones. It returns all that are to be told.
func closeMissed(t *db.Tx, rows []record.AlertEventRow, now time.Time) (told []record.AlertEventRow, err error) {
	var empty []record.AlertEventRow
	var next []record.AlertEventRow
	for _, r := range rows {
		if r.Kind != string(domain.AlertRunMissed) || r.DedupeKey != openKey(r.JobID) {
			told = append(told, r)
			continue
		}
		if r.Missed == 0 {
			empty = append(empty, r)
			continue
		}
		closed := fmt.Sprintf("%s/%d", openKey(r.JobID), r.ID)
		if _, err := t.Exec(t.Ctx, "UPDATE alert_events SET dedupe_key = ? WHERE id = ?", closed, r.ID); err != nil {
			return nil, fmt.Errorf("close event of missed runs: %w", err)
		}
		following := record.AlertEventRow{
			TenantID: r.TenantID, Kind: r.Kind, JobID: r.JobID, Revision: r.Revision, DedupeKey: r.DedupeKey,
			CreatedAt: db.Millis(now), TellAt: db.Millis(now.Add(domain.MissedRepeat)),
		}
		if following.ID, err = t.DB.NewID(); err != nil {
			return nil, err
		}
		next = append(next, following)
		r.DedupeKey = closed
		told = append(told, r)
	}
	if len(empty) > 0 {
		list := db.IDList(db.IDs(empty, func(r record.AlertEventRow) int64 { return r.ID }))
		if _, err := t.Exec(t.Ctx, "DELETE FROM alert_events WHERE id IN ("+list+")"); err != nil {
			return nil, fmt.Errorf("forget events without runs: %w", err)
		}
	}
	return told, record.InsertAlerts(t, next)
}
