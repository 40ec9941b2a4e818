package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// maxHolders bounds how many holders of a slot are told.
const maxHolders = 20

// ListSlotHolders goes through the job's partition: whoever holds a slot has a
// WakeAt.
func (s *Store) ListSlotHolders(ctx context.Context, tenant domain.TenantID, job domain.JobID) (views []store.ExecutionView, err error) {
	err = s.look(ctx, "list slot holders", func(ctx context.Context, q querier, _ *gorm.DB) error {
		rows, err := s.scanExecutions(ctx, q, "SELECT "+executionColumns+" FROM executions"+s.d.byIndex("ix_executions_wake")+
			" WHERE part = ? AND wake_at > 0 AND job_id = ? AND tenant_id = ? AND holds_slot = 1 LIMIT ?",
			domain.PartitionOf(job), int64(job), int64(tenant), maxHolders)
		if err != nil {
			return err
		}
		views, err = s.executionViews(ctx, q, rows)
		return err
	})
	return views, err
}
