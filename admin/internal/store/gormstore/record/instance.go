package record

import (
	"cmp"
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// InstanceRow is a row of instances.
type InstanceRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	ExecutorID  int64  `gorm:"column:executor_id"`
	BootID      string `gorm:"column:boot_id"`
	Name        string `gorm:"column:name"`
	Host        string `gorm:"column:host"`
	Address     string `gorm:"column:address"`
	PID         int64  `gorm:"column:pid"`
	AppVersion  string `gorm:"column:app_version"`
	Build       string `gorm:"column:build"`
	Client      string `gorm:"column:client"`
	Labels      string `gorm:"column:labels"`
	Handlers    string `gorm:"column:handlers"`
	Slots       int64  `gorm:"column:slots"`
	Running     int64  `gorm:"column:running"`
	Draining    int64  `gorm:"column:draining"` // 1 = yes
	StartedAt   int64  `gorm:"column:started_at"`
	ConnectedAt int64  `gorm:"column:connected_at"`
	LastSeenAt  int64  `gorm:"column:last_seen_at"`
	LeaseUntil  int64  `gorm:"column:lease_until"`
	GoneAt      int64  `gorm:"column:gone_at"`
	GoneReason  string `gorm:"column:gone_reason"`
	Parked      int64  `gorm:"column:parked"` // 1 = yes
	WantedAt    int64  `gorm:"column:wanted_at"`
	DrainingAt  int64  `gorm:"column:draining_at"` // 0 = it does not
	Refusing    int64  `gorm:"column:refusing"`    // 1 = yes
	DrainedAt   int64  `gorm:"column:drained_at"`  // 0 = nobody wants it to drain
	DrainedBy   string `gorm:"column:drained_by"`
}

func (InstanceRow) TableName() string { return "instances" }

// Instance leaves out labels and handlers that cannot be read: they are what the
// process said last, and it says them anew when it registers.
func (r *InstanceRow) Instance() domain.Instance {
	i := domain.Instance{
		ID: domain.InstanceID(r.ID), TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), BootID: r.BootID,
		Name: r.Name, Host: r.Host, Address: r.Address, PID: int(r.PID), AppVersion: r.AppVersion, Build: r.Build, Client: r.Client,
		Slots: int(r.Slots), Running: int(r.Running), Draining: r.Draining != 0 || r.DrainedAt > 0, DrainingAt: db.Instant(cmp.Or(r.DrainingAt, r.DrainedAt)), Refusing: r.Refusing != 0, StartedAt: db.Instant(r.StartedAt),
		ConnectedAt: db.Instant(r.ConnectedAt), LastSeenAt: db.Instant(r.LastSeenAt), LeaseUntil: db.Instant(r.LeaseUntil),
		GoneAt: db.Instant(r.GoneAt), GoneReason: r.GoneReason, DrainedAt: db.Instant(r.DrainedAt), DrainedBy: r.DrainedBy,
	}
	if json.Unmarshal([]byte(r.Labels), &i.Labels) != nil {
		i.Labels = nil
	}
	if json.Unmarshal([]byte(r.Handlers), &i.Handlers) != nil {
		i.Handlers = nil
	}
	return i
}
