package gormstore

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// maxHolders bounds how many holders of a slot are told.
const maxHolders = 20

// ListSlotHolders goes through the job's partition: whoever holds a slot has a
// WakeAt.
func (s *Runs) ListSlotHolders(ctx context.Context, tenant domain.TenantID, job domain.JobID) (views []store.ExecutionView, err error) {
	err = s.Look(ctx, "list slot holders", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		rows, err := s.scanExecutions(ctx, q, "SELECT "+executionColumns+" FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+
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

// ListHeld asks by primary key. An instance's slots bound how many it asks.
func (s *Instances) ListHeld(ctx context.Context, tenant domain.TenantID, instance domain.InstanceID, attempts []domain.Held) (held []domain.Held, err error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	asked := make(map[domain.Held]bool, len(attempts))
	ids := make([]domain.ExecutionID, len(attempts))
	for i, a := range attempts {
		asked[domain.Held{ID: a.ID, Fence: a.Fence}] = true
		ids[i] = a.ID
	}
	err = s.Look(ctx, "list held attempts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		held = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var h domain.Held
			err := rows.Scan(&h.ID, &h.Fence)
			if asked[h] {
				held = append(held, h)
			}
			return err
		}, "SELECT id, fence FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ? AND instance_id = ? AND (lingers = 1 OR state IN ("+onInstance+"))",
			int64(tenant), int64(instance))
	})
	return held, err
}

// onInstance are the states of domain.State.OnInstance.
var onInstance = fmt.Sprintf("%d, %d, %d", domain.Offered, domain.Running, domain.Cancelling)
