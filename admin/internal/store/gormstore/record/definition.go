package record

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Definition is what alert channels and alert rules have in common: a tenant
// names them, has a bounded number of them, and edits them by version.
type Definition[ID interface {
	~int64
	fmt.Stringer
}] struct {
	*db.DB
	Noun string
	Row  any // of the table
	Most int64
}

// CountOfTenant locks the tenant's row, so that two who make something count one
// after the other.
func CountOfTenant(t *db.Tx, tenant domain.TenantID, rows any, where string, args ...any) (count int64, err error) {
	return countOf(t, tenant, t.Gorm.Model(rows).Where(where, args...))
}

// CountInTable is CountOfTenant of all rows of a table.
func CountInTable(t *db.Tx, tenant domain.TenantID, table string) (int64, error) {
	return countOf(t, tenant, t.Gorm.Table(table))
}

func countOf(t *db.Tx, tenant domain.TenantID, rows *gorm.DB) (count int64, err error) {
	var row TenantRow
	if err := t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(tenant)).Take(&row).Error; err != nil {
		return 0, err
	}
	err = rows.Where("tenant_id = ?", int64(tenant)).Count(&count).Error
	return count, err
}

// Create has one more inserted, if the tenant may have it.
func (d Definition[ID]) Create(ctx context.Context, tenant domain.TenantID, name string, insert func(t *db.Tx, now time.Time) error) error {
	return d.Run(ctx, "create "+d.Noun, func(t *db.Tx) error {
		count, err := CountOfTenant(t, tenant, d.Row, "1 = 1")
		if err != nil {
			return err
		}
		if count >= d.Most {
			return domain.Errorf(domain.CodeConflict, "there are %d %ss, which is the most; delete one first", count, d.Noun)
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		return db.NameTaken(insert(t, now), d.Noun, name)
	})
}

// Update has one written anew, if it is at the version that was edited.
func (d Definition[ID]) Update(ctx context.Context, tenant domain.TenantID, id ID, version int64, name string, write func(t *db.Tx, now time.Time) error) error {
	return d.Run(ctx, "update "+d.Noun, func(t *db.Tx) error {
		var versions []int64
		err := t.Gorm.Model(d.Row).Clauses(t.Locking()...).Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Pluck("version", &versions).Error
		if err != nil {
			return err
		}
		if len(versions) == 0 {
			return db.NotFound(d.Noun, id)
		}
		if versions[0] != version {
			return domain.Errorf(domain.CodeRevisionMismatch, "%s %s is at version %d, not %d", d.Noun, id, versions[0], version)
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		return db.NameTaken(write(t, now), d.Noun, name)
	})
}

func (d Definition[ID]) Delete(ctx context.Context, tenant domain.TenantID, id ID) error {
	return d.Run(ctx, "delete "+d.Noun, func(t *db.Tx) error {
		gone := t.Gorm.Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Delete(d.Row)
		if gone.Error == nil && gone.RowsAffected == 0 {
			return db.NotFound(d.Noun, id)
		}
		return gone.Error
	})
}
