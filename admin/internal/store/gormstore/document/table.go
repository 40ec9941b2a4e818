// Package document answers: how does a database keep the documents of a kind?
//
// Each kind has a table with the same columns: id, tenant_id, name, version, spec, secrets and
// times. The text in spec is the whole document (package resource). A versioned kind has its
// texts in a second table instead, one row for each version. Deleted documents wait in the
// table deleted_documents until retention takes them.
package document

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Table keeps the documents of a kind. It is a resource.Store.
type Table struct {
	*db.DB
	Kind *resource.Kind
	// Name is that of the table.
	Name string
	// ByName is its index of tenant and name. Empty: uq_NAME_name.
	ByName string
	// Versions is the table of the versions of a versioned kind, and Owner its column with
	// the id of the document.
	Versions, Owner string
	// Uses are the tables of documents that these refer to, and UsedBy those of documents that
	// refer to these. A document that is used is not deleted.
	Uses, UsedBy []*Table
	// Side are further columns of a row, by name. nil: there are none.
	Side func(*resource.Row) (map[string]any, error)
	// VersionSide are further columns of a version, by name. nil: there are none.
	VersionSide func(*resource.Row) (map[string]any, error)
	// Created is called in the transaction of a new document. now is in milliseconds.
	Created func(t *db.Tx, row *resource.Row, now int64) error
	// Stored is called in the transaction of each new version of a versioned kind.
	Stored func(t *db.Tx, row *resource.Row, text string) error
	// Jobs are the jobs that need these documents. Such a document is not deleted.
	Jobs Links
	// Deleting is called in the transaction that deletes a document, while it is locked, and by a
	// plan of that. It refuses a document that is needed otherwise. nil: there is no other need.
	Deleting func(g *gorm.DB, row *resource.Row) error
}

