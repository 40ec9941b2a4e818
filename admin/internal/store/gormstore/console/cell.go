package console

import (
	"context"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type cellRow struct {
	Name      string `gorm:"column:name;primaryKey"`
	URL       string `gorm:"column:url"`
	Executors string `gorm:"column:executors"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
}

func (cellRow) TableName() string { return "cells" }

func (r *cellRow) cell() domain.Cell {
	return domain.Cell{Name: r.Name, URL: r.URL, Executors: strings.Split(r.Executors, ","), CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy}
}

func (s *Cells) ListCells(ctx context.Context) ([]domain.Cell, error) {
	rows, err := db.FindAll[cellRow](ctx, s.DB, "list cells", "name", "1 = 1")
	return domain.Collect(rows, (*cellRow).cell), err
}

func (s *Cells) SaveCell(ctx context.Context, c domain.Cell) error {
	return s.RunRepeatable(ctx, "save cell", func(t *db.Tx) error {
		var others int64
		if err := t.Gorm.Model(&cellRow{}).Where("name <> ?", c.Name).Count(&others).Error; err != nil {
			return err
		}
		if others >= domain.MaxCells {
			return domain.Errorf(domain.CodeConflict, "there are %d cells already, which is the most", others)
		}
		var was []cellRow
		if err := t.Gorm.Where("name = ?", c.Name).Find(&was).Error; err != nil {
			return err
		}
		row := cellRow{Name: c.Name, URL: c.URL, Executors: strings.Join(c.Executors, ","), CreatedAt: db.Millis(c.CreatedAt), CreatedBy: c.CreatedBy}
		auditCell(t, c.Name, was, []cellRow{row})
		return t.Gorm.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"url", "executors"})}).Create(&row).Error
	})
}

func (s *Cells) DeleteCell(ctx context.Context, name string) error {
	return s.RunRepeatable(ctx, "delete cell", func(t *db.Tx) error {
		var living int64
		if err := t.Gorm.Model(&record.TenantRow{}).Where("state > ? AND cell = ?", int64(domain.TenantEnabled), name).Count(&living).Error; err != nil {
			return err
		}
		if living > 0 {
			return domain.Errorf(domain.CodeInUse, "%d tenants of this cell live in %q or go there; delete them here first, or move them back", living, name)
		}
		var was []cellRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("name = ?", name).Find(&was).Error; err != nil {
			return err
		}
		if len(was) == 0 {
			return domain.Errorf(domain.CodeNotFound, "there is no cell %q", name)
		}
		auditCell(t, name, was, nil)
		return t.Gorm.Where("name = ?", name).Delete(&cellRow{}).Error
	})
}

// auditCell tells the audit log of a change. Both lists have one row or none.
func auditCell(t *db.Tx, name string, before, after []cellRow) {
	facts := func(rows []cellRow) db.Facts {
		if len(rows) == 0 {
			return nil
		}
		return db.Facts{"url": rows[0].URL, "executors": strings.Split(rows[0].Executors, ",")}
	}
	t.AuditedChange(domain.AuditObject{ID: name, Name: name}, facts(before), facts(after))
}

// readPlaces reads where the tenants are that are not here.
func readPlaces(g *gorm.DB) (out []record.TenantRow, cells map[string]domain.Cell, err error) {
	if err := g.Where("state >= ?", int64(domain.TenantMoving)).Find(&out).Error; err != nil || len(out) == 0 {
		return nil, nil, err
	}
	var rows []cellRow
	err = g.Find(&rows).Error
	cells = make(map[string]domain.Cell, len(rows))
	for i := range rows {
		cells[rows[i].Name] = rows[i].cell()
	}
	return out, cells, err
}
