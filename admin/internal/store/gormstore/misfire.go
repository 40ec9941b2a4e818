package gormstore

import (
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// TriggerRevision implements run.Source.
func (b *batch) TriggerRevision(job domain.JobID) (revision int64, err error) {
	err = db.Query(b.t.Ctx, b.t.Conn, func(rows *sql.Rows) error { return rows.Scan(&revision) },
		"SELECT revision FROM triggers WHERE job_id = ?", int64(job))
	if err != nil {
		return 0, fmt.Errorf("read revision of the trigger: %w", err)
	}
	return revision, nil
}
