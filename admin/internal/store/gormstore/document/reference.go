package document

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

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

// Users implements resource.Store.
func (s *Table) Users(ctx context.Context, tenant domain.TenantID, id int64, limit int) (users []resource.User, err error) {
	err = s.Look(ctx, "list users of "+s.Kind.Path, func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		users, err = s.users(ctx, q, g, tenant, id, limit)
		return err
	})
	return users, err
}

func (s *Table) users(ctx context.Context, q db.Querier, g *gorm.DB, tenant domain.TenantID, id int64, limit int) (users []resource.User, err error) {
	for _, by := range s.UsedBy {
		rows, err := by.In(g, func(g *gorm.DB) *gorm.DB { return g.Where("d.tenant_id = ?", int64(tenant)).Order("d.name") })
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", by.Kind.Path, err)
		}
		for i := range rows {
			ids, err := by.Kind.References(&rows[i], s.Kind.Name)
			if err != nil {
				return nil, err
			}
			if slices.Contains(ids, id) && len(users) < limit {
				users = append(users, resource.User{SetMember: resource.SetMember{Kind: by.Kind.Name, ID: rows[i].ID}, Noun: by.Kind.Noun, Name: rows[i].Name})
			}
		}
	}
	jobs, err := s.Jobs.List(ctx, q, tenant, id, limit-len(users))
	for _, j := range jobs {
		users = append(users, resource.User{SetMember: resource.SetMember{Kind: "Job", ID: int64(j.ID)}, Noun: "job", Name: j.Name})
	}
	return users, err
}

// Deletable implements resource.Store.
func (s *Table) Deletable(ctx context.Context, row *resource.Row, going resource.Going) error {
	return s.Look(ctx, "look at the users of "+s.Kind.Path, func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		return s.refuseUsed(ctx, q, g, row, going)
	})
}

// refuseUsed refuses the deletion of a document that others refer to, which do not go with it.
func (s *Table) refuseUsed(ctx context.Context, q db.Querier, g *gorm.DB, row *resource.Row, going resource.Going) error {
	users, err := s.users(ctx, q, g, row.Tenant, row.ID, resource.MaxGoing+10)
	if err == nil {
		err = s.Kind.Refuse(row.Name, going.Stay(users))
	}
	if err == nil && s.Deleting != nil {
		err = s.Deleting(g, row)
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
