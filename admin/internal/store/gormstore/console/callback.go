package console

import (
	"context"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Runs) ListCallbacks(ctx context.Context, limit int) (out []store.Callback, err error) {
	err = s.Look(ctx, "list callbacks", func(ctx context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []record.CallbackRow
		if err := g.Order("execution_id, success").Limit(record.PageSize(limit)).Find(&rows).Error; err != nil {
			return err
		}
		out = make([]store.Callback, len(rows))
		for i, r := range rows {
			out[i] = store.Callback{
				Tenant: domain.TenantID(r.TenantID), ID: domain.ExecutionID(r.ExecutionID), Success: r.Success == 1, CreatedAt: db.Instant(r.CreatedAt),
			}
		}
		return nil
	})
	return out, err
}

func (s *Runs) DeleteCallback(ctx context.Context, c store.Callback) error {
	return s.RunRepeatable(ctx, "delete callback", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "DELETE FROM callbacks WHERE execution_id = ? AND success = ? AND tenant_id = ?",
			int64(c.ID), db.Flag(c.Success), int64(c.Tenant))
		return err
	})
}
