package console

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// DrainInstance implements store.Executors.
func (s *Executors) DrainInstance(ctx context.Context, p store.DrainInstanceParams) (domain.Instance, error) {
	row, err := db.Value(ctx, s.RunRepeatable, "drain instance", func(t *db.Tx) (row record.InstanceRow, err error) {
		now, err := t.Clock()
		if err != nil {
			return row, err
		}
		found := t.Gorm.Clauses(t.Locking()...).Where("id = ? AND tenant_id = ?", int64(p.ID), int64(p.Tenant)).Limit(1).Find(&row)
		switch {
		case found.Error != nil:
			return row, found.Error
		case found.RowsAffected == 0:
			return row, db.NotFound("instance", p.ID)
		case row.GoneAt > 0:
			return row, domain.Errorf(domain.CodeConflict, "the instance %q has gone", row.Name)
		case p.Undo:
			row.DrainedAt, row.DrainedBy, row.Draining, row.DrainingAt = 0, "", 0, 0 // its next heartbeat says whether it drains by itself
		case row.DrainedAt == 0:
			row.DrainedAt, row.DrainedBy, row.Draining = db.Millis(now), record.Clip(p.By, record.NameSize), 1
			if row.DrainingAt == 0 {
				row.DrainingAt = row.DrainedAt
			}
		}
		_, err = t.Exec(t.Ctx, "UPDATE instances SET drained_at = ?, drained_by = ?, draining = ?, draining_at = ? WHERE id = ?",
			row.DrainedAt, row.DrainedBy, row.Draining, row.DrainingAt, row.ID)
		return row, err
	})
	if err != nil {
		return domain.Instance{}, err
	}
	return row.Instance(), nil
}

// maxConnected bounds what ListConnected returns.
const maxConnected = 10_000

func (s *Executors) ListConnected(ctx context.Context) ([]domain.InstanceID, error) {
	return db.LookColumn[domain.InstanceID](ctx, s.DB, "list connected instances",
		fmt.Sprintf("SELECT i.id FROM instances AS i%s JOIN executors AS x ON x.id = i.executor_id AND x.built_in = 0"+
			" WHERE i.gone_at = 0 AND i.lease_until > %s AND i.parked = 0 AND i.draining = 0 AND i.drained_at = 0 LIMIT %d", s.Dialect.ByIndex("ix_instances_lease"), s.Dialect.Clock(), maxConnected))
}
