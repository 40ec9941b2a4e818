package gormstore

import (
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// coverQueue is how much of the queue of a cover-early job is loaded. It has one
// waiter at most, but for what waited when the job became one.
const coverQueue = 100

// coverable returns the executions that a run of a cover-early job in this batch
// may have to end: those that hold the job's slot, or wait for it. Who they are
// cannot change while the slot is locked.
func (b *batch) coverable() (ids []domain.ExecutionID, err error) {
	for job, s := range b.Slots {
		if !b.covers[job] || s.Believed {
			continue
		}
		for _, w := range s.Queue {
			ids = append(ids, w.ID)
		}
		if s.Holders == 0 {
			continue
		}
		err := db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT id FROM executions"+b.t.Dialect.ByIndex("ix_executions_wake")+
			" WHERE part = ? AND wake_at > 0 AND job_id = ? AND tenant_id = ? AND holds_slot = 1",
			domain.PartitionOf(job), int64(job), int64(s.Tenant))
		if err != nil {
			return nil, fmt.Errorf("find runs to cover: %w", err)
		}
	}
	return ids, nil
}
