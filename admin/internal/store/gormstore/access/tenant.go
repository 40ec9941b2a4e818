package access

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/retention"
)

// changeTenant locks a tenant, lets change decide, and writes it with the next version.
// change may return the row as it is: nothing is written then.
func (s *Accounts) changeTenant(ctx context.Context, step string, id domain.TenantID, version int64, change func(t *db.Tx, row record.TenantRow, now time.Time) (record.TenantRow, error)) (domain.Tenant, error) {
	err := s.RunRepeatable(ctx, step, func(t *db.Tx) error {
		var row record.TenantRow
		err := t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(id)).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return db.NotFound("tenant", id)
		}
		if err != nil {
			return err
		}
		if version != 0 && version != row.Version {
			return domain.Errorf(domain.CodeRevisionMismatch, "tenant %s is at version %d, not %d", id, row.Version, version)
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		after, err := change(t, row, now)
		if err != nil || after == row {
			return err
		}
		auditTenant(t, &row, &after)
		_, err = t.Exec(t.Ctx, "UPDATE tenants SET name = ?, state = ?, note = ?, version = version + 1, changed_at = ?, delete_at = ?, cell = ? WHERE id = ?",
			after.Name, after.State, after.Note, after.ChangedAt, after.DeleteAt, after.Cell, int64(id))
		return db.NameTaken(err, "tenant", after.Name)
	})
	if err != nil {
		return domain.Tenant{}, err
	}
	return s.FindTenant(ctx, id)
}

// auditTenant tells the audit log of a change. before is nil: it is new.
func auditTenant(t *db.Tx, before, after *record.TenantRow) {
	db.AuditedRow(t, before, after, func(r *record.TenantRow) domain.AuditObject {
		return domain.AuditObject{Kind: "tenant", ID: domain.TenantID(r.ID).String(), Name: r.Name}
	}, func(r *record.TenantRow) db.Facts {
		return db.Facts{"name": r.Name, "state": domain.TenantState(r.State).String(), "note": r.Note, "cell": r.Cell}
	})
}

// moving refuses to change a tenant that is between two cells.
func moving(row record.TenantRow) error {
	return domain.Errorf(domain.CodeConflict, "the tenant %q is moving to another cell; end that first (carillon tenant move, again or with --abort)", row.Name)
}

func (s *Accounts) RenameTenant(ctx context.Context, id domain.TenantID, ifVersion int64, name string) (domain.Tenant, error) {
	return s.changeTenant(ctx, "rename tenant", id, ifVersion, func(_ *db.Tx, row record.TenantRow, _ time.Time) (record.TenantRow, error) {
		if domain.TenantState(row.State) == domain.TenantMoving {
			return row, moving(row)
		}
		row.Name = name
		return row, nil
	})
}

func (s *Accounts) SetTenantState(ctx context.Context, p store.SetTenantStateParams) (domain.Tenant, error) {
	return s.changeTenant(ctx, "set tenant state", p.ID, p.IfVersion, func(t *db.Tx, row record.TenantRow, now time.Time) (record.TenantRow, error) {
		switch was := domain.TenantState(row.State); {
		case was == domain.TenantMoving:
			return row, moving(row)
		case was == domain.TenantMoved && p.State != domain.TenantDeleted:
			return row, domain.Errorf(domain.CodeConflict, "the tenant %q lives in the cell %s; here it can only be deleted, and is not found by way of this cell then", row.Name, row.Cell)
		case was == domain.TenantDeleted && p.State != domain.TenantDeleted && row.DeleteAt <= db.Millis(now):
			return row, domain.Errorf(domain.CodeConflict, "the tenant %q cannot be restored: its rows are being deleted since %s", row.Name, db.Instant(row.DeleteAt).Format(time.RFC3339))
		case was == domain.TenantDeleted && p.State == domain.TenantEnabled:
			return row, domain.Errorf(domain.CodeConflict, "the tenant %q is deleted; restore it first", row.Name)
		case was == domain.TenantEnabled && p.State == domain.TenantDeleted:
			return row, domain.Errorf(domain.CodeConflict, "the tenant %q is enabled; disable it first", row.Name)
		case was == domain.TenantDeleted && p.State == domain.TenantDeleted && row.DeleteAt <= db.Millis(now):
			return row, nil
		}
		if row.Cell != "" && p.State != domain.TenantDeleted { // was deleted after it had moved away: it lives there all the same
			p.State = domain.TenantMoved
		}
		changed := row.State != int64(p.State)
		row.State, row.DeleteAt = int64(p.State), 0
		switch p.State {
		case domain.TenantMoved:
			row.DeleteAt = db.Millis(now.Add(domain.MovedTenantKept))
		case domain.TenantEnabled:
			row.Note = ""
		case domain.TenantDisabled:
			if p.Note != "" {
				row.Note = record.Clip(p.Note, record.MessageSize)
			}
		case domain.TenantDeleted:
			row.DeleteAt = db.Millis(now.Add(p.Grace))
			if p.Grace == 0 {
				if err := retention.PurgeSecrets(t, int64(p.ID)); err != nil {
					return row, err
				}
			}
		}
		if changed {
			row.ChangedAt = db.Millis(now)
		}
		return row, nil
	})
}
