package document

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// holdUsed locks the documents that a row refers to, so that none is deleted meanwhile.
// CodeConflict: one is gone.
func (s *Table) holdUsed(t *db.Tx, row *resource.Row) error {
	for _, of := range s.Uses {
		ids, err := s.Kind.References(row, of.Kind.Name)
		if err != nil || len(ids) == 0 {
			return err
		}
		var found []int64
		err = t.Gorm.Table(of.Name).Clauses(t.Locking()...).Where("tenant_id = ? AND id IN ?", int64(row.Tenant), ids).Order("id").Pluck("id", &found).Error
		if err != nil {
			return fmt.Errorf("lock %s: %w", of.Kind.Path, err)
		}
		for _, id := range ids {
			if !slices.Contains(found, id) {
				return domain.Errorf(domain.CodeConflict, "the %s %d was deleted; restore it, or choose another one", of.Kind.Noun, id)
			}
		}
	}
	return nil
}

// shownUsers is how many names a refusal has.
const shownUsers = 5

// refuseUsed refuses the deletion of a document that others refer to. The document is locked.
func (s *Table) refuseUsed(t *db.Tx, row *resource.Row) error {
	for _, by := range s.UsedBy {
		rows, err := by.In(t.Gorm, func(g *gorm.DB) *gorm.DB { return g.Where("d.tenant_id = ?", int64(row.Tenant)).Order("d.name") })
		if err != nil {
			return fmt.Errorf("load %s: %w", by.Kind.Path, err)
		}
		var names []string
		for i := range rows {
			ids, err := by.Kind.References(&rows[i], s.Kind.Name)
			if err != nil {
				return err
			}
			if slices.Contains(ids, row.ID) {
				names = append(names, rows[i].Name)
			}
		}
		if users := "1 " + by.Kind.Noun + " uses"; len(names) > 0 {
			if len(names) > 1 {
				users = fmt.Sprintf("%d %ss use", len(names), by.Kind.Noun)
			}
			return domain.Errorf(domain.CodeConflict, "%s this %s: %s; remove it there first", users, s.Kind.Noun, strings.Join(names[:min(len(names), shownUsers)], ", "))
		}
	}
	if s.Deleting != nil {
		return s.Deleting(t, row)
	}
	return nil
}

// Names implements resource.Store.
func (s *Table) Names(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error) {
	out := map[int64]string{}
	err := s.LookRows(ctx, "name "+s.Kind.Path, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		out[id] = name
		return err
	}, "SELECT id, name FROM "+s.Name+" WHERE tenant_id = ? AND id IN ("+db.IDList(ids)+")", int64(tenant))
	return out, err
}