// stored is a row with its text.
type stored struct {
	ID        int64  `gorm:"column:id"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Name      string `gorm:"column:name"`
	Version   int64  `gorm:"column:version"`
	Text      string `gorm:"column:text"`
	Secrets   []byte `gorm:"column:secrets"`
	CreatedAt int64  `gorm:"column:created_at"`
	UpdatedAt int64  `gorm:"column:updated_at"`
	CreatedBy string `gorm:"column:created_by"`
	UpdatedBy string `gorm:"column:updated_by"`
}

// rows chooses from the table with the columns of stored.
func (s *Table) rows(g *gorm.DB) *gorm.DB {
	text, secrets := "d.spec", "NULL"
	if s.Versions != "" {
		text = "COALESCE(v.spec, '')"
	}
	if len(s.Kind.Secrets) > 0 {
		secrets = "d.secrets"
	}
	g = g.Table(s.Name + " AS d").Select("d.id, d.tenant_id, d.name, d.version, " + text + " AS text, " + secrets + " AS secrets, d.created_at, d.updated_at, d.created_by, d.updated_by")
	if s.Versions != "" {
		g = g.Joins(fmt.Sprintf("LEFT JOIN %s AS v ON v.tenant_id = d.tenant_id AND v.%s = d.id AND v.version = d.version", s.Versions, s.Owner))
	}
	return g
}

// row reads a stored row. One row that cannot be read does not hide the others of its list.
func (s *Table) row(r *stored) resource.Row {
	row := resource.Row{Meta: resource.Meta{
		ID: r.ID, Tenant: domain.TenantID(r.TenantID), Name: r.Name, Version: r.Version, Sealed: r.Secrets,
		CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}}
	if err := row.ReadText([]byte(r.Text), s.Kind.Older); err != nil {
		row.Spec = json.RawMessage("{}")
		row.Problem = fmt.Sprintf("Version %d of this %s cannot be read. Write it anew.", r.Version, s.Kind.Noun)
	}
	return row
}

// Create implements resource.Store.
func (s *Table) Create(ctx context.Context, row resource.Row) (resource.Row, error) {
	row.Version = 1
	return s.write(ctx, "create ", row, func(t *db.Tx, now int64) (resource.Row, error) {
		if s.Kind.Most > 0 {
			count, err := record.CountInTable(t, row.Tenant, s.Name)
			if err != nil {
				return resource.Row{}, err
			}
			if count >= s.Kind.Most {
				return resource.Row{}, domain.Errorf(domain.CodeConflict, "there are %d %s, which is the most; delete one first", count, s.Kind.Path)
			}
		}
		return s.Insert(t, row, now)
	})
}

// write runs a transaction that writes one document.
func (s *Table) write(ctx context.Context, verb string, row resource.Row, fn func(t *db.Tx, now int64) (resource.Row, error)) (resource.Row, error) {
	return db.Value(ctx, s.Run, verb+s.Kind.Noun, func(t *db.Tx) (resource.Row, error) {
		now, err := t.Clock()
		if err != nil {
			return resource.Row{}, err
		}
		out, err := fn(t, db.Millis(now))
		return out, db.NameTaken(err, s.Kind.Noun, row.Name)
	})
}

// Insert writes a new document in a transaction. now is in milliseconds.
func (s *Table) Insert(t *db.Tx, row resource.Row, now int64) (resource.Row, error) {
	if err := s.holdUsed(t, &row); err != nil {
		return resource.Row{}, err
	}
	text, err := row.Text()
	if err != nil {
		return resource.Row{}, err
	}
	if row.CreatedAt.IsZero() {
		row.CreatedAt = db.Instant(now)
	}
	row.UpdatedAt = db.Instant(now)
	set, err := s.columns(&row, text)
	if err != nil {
		return resource.Row{}, err
	}
	set["id"], set["tenant_id"], set["created_at"], set["created_by"] = row.ID, int64(row.Tenant), db.Millis(row.CreatedAt), row.CreatedBy
	if err := t.Gorm.Table(s.Name).Create(set).Error; err != nil {
		return resource.Row{}, err
	}
	if err := s.insertVersion(t, &row, text); err != nil {
		return resource.Row{}, err
	}
	s.audited(t, &row, "", text)
	if s.Created != nil {
		err = s.Created(t, &row, now)
	}
	return row, err
}

// audited tells the audit log of a document before and after a write.
func (s *Table) audited(t *db.Tx, row *resource.Row, before, after string) {
	t.Audited(domain.AuditObject{Kind: s.Kind.ID(), ID: domain.JobID(row.ID).String(), Name: row.Name, Before: before, After: after})
}

// columns are the values of a row that an edit changes.
func (s *Table) columns(row *resource.Row, text string) (set map[string]any, err error) {
	set = map[string]any{}
	if s.Side != nil {
		if set, err = s.Side(row); err != nil {
			return nil, err
		}
	}
	set["name"], set["version"], set["updated_at"], set["updated_by"] = row.Name, row.Version, db.Millis(row.UpdatedAt), row.UpdatedBy
	if s.Versions == "" {
		set["spec"] = text
	}
	if len(s.Kind.Secrets) > 0 {
		set["secrets"] = append([]byte{}, row.Sealed...) // not NULL
	}
	return set, nil
}

func (s *Table) insertVersion(t *db.Tx, row *resource.Row, text string) error {
	if s.Versions == "" {
		return nil
	}
	set := map[string]any{}
	if s.VersionSide != nil {
		var err error
		if set, err = s.VersionSide(row); err != nil {
			return err
		}
	}
	set[s.Owner], set["version"], set["tenant_id"], set["spec"] = row.ID, row.Version, int64(row.Tenant), text
	set["created_at"], set["created_by"] = db.Millis(row.UpdatedAt), row.UpdatedBy
	err := t.Gorm.Table(s.Versions).Create(set).Error
	if err == nil && s.Stored != nil {
		err = s.Stored(t, row, text)
	}
	return err
}

// Replace implements resource.Store.
func (s *Table) Replace(ctx context.Context, row resource.Row) (resource.Row, error) {
	return s.write(ctx, "update ", row, func(t *db.Tx, now int64) (resource.Row, error) {
		old, err := s.lock(t, row.Tenant, row.ID, row.Version)
		if err != nil {
			return resource.Row{}, err
		}
		before, err := old.Text()
		if err != nil {
			return resource.Row{}, err
		}
		if err := s.holdUsed(t, &row); err != nil {
			return resource.Row{}, err
		}
		next := row
		next.Version++
		next.UpdatedAt = db.Instant(now)
		text, err := next.Text()
		if err != nil {
			return resource.Row{}, err
		}
		set, err := s.columns(&next, text)
		if err != nil {
			return resource.Row{}, err
		}
		if err := t.Gorm.Table(s.Name).Where("id = ? AND tenant_id = ?", row.ID, int64(row.Tenant)).Updates(set).Error; err != nil {
			return resource.Row{}, err
		}
		s.audited(t, &next, before, text)
		return next, s.insertVersion(t, &next, text)
	})
}

// lock locks a document and reads it. version 0 is any.
func (s *Table) lock(t *db.Tx, tenant domain.TenantID, id, version int64) (resource.Row, error) {
	var locked []int64
	err := t.Gorm.Table(s.Name).Clauses(t.Locking()...).Where("id = ? AND tenant_id = ?", id, int64(tenant)).Pluck("version", &locked).Error
	if err != nil {
		return resource.Row{}, err
	}
	if len(locked) == 0 {
		return resource.Row{}, s.none(id)
	}
	if version != 0 && locked[0] != version {
		return resource.Row{}, domain.Errorf(domain.CodeRevisionMismatch, "%s %d is at version %d, not %d", s.Kind.Noun, id, locked[0], version)
	}
	var found stored
	if err := s.rows(t.Gorm).Where("d.id = ? AND d.tenant_id = ?", id, int64(tenant)).Take(&found).Error; err != nil {
		return resource.Row{}, err
	}
	return s.row(&found), nil
}

func (s *Table) none(id int64) error {
	return domain.Errorf(domain.CodeNotFound, "there is no %s %d", s.Kind.Noun, id)
}

// Find implements resource.Store.
func (s *Table) Find(ctx context.Context, tenant domain.TenantID, id int64) (resource.Row, error) {
	return s.find(ctx, "d.id = ? AND d.tenant_id = ?", id, int64(tenant))
}

// FindByName implements resource.Store.
func (s *Table) FindByName(ctx context.Context, tenant domain.TenantID, name string) (resource.Row, error) {
	row, err := s.find(ctx, "d.tenant_id = ? AND d.name = ?", int64(tenant), name)
	if domain.Is(err, domain.CodeNotFound) {
		return resource.Row{}, domain.Errorf(domain.CodeNotFound, "there is no %s %q", s.Kind.Noun, name)
	}
	return row, err
}

func (s *Table) find(ctx context.Context, where string, args ...any) (row resource.Row, err error) {
	err = s.Look(ctx, "find "+s.Kind.Noun, func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var found stored
		if err := s.rows(g).Where(where, args...).Take(&found).Error; err != nil {
			return err
		}
		row = s.row(&found)
		return nil
	})
	return row, err
}

// List implements resource.Store.
func (s *Table) List(ctx context.Context, tenant domain.TenantID, after string, limit int) (rows []resource.Row, more bool, err error) {
	return s.page(ctx, limit, func(g *gorm.DB) *gorm.DB {
		return s.rows(g).Where("d.tenant_id = ? AND d.name > ?", int64(tenant), after).Order("d.name")
	})
}

// Search implements resource.Store.
func (s *Table) Search(ctx context.Context, q domain.SearchQuery) (page domain.FoundPage, err error) {
	of := record.NameSearch{Table: s.Name, Index: cmp.Or(s.ByName, "uq_"+s.Name+"_name"), Sorted: true}
	err = s.Look(ctx, "search "+s.Kind.Path, func(ctx context.Context, from db.Querier, _ *gorm.DB) error {
		all, more, err := of.Find(ctx, from, s.Dialect, q)
		if err != nil {
			return err
		}
		labelled, err := s.labelled(ctx, from, q)
		page = domain.FoundOf(append(all, labelled...), more)
		return err
	})
	return page, err
}

// Count implements resource.Store. It reads an index.
func (s *Table) Count(ctx context.Context, tenant domain.TenantID, most int) (int, error) {
	counts, err := db.LookColumn[int](ctx, s.DB, "count "+s.Kind.Path,
		fmt.Sprintf("SELECT COUNT(*) FROM (SELECT 1 FROM %s WHERE tenant_id = %d LIMIT %d) AS d", s.Name, int64(tenant), most))
	if err != nil || len(counts) == 0 {
		return 0, err
	}
	return counts[0], nil
}

// ListAll lists documents of all tenants by id, no more than limit.
func (s *Table) ListAll(ctx context.Context, limit int) ([]resource.Row, error) {
	rows, _, err := s.page(ctx, limit, func(g *gorm.DB) *gorm.DB { return s.rows(g).Order("d.id") })
	return rows, err
}

// In reads documents in a transaction. The table is d in the conditions.
func (s *Table) In(g *gorm.DB, choose func(*gorm.DB) *gorm.DB) ([]resource.Row, error) {
	var found []stored
	err := choose(s.rows(g)).Find(&found).Error
	return domain.Collect(found, s.row), err
}

// ListVersions implements resource.Store.
func (s *Table) ListVersions(ctx context.Context, tenant domain.TenantID, id, before int64, limit int) (rows []resource.Row, more bool, err error) {
	rows, more, err = s.page(ctx, limit, func(g *gorm.DB) *gorm.DB {
		g = g.Table(s.Versions+" AS v").Select("v."+s.Owner+" AS id, v.tenant_id, v.version, v.spec AS text, v.created_at, v.created_at AS updated_at, v.created_by, v.created_by AS updated_by").
			Where("v."+s.Owner+" = ? AND v.tenant_id = ?", id, int64(tenant)).Order("v.version DESC")
		if before != 0 {
			g = g.Where("v.version < ?", before)
		}
		return g
	})
	if err == nil && len(rows) == 0 && before == 0 {
		err = s.none(id)
	}
	return rows, more, err
}

func (s *Table) page(ctx context.Context, limit int, choose func(*gorm.DB) *gorm.DB) (rows []resource.Row, more bool, err error) {
	err = s.Look(ctx, "list "+s.Kind.Path, func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		found, cut, err := record.FindWithin(choose(g), record.PageSize(limit), func(r *stored) int { return len(r.Text) + len(r.Secrets) })
		if err != nil {
			return err
		}
		rows, more = domain.Collect(found, s.row), cut
		return nil
	})
	return rows, more, err
}

// deletedRow is a deleted document.
type deletedRow struct {
	Kind      string `gorm:"column:kind"`
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Name      string `gorm:"column:name"`
	Version   int64  `gorm:"column:version"`
	Text      string `gorm:"column:document"`
	Secrets   []byte `gorm:"column:secrets"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	DeletedAt int64  `gorm:"column:deleted_at"`
	DeletedBy string `gorm:"column:deleted_by"`
}

