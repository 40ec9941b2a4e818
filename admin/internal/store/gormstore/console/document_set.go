package console

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// setRow is a row of document_sets.
type setRow struct {
	TenantID int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Kind     string `gorm:"column:kind;primaryKey"`
	ObjectID int64  `gorm:"column:object_id;primaryKey;autoIncrement:false"`
	SetName  string `gorm:"column:set_name"`
}

func (setRow) TableName() string { return "document_sets" }

// setOnce is how many rows one statement writes.
const setOnce = 200

// ListDocumentSet implements store.DocumentSets.
func (s *DocumentSets) ListDocumentSet(ctx context.Context, tenant domain.TenantID, set string) ([]resource.SetMember, error) {
	rows, err := db.FindBy[setRow](ctx, s.DB, "list document set", func(g *gorm.DB) *gorm.DB {
		return g.Where("tenant_id = ? AND set_name = ?", int64(tenant), set).Order("kind, object_id").Limit(store.MaxSetMembers)
	})
	return domain.Collect(rows, func(r *setRow) resource.SetMember { return resource.SetMember{Kind: r.Kind, ID: r.ObjectID} }), err
}

// ListDocumentSetNames implements store.DocumentSets.
func (s *DocumentSets) ListDocumentSetNames(ctx context.Context, tenant domain.TenantID) (names []string, err error) {
	rows, err := db.FindBy[setRow](ctx, s.DB, "list document sets", func(g *gorm.DB) *gorm.DB {
		return g.Distinct("set_name").Where("tenant_id = ?", int64(tenant)).Order("set_name").Limit(store.MaxSetNames)
	})
	return domain.Collect(rows, func(r *setRow) string { return r.SetName }), err
}

// SaveDocumentSet implements store.DocumentSets.
func (s *DocumentSets) SaveDocumentSet(ctx context.Context, tenant domain.TenantID, set string, join, leave []resource.SetMember) error {
	if len(join)+len(leave) == 0 {
		return nil
	}
	return s.Run(ctx, "save document set", func(t *db.Tx) error {
		count, err := record.CountInTable(t, tenant, "document_sets")
		if err != nil {
			return err
		}
		if count+int64(len(join)) > store.MaxSetMembers+int64(len(leave)) {
			return domain.Errorf(domain.CodeConflict, "the sets of the tenant have %d documents, and may have %d; prune or delete some first", count, store.MaxSetMembers)
		}
		byKind := map[string][]int64{}
		for _, m := range leave {
			byKind[m.Kind] = append(byKind[m.Kind], m.ID)
		}
		for kind, ids := range byKind {
			for some := range slices.Chunk(ids, setOnce) {
				if err := t.Gorm.Where("tenant_id = ? AND kind = ? AND object_id IN ? AND set_name = ?", int64(tenant), kind, some, set).Delete(&setRow{}).Error; err != nil {
					return fmt.Errorf("leave document set: %w", err)
				}
			}
		}
		for some := range slices.Chunk(join, setOnce) {
			rows := domain.Collect(some, func(m *resource.SetMember) setRow { return setRow{int64(tenant), m.Kind, m.ID, set} })
			if err := t.Gorm.Clauses(clause.OnConflict{
				Columns: []clause.Column{{Name: "tenant_id"}, {Name: "kind"}, {Name: "object_id"}}, DoUpdates: clause.AssignmentColumns([]string{"set_name"}),
			}).Create(&rows).Error; err != nil {
				return fmt.Errorf("join document set: %w", err)
			}
		}
		t.Audited(domain.AuditObject{Kind: "document set", Name: set, After: fmt.Sprintf(`{"joined":%d,"left":%d}`, len(join), len(leave))})
		return nil
	})
}
