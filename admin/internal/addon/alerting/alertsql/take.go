package alertsql

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// outboxRows bounds the rows of the outbox that one transaction takes.
const outboxRows = 100

// readOutbox moves events of the outbox into alert_events, about limit of them. The caller has
// the turn. A row that cannot be read is logged and deleted, so that the others are told.
func readOutbox(t *db.Tx, now time.Time, limit int) (taken int, err error) {
	var ids []int64
	var events []eventRow
	missed := missedRuns{}
	_, err = db.ReadOutbox(t.Ctx, t.Conn, t.Dialect, domain.TopicEvents, math.MinInt64, outboxRows, func(id int64, body []byte) error {
		if taken >= limit {
			return nil
		}
		ids = append(ids, id)
		list, err := domain.DecodeList[domain.AlertEvent](body)
		if err != nil {
			t.DB.Logger.Error("events of the outbox are not told", "component", "alerting", "row", id, "err", err)
			return nil
		}
		taken += len(list)
		for i := range list {
			if e := &list[i]; e.Kind == domain.AlertRunMissed {
				missed.add(e)
			} else {
				events = append(events, toEventRow(e))
			}
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	for i := range events {
		if events[i].ID == 0 {
			if events[i].ID, err = t.DB.NewID(); err != nil {
				return 0, err
			}
		}
	}
	if err := insertEvents(t, events); err != nil {
		return 0, err
	}
	if err := missed.insert(t, now); err != nil {
		return 0, err
	}
	return taken, t.DeleteOutbox(domain.TopicEvents, ids)
}

// Missed runs of a job are told together. While its runs are missed the job has one event
// that is open: it counts them, under a key of its own, until its time has come. Then the
// event takes a key that nothing is added to, and the next one is opened. That one is told
// MissedRepeat later, or goes if it counts nothing.

// missedRuns are the events of one transaction, by job, and their order.
type missedRuns struct {
	byJob map[domain.JobID]*domain.AlertEvent
	order []domain.JobID
}

func (m *missedRuns) add(e *domain.AlertEvent) {
	of := m.byJob[e.JobID]
	if of == nil {
		if m.byJob == nil {
			m.byJob = map[domain.JobID]*domain.AlertEvent{}
		}
		m.byJob[e.JobID], m.order = e, append(m.order, e.JobID)
		return
	}
	e.Missed += of.Missed
	*of = *e
}

// openKey is the key of a job's open event.
func openKey(job int64) string { return fmt.Sprintf("%s/%d", domain.AlertRunMissed, job) }

// insert adds them to the jobs' open events.
func (m *missedRuns) insert(t *db.Tx, now time.Time) error {
	const once = 200
	for from := 0; from < len(m.order); from += once {
		part := m.order[from:min(from+once, len(m.order))]
		values := make([]string, len(part))
		args := make([]any, 0, len(part))
		for i, job := range part {
			id, err := t.DB.NewID()
			if err != nil {
				return err
			}
			e := m.byJob[job]
			values[i] = fmt.Sprintf("(%d, %d, '%s', %d, %d, %d, ?, %d, %d, %d, ?)", id, e.TenantID, domain.AlertRunMissed, e.JobID, e.Revision, e.ExecutionID,
				db.Millis(e.CreatedAt), e.Missed, db.Millis(now.Add(domain.MissedGather)))
			args = append(args, openKey(int64(job)), string(e.Reason))
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

// takeEvents locks up to limit events that no incident has counted and whose time has come.
// It returns their number, and those that are to be told. The caller sets expanded_at of each
// one, or deletes it.
func takeEvents(t *db.Tx, now time.Time, limit int) (n int, told []eventRow, err error) {
	var rows []eventRow
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

// closeMissed closes the open events among those that are taken and opens the next ones. It
// returns all that are to be told.
func closeMissed(t *db.Tx, rows []eventRow, now time.Time) (told []eventRow, err error) {
	var empty []eventRow
	var next []eventRow
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
		following := eventRow{
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
		list := db.IDList(db.IDs(empty, func(r eventRow) int64 { return r.ID }))
		if _, err := t.Exec(t.Ctx, "DELETE FROM alert_events WHERE id IN ("+list+")"); err != nil {
			return nil, fmt.Errorf("forget events without runs: %w", err)
		}
	}
	return told, insertEvents(t, next)
}