func (deletedRow) TableName() string { return "deleted_documents" }

// Delete implements resource.Store.
func (s *Table) Delete(ctx context.Context, tenant domain.TenantID, id, version int64, by string) error {
	return s.RunAt(ctx, "delete "+s.Kind.Noun, func(t *db.Tx, now time.Time) error {
		row, err := s.lock(t, tenant, id, version)
		if err != nil {
			return err
		}
		if err := s.refuseUsed(t.Ctx, t.Conn, t.Gorm, &row, nil); err != nil {
			return err
		}
		text, err := row.Text()
		if err != nil {
			return err
		}
		s.audited(t, &row, text, "")
		if s.Versions != "" {
			text = "" // its versions stay
		}
		err = t.Gorm.Create(&deletedRow{
			Kind: s.Kind.Name, ID: row.ID, TenantID: int64(tenant), Name: row.Name, Version: row.Version, Text: text, Secrets: append([]byte{}, row.Sealed...),
			CreatedAt: db.Millis(row.CreatedAt), CreatedBy: row.CreatedBy, DeletedAt: db.Millis(now), DeletedBy: by,
		}).Error
		if err == nil {
			_, err = t.Exec(t.Ctx, "DELETE FROM "+s.Name+" WHERE id = ? AND tenant_id = ?", id, int64(tenant))
		}
		if err != nil || s.Versions != "" {
			return err // the bytes of versions are bounded by a quota
		}
		return s.forgetOldest(t, tenant)
	})
}

