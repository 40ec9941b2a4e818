package record

import (
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// SlotRow is a row of job_slots.
type SlotRow struct{ JobID, TenantID, Holders, Waiters int64 }

var SlotTable = db.Table[SlotRow]{
	Name: "job_slots", Keys: 2, Required: 2,
	Columns: []db.Column[SlotRow]{
		db.IntColumn("job_id", func(r *SlotRow) *int64 { return &r.JobID }),
		db.IntColumn("tenant_id", func(r *SlotRow) *int64 { return &r.TenantID }),
		db.IntColumn("holders", func(r *SlotRow) *int64 { return &r.Holders }),
		db.IntColumn("waiters", func(r *SlotRow) *int64 { return &r.Waiters }),
	},
}
