package engine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// RecordAlerts fills in the time of an event that has none.
func (s *core) RecordAlerts(ctx context.Context, events []domain.AlertEvent) error {
	if len(events) == 0 {
		return nil
	}
	return s.RunRepeatableAt(ctx, "record alerts", func(t *db.Tx, now time.Time) error { return InsertEvents(t, events, now) })
}

func (s *core) ReadOutbox(ctx context.Context, topic domain.Topic, limit int) (out []store.OutboxRow, err error) {
	err = s.Look(ctx, "read the outbox", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		_, err := db.ReadOutbox(ctx, q, s.Dialect, topic, math.MinInt64, limit, func(id int64, body []byte) error {
			out = append(out, store.OutboxRow{ID: id, Body: body})
			return nil
		})
		return err
	})
	return out, err
}

func (s *core) DeleteOutbox(ctx context.Context, topic domain.Topic, ids []int64) error {
	return s.RunRepeatable(ctx, "delete from the outbox", func(t *db.Tx) error { return t.DeleteOutbox(topic, ids) })
}

// listInRow bounds the list of one row of the outbox: events have at most 2 kB each.
const listInRow = 200

// InsertEvents writes events to the outbox.
func InsertEvents(t *db.Tx, events []domain.AlertEvent, now time.Time) error {
	if len(events) == 0 || !t.DB.Reads(domain.TopicEvents) {
		return nil
	}
	events = slices.Clone(events) // a transaction may be repeated at another time
	type key struct {
		tenant domain.TenantID
		dedupe string
	}
	known := map[key]bool{}
	events = slices.DeleteFunc(events, func(e domain.AlertEvent) bool {
		k := key{e.TenantID, e.DedupeKey}
		twice := k.dedupe != "" && known[k]
		known[k] = true
		return twice
	})
	for i := range events {
		e := &events[i]
		if e.Detail = record.Clip(e.Detail, record.MessageSize); e.CreatedAt.IsZero() {
			e.CreatedAt = now
		}
	}
	return appendList(t, domain.TopicEvents, events)
}

func appendList[T domain.Callback | domain.AlertEvent](t *db.Tx, topic domain.Topic, list []T) error {
	var bodies [][]byte
	for part := range slices.Chunk(list, listInRow) {
		body, err := domain.EncodeList(part)
		if err != nil {
			return err
		}
		bodies = append(bodies, body)
	}
	return t.Append(topic, bodies...)
}

// missedRuns are those of one transaction. One event of a job tells of all its missed runs.
type missedRuns map[domain.JobID]*missedOfJob

type missedOfJob struct {
	last domain.Execution
	runs int
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

// events are one for each job, in the order of the jobs. They have no key, as the reader
// adds up those of one job.
func (m missedRuns) events() (out []domain.AlertEvent) {
	for _, o := range m {
		e := &o.last
		out = append(out, domain.AlertEvent{
			Kind: domain.AlertRunMissed, TenantID: e.TenantID, JobID: e.JobID, Revision: e.Revision, ExecutionID: e.ID, Reason: e.Reason, Missed: o.runs,
		})
	}
	slices.SortFunc(out, func(a, b domain.AlertEvent) int { return cmp.Compare(a.JobID, b.JobID) })
	return out
}

// adoptOnce bounds the rows of a table that one transaction moves.
const adoptOnce = 500

// AdoptOutbox moves into the outbox what nodes of the version before leave in its tables
// while both versions work. It goes with these tables.
func (s *core) AdoptOutbox(ctx context.Context) error {
	left := false
	err := s.LookRows(ctx, "look for rows of the version before", func(rows *sql.Rows) error { return rows.Scan(&left) },
		"SELECT EXISTS (SELECT 1 FROM statistics_journal) OR EXISTS (SELECT 1 FROM callbacks)")
	if err != nil || !left {
		return err
	}
	return s.RunRepeatable(ctx, "adopt rows of the version before", func(t *db.Tx) error {
		if err := adoptEnds(t); err != nil {
			return fmt.Errorf("adopt ends: %w", err)
		}
		if err := adoptCallbacks(t); err != nil {
			return fmt.Errorf("adopt callbacks: %w", err)
		}
		return nil
	})
}

func adoptEnds(t *db.Tx) error {
	var ids []int64
	var bodies [][]byte
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id int64
		var body []byte
		err := rows.Scan(&id, &body)
		ids, bodies = append(ids, id), append(bodies, body)
		return err
	}, fmt.Sprintf("SELECT id, body FROM statistics_journal ORDER BY id LIMIT %d", adoptOnce)+t.Dialect.ForUpdateSkip())
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := t.Append(domain.TopicEnds, bodies...); err != nil {
		return err
	}
	_, err = t.Exec(t.Ctx, "DELETE FROM statistics_journal WHERE id IN ("+db.IDList(ids)+")")
	return err
}

func adoptCallbacks(t *db.Tx) error {
	var list []domain.Callback
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var c domain.Callback
		err := rows.Scan(&c.Tenant, &c.ID, &c.Success)
		list = append(list, c)
		return err
	}, fmt.Sprintf("SELECT tenant_id, execution_id, success FROM callbacks ORDER BY execution_id, success LIMIT %d", adoptOnce)+t.Dialect.ForUpdateSkip())
	if err != nil || len(list) == 0 {
		return err
	}
	if err := appendList(t, domain.TopicCallbacks, list); err != nil {
		return err
	}
	for _, c := range list {
		if _, err := t.Exec(t.Ctx, "DELETE FROM callbacks WHERE execution_id = ? AND success = ?", int64(c.ID), db.Flag(c.Success)); err != nil {
			return err
		}
	}
	return nil
}