// mostDeleted is how many deleted documents of a kind a tenant has. The oldest leaves first.
const mostDeleted = 100

func (s *Table) forgetOldest(t *db.Tx, tenant domain.TenantID) error {
	var ids []int64
	err := t.Gorm.Model(&deletedRow{}).Where("tenant_id = ? AND kind = ?", int64(tenant), s.Kind.Name).
		Order("deleted_at DESC, id DESC").Offset(mostDeleted).Limit(mostDeleted).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return err
	}
	return t.Gorm.Where("kind = ? AND id IN ?", s.Kind.Name, ids).Delete(&deletedRow{}).Error
}

// Restore implements resource.Store.
func (s *Table) Restore(ctx context.Context, tenant domain.TenantID, id int64, by string) (resource.Row, error) {
	return s.write(ctx, "restore ", resource.Row{}, func(t *db.Tx, now int64) (resource.Row, error) {
		var gone deletedRow
		err := t.Gorm.Clauses(t.Locking()...).Where("kind = ? AND id = ? AND tenant_id = ?", s.Kind.Name, id, int64(tenant)).Take(&gone).Error
		if err != nil {
			return resource.Row{}, err
		}
		if s.Versions != "" {
			err = t.Gorm.Table(s.Versions).Select("spec").Where(s.Owner+" = ? AND version = ? AND tenant_id = ?", id, gone.Version, int64(tenant)).Take(&gone.Text).Error
			if err != nil {
				return resource.Row{}, err
			}
		}
		row := s.row(&stored{ID: id, TenantID: int64(tenant), Name: gone.Name, Version: gone.Version + 1, Text: gone.Text, Secrets: gone.Secrets, CreatedAt: gone.CreatedAt, CreatedBy: gone.CreatedBy, UpdatedBy: by})
		if row, err = s.Insert(t, row, now); err != nil {
			return resource.Row{}, db.NameTaken(err, s.Kind.Noun, gone.Name)
		}
		_, err = t.Exec(t.Ctx, "DELETE FROM deleted_documents WHERE kind = ? AND id = ? AND tenant_id = ?", s.Kind.Name, id, int64(tenant))
		return row, err
	})
}

// ListDeleted implements resource.Store.
func (s *Table) ListDeleted(ctx context.Context, tenant domain.TenantID, limit int) ([]resource.Row, error) {
	gone, err := db.FindBy[deletedRow](ctx, s.DB, "list deleted "+s.Kind.Path, func(g *gorm.DB) *gorm.DB {
		return g.Omit("document", "secrets").Where("tenant_id = ? AND kind = ?", int64(tenant), s.Kind.Name).Order("deleted_at DESC").Limit(record.PageSize(limit))
	})
	return domain.Collect(gone, func(r *deletedRow) resource.Row {
		return resource.Row{Meta: resource.Meta{
			ID: r.ID, Tenant: tenant, Name: r.Name, Version: r.Version, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy,
			UpdatedAt: db.Instant(r.DeletedAt), UpdatedBy: r.DeletedBy,
		}}
	}), err
}
