package console

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type jobScriptRow struct {
	JobID    int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	ScriptID int64 `gorm:"column:script_id"`
	TenantID int64 `gorm:"column:tenant_id"`
	Revision int64 `gorm:"column:revision"`
}

func (jobScriptRow) TableName() string { return "job_scripts" }

// ScriptTable implements store.Scripts. Jobs name versions, so a version that a job names stays.
func (s *Scripts) ScriptTable(sign store.SignFunc) resource.Store {
	return &document.Table{
		DB: s.DB, Kind: script.Kind(s), Name: "scripts", ByName: "ix_scripts_name", Versions: "script_versions", Owner: "script_id",
		Side: func(row *resource.Row) (map[string]any, error) { // of before the mechanism
			return map[string]any{"state": 1, "language": "", "revision": row.Version}, nil
		},
		VersionSide: func(row *resource.Row) (map[string]any, error) {
			v, err := script.Of(row)
			if err != nil {
				return nil, err
			}
			return map[string]any{"signature": sign(v, v.Version, v.SHA256)}, nil
		},
		Stored: func(t *db.Tx, row *resource.Row, text string) error {
			return scriptHistory.store(t, int64(row.Tenant), row.ID, row.Version, text, fmt.Sprintf("SELECT revision FROM job_scripts WHERE script_id = %d", row.ID))
		},
		Jobs: jobsOfScripts,
	}
}

// linkScript notes which script a job's next revision runs. The script stays locked for sharing
// until the commit: one that is being deleted either is gone, or sees the job.
func linkScript(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	if u := spec.Script; u != nil {
		version, err := shareDocument(t, "script", "scripts", domain.TenantID(job.TenantID), int64(u.ID))
		switch {
		case domain.Is(err, domain.CodeNotFound) || err == nil && u.Revision > version:
			return domain.Invalid("body.script", "there is no script %s with a version %d", u.ID, u.Revision)
		case err != nil:
			return err
		}
		row, err := findScriptVersion(t.Gorm, domain.TenantID(job.TenantID), domain.ScriptUse{ID: u.ID})
		if err != nil {
			return err
		}
		if domain.ScriptHandlerPrefix+row.Language != spec.Handler {
			return domain.Invalid("body.script", "the script %q is in %s, and the handler is %s", row.Name, row.Language, spec.Handler)
		}
	}
	if _, err := t.Exec(t.Ctx, "DELETE FROM job_scripts WHERE job_id = ? AND tenant_id = ?", job.ID, job.TenantID); err != nil {
		return fmt.Errorf("unlink script: %w", err)
	}
	if spec.Script == nil {
		return nil
	}
	row := jobScriptRow{JobID: job.ID, ScriptID: int64(spec.Script.ID), TenantID: job.TenantID, Revision: spec.Script.Revision}
	if err := t.Gorm.Create(&row).Error; err != nil {
		return fmt.Errorf("link script: %w", err)
	}
	return nil
}

var jobsOfScripts = document.Links{Table: "job_scripts", Column: "script_id"}

// ListScriptJobs implements store.Scripts.
func (s *Scripts) ListScriptJobs(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) (out []store.JobRef, err error) {
	err = s.Look(ctx, "list jobs of a script", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = jobsOfScripts.List(ctx, q, tenant, int64(id), record.PageSize(limit))
		return err
	})
	return out, err
}

// findScriptVersion reads the version of a use; 0 is the newest one.
func findScriptVersion(g *gorm.DB, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, error) {
	g = g.Where("d.id = ?", int64(use.ID))
	if use.Revision == 0 {
		return readScript(g.Where("v.version = d.version"), tenant)
	}
	return readScript(g.Where("v.version = ?", use.Revision), tenant)
}

// readScript reads the version that the conditions of g choose.
func readScript(g *gorm.DB, tenant domain.TenantID) (domain.Script, error) {
	var found struct {
		ID        int64  `gorm:"column:id"`
		Name      string `gorm:"column:name"`
		Version   int64  `gorm:"column:version"`
		Text      string `gorm:"column:spec"`
		Signature []byte `gorm:"column:signature"`
	}
	err := g.Table("scripts AS d").Select("d.id, d.name, v.version, v.spec, v.signature").
		Joins("JOIN script_versions AS v ON v.tenant_id = d.tenant_id AND v.script_id = d.id").
		Where("d.tenant_id = ?", int64(tenant)).Take(&found).Error
	if err != nil {
		return domain.Script{}, err
	}
	row := resource.Row{Meta: resource.Meta{ID: found.ID, Tenant: tenant, Name: found.Name, Version: found.Version}}
	if err := row.ReadText([]byte(found.Text), nil); err != nil {
		return domain.Script{}, err
	}
	out, err := script.Of(&row)
	if err != nil {
		return domain.Script{}, err
	}
	out.Signature = found.Signature
	return out, nil
}

// FindScript implements store.Scripts. It reads where scripts are written: the next run gets a
// version that was saved.
func (s *Scripts) FindScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (out domain.Script, err error) {
	err = s.Look(ctx, "find script", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		out, err = findScriptVersion(g, tenant, use)
		return err
	})
	return out, err
}

// FindScriptByName implements store.Scripts.
func (s *Scripts) FindScriptByName(ctx context.Context, tenant domain.TenantID, name string) (out domain.Script, err error) {
	err = s.Look(ctx, "find script", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		out, err = readScript(g.Where("d.name = ? AND v.version = d.version", name), tenant)
		return err
	})
	return out, err
}
