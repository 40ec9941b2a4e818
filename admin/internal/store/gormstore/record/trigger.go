package record

import (
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// TriggerRow is a row of triggers.
type TriggerRow struct {
	JobID, TenantID, Part, ExecutorID, Revision, NextFireAt, LastFireAt int64
}

var TriggerTable = db.Table[TriggerRow]{
	Name: "triggers", Keys: 2, Required: 6,
	Columns: []db.Column[TriggerRow]{
		db.IntColumn("job_id", func(r *TriggerRow) *int64 { return &r.JobID }),
		db.IntColumn("tenant_id", func(r *TriggerRow) *int64 { return &r.TenantID }),
		db.IntColumn("part", func(r *TriggerRow) *int64 { return &r.Part }),
		db.IntColumn("executor_id", func(r *TriggerRow) *int64 { return &r.ExecutorID }),
		db.IntColumn("revision", func(r *TriggerRow) *int64 { return &r.Revision }),
		db.IntColumn("next_fire_at", func(r *TriggerRow) *int64 { return &r.NextFireAt }),
		db.IntColumn("last_fire_at", func(r *TriggerRow) *int64 { return &r.LastFireAt }),
	},
}

var TriggerColumns = TriggerTable.List("")

// Trigger is what the row means.
func (r *TriggerRow) Trigger() domain.Trigger {
	return domain.Trigger{
		JobID: domain.JobID(r.JobID), TenantID: domain.TenantID(r.TenantID), Partition: int(r.Part),
		Executor: domain.ExecutorID(r.ExecutorID), Revision: r.Revision,
		NextFireAt: db.Instant(r.NextFireAt), LastFireAt: db.Instant(r.LastFireAt),
	}
}
