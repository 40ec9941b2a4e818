package console

import (
	"context"

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
