package record

import (
	"encoding/json"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// BuildRow is a row of builds.
type BuildRow struct {
	TenantID    int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ExecutorID  int64  `gorm:"column:executor_id;primaryKey;autoIncrement:false"`
	Digest      string `gorm:"column:digest;primaryKey"`
	AppVersion  string `gorm:"column:app_version"`
	Generation  int64  `gorm:"column:generation"`
	Handlers    string `gorm:"column:handlers"`
	Catalogue   []byte `gorm:"column:catalogue"`
	Applied     bool   `gorm:"column:applied"`
	NoJobs      bool   `gorm:"column:no_jobs"`
	Contested   bool   `gorm:"column:contested"`
	FirstSeenAt int64  `gorm:"column:first_seen_at"`
	LastSeenAt  int64  `gorm:"column:last_seen_at"`
}

// BuildBytes is what a row counts in the tenant's stored bytes.
const BuildBytes = "OCTET_LENGTH(handlers) + COALESCE(OCTET_LENGTH(catalogue), 0) + 128"

func (BuildRow) TableName() string { return "executor_builds" }

// Build is what the row means.
func (r *BuildRow) Build() domain.Build {
	b := domain.Build{
		TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Digest: r.Digest,
		Version: r.AppVersion, Generation: r.Generation, Applied: r.Applied, Contested: r.Contested, NoJobs: r.NoJobs,
		FirstSeenAt: db.Instant(r.FirstSeenAt), LastSeenAt: db.Instant(r.LastSeenAt),
	}
	if json.Unmarshal([]byte(r.Handlers), &b.Handlers) != nil {
		b.Handlers = nil // its next registration tells them
	}
	return b
}
