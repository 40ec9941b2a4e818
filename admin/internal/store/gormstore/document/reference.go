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
	"github.com/carillon-sched/carillon/admin/internal/store"
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
	jobs, err := s.Jobs.List(t.Ctx, t.Conn, row.Tenant, row.ID, 4)
	if err == nil && len(jobs) > 0 {
		err = db.UsedBy(s.Kind.Noun, row.Name, jobs)
	}
	if err == nil && s.Deleting != nil {
		err = s.Deleting(t, row)
	}
	return err
}

// Links are a table with a row for each job that needs an object, and its column with the id of
// the object. The zero value has no rows.
type Links struct{ Table, Column string }

// List returns the jobs that need an object, by name.
func (l Links) List(ctx context.Context, q db.Querier, tenant domain.TenantID, id int64, limit int) (out []store.JobRef, err error) {
	if l.Table == "" {
		return nil, nil
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		j := store.JobRef{Tenant: tenant}
		err := rows.Scan(&j.ID, &j.Name)
		out = append(out, j)
		return err
	}, fmt.Sprintf("SELECT j.id, j.name FROM %s AS l JOIN jobs AS j ON j.id = l.job_id"+
		" WHERE l.%s = %d AND l.tenant_id = %d ORDER BY j.name LIMIT %d", l.Table, l.Column, id, tenant, limit))
	return out, err
}

// Callbacks are the jobs whose callbacks need an executor or a document.
var Callbacks = Links{Table: "job_callbacks", Column: "target_id"}

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
