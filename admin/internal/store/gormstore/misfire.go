package gormstore

import (
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TriggerRevision implements run.Source.
func (b *batch) TriggerRevision(job domain.JobID) (revision int64, err error) {
	err = query(b.t.ctx, b.t.q, func(rows *sql.Rows) error { return rows.Scan(&revision) },
		"SELECT revision FROM triggers WHERE job_id = ?", int64(job))
	if err != nil {
		return 0, fmt.Errorf("read revision of the trigger: %w", err)
	}
	return revision, nil
}
