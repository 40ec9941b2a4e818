package record

import (
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type TenantRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	Name      string `gorm:"column:name"`
	State     int64  `gorm:"column:state"`
	Note      string `gorm:"column:note"`
	Version   int64  `gorm:"column:version"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	ChangedAt int64  `gorm:"column:changed_at"`
	DeleteAt  int64  `gorm:"column:delete_at"`
	Cell      string `gorm:"column:cell"`
}

func (TenantRow) TableName() string { return "tenants" }

func (r TenantRow) Tenant() domain.Tenant {
	return domain.Tenant{
		ID: domain.TenantID(r.ID), Name: r.Name, State: domain.TenantState(r.State), Note: r.Note, Version: r.Version,
		CreatedAt: db.Instant(r.CreatedAt), ChangedAt: db.Instant(r.ChangedAt), DeleteAt: db.Instant(r.DeleteAt), Cell: r.Cell,
	}
}
