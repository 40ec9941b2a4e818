package console

import (
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type jobCallbackRow struct {
	JobID    int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	TargetID int64 `gorm:"column:target_id;primaryKey;autoIncrement:false"`
	TenantID int64 `gorm:"column:tenant_id"`
}

func (jobCallbackRow) TableName() string { return "job_callbacks" }

// linkCallbacks notes which executors and connections the callbacks of a job's next revision
// need. Executors stay locked for sharing until the commit. A connection is not locked: if it is
// deleted meanwhile, the callback's runs fail and name it.
func linkCallbacks(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	if err := unlinkCallbacks(t, job); err != nil {
		return err
	}
	return insertCallbacks(t, job, spec)
}

func insertCallbacks(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	var executors, targets []int64
	for _, f := range []domain.FollowUp{spec.OnSuccess, spec.OnFailure} {
		if f.Executor != 0 {
			executors, targets = append(executors, int64(f.Executor)), append(targets, f.Target())
		}
	}
	slices.Sort(executors) // jobs that name the same ones lock them in one order
	for _, id := range slices.Compact(executors) {
		if _, err := record.ExecutorName(t, domain.TenantID(job.TenantID), domain.ExecutorID(id)); err != nil {
			return err
		}
	}
	slices.Sort(targets)
	for _, id := range slices.Compact(targets) {
		if err := t.Gorm.Create(&jobCallbackRow{JobID: job.ID, TargetID: id, TenantID: job.TenantID}).Error; err != nil {
			return fmt.Errorf("link callbacks: %w", err)
		}
	}
	return nil
}

func unlinkCallbacks(t *db.Tx, job *record.JobRow) error {
	if _, err := t.Exec(t.Ctx, "DELETE FROM job_callbacks WHERE job_id = ? AND tenant_id = ?", job.ID, job.TenantID); err != nil {
		return fmt.Errorf("unlink callbacks: %w", err)
	}
	return nil
}
