package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type scriptRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	State       int64  `gorm:"column:state"`
	Name        string `gorm:"column:name"`
	Language    string `gorm:"column:language"`
	Description string `gorm:"column:description"`
	Revision    int64  `gorm:"column:revision"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt   int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy   string `gorm:"column:created_by"`
	UpdatedBy   string `gorm:"column:updated_by"`
}

func (scriptRow) TableName() string { return "scripts" }

type scriptRevisionRow struct {
	ScriptID  int64  `gorm:"column:script_id;primaryKey;autoIncrement:false"`
	Revision  int64  `gorm:"column:revision;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Content   string `gorm:"column:content"`
	SHA256    []byte `gorm:"column:sha256"`
	Signature []byte `gorm:"column:signature"`
	Note      string `gorm:"column:note"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
}

func (scriptRevisionRow) TableName() string { return "script_revisions" }

type jobScriptRow struct {
	JobID    int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	ScriptID int64 `gorm:"column:script_id"`
	TenantID int64 `gorm:"column:tenant_id"`
	Revision int64 `gorm:"column:revision"`
}

func (jobScriptRow) TableName() string { return "job_scripts" }

func (r *scriptRow) script() domain.Script {
	return domain.Script{
		ID: domain.ScriptID(r.ID), TenantID: domain.TenantID(r.TenantID), Name: r.Name, Language: r.Language, Description: r.Description,
		Revision: r.Revision, CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}
}

func (r *scriptRevisionRow) revision() domain.ScriptRevision {
	return domain.ScriptRevision{
		ScriptID: domain.ScriptID(r.ScriptID), TenantID: domain.TenantID(r.TenantID), Revision: r.Revision, Content: r.Content,
		SHA256: r.SHA256, Signature: r.Signature, Note: r.Note, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy,
	}
}

func (s *Scripts) CreateScript(ctx context.Context, p store.CreateScriptParams) (domain.Script, error) {
	err := s.RunAt(ctx, "create script", func(t *db.Tx, now time.Time) error {
		row := scriptRow{
			ID: int64(p.Script.ID), TenantID: int64(p.Script.TenantID), State: record.ScriptLive, Name: p.Script.Name, Language: p.Script.Language,
			Description: p.Script.Description, Revision: 1, CreatedAt: db.Millis(now), UpdatedAt: db.Millis(now),
			CreatedBy: p.Script.CreatedBy, UpdatedBy: p.Script.CreatedBy,
		}
		if err := t.Gorm.Create(&row).Error; err != nil {
			return db.NameTaken(err, "script", p.Script.Name)
		}
		return insertScriptRevision(t, &row, p.Content, p.Note, p.Sign)
	})
	if err != nil {
		return domain.Script{}, err
	}
	return s.FindScript(ctx, p.Script.TenantID, p.Script.ID)
}

func insertScriptRevision(t *db.Tx, row *scriptRow, content, note string, sign store.SignFunc) error {
	sum := sha256.Sum256([]byte(content))
	t.Audited(domain.AuditObject{ID: domain.ScriptID(row.ID).String(), Name: row.Name, After: fmt.Sprintf(`{"revision":%d,"sha256":"%x"}`, row.Revision, sum)})
	err := t.Gorm.Create(&scriptRevisionRow{
		ScriptID: row.ID, Revision: row.Revision, TenantID: row.TenantID, Content: content, SHA256: sum[:],
		Signature: sign(row.script(), row.Revision, sum[:]), Note: note, CreatedAt: row.UpdatedAt, CreatedBy: row.UpdatedBy,
	}).Error
	if err != nil {
		return err
	}
	return scriptHistory.store(t, row.TenantID, row.ID, row.Revision, content, fmt.Sprintf("SELECT revision FROM job_scripts WHERE script_id = %d", row.ID))
}

// lockScript locks a living script. Whoever links a job to it holds it for
// sharing until its own commit.
func lockScript(t *db.Tx, tenant domain.TenantID, id domain.ScriptID, lock string) (row scriptRow, now int64, err error) {
	r := t.SQL.QueryRowContext(t.Ctx, "SELECT id, tenant_id, state, name, language, description, revision, created_at, created_by, "+t.Dialect.Clock()+
		" FROM scripts WHERE id = ? AND tenant_id = ?"+lock, int64(id), int64(tenant))
	err = r.Scan(&row.ID, &row.TenantID, &row.State, &row.Name, &row.Language, &row.Description, &row.Revision, &row.CreatedAt, &row.CreatedBy, &now)
	if errors.Is(err, sql.ErrNoRows) || err == nil && row.State == record.ScriptDeleted {
		return row, now, db.NotFound("script", id)
	}
	if err != nil {
		return row, now, fmt.Errorf("lock script: %w", err)
	}
	return row, now, nil
}

func (s *Scripts) ReviseScript(ctx context.Context, p store.ReviseScriptParams) (domain.Script, error) {
	err := s.Run(ctx, "revise script", func(t *db.Tx) error {
		row, now, err := lockScript(t, p.Tenant, p.ID, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		if p.IfRevision != 0 && p.IfRevision != row.Revision {
			return domain.Errorf(domain.CodeRevisionMismatch, "script %s is at revision %d, not %d", p.ID, row.Revision, p.IfRevision)
		}
		var old []byte
		err = t.SQL.QueryRowContext(t.Ctx, "SELECT sha256 FROM script_revisions WHERE script_id = ? AND revision = ? AND tenant_id = ?",
			row.ID, row.Revision, row.TenantID).Scan(&old)
		if err != nil {
			return fmt.Errorf("read script revision: %w", err)
		}
		sum := sha256.Sum256([]byte(p.Content))
		same := bytes.Equal(old, sum[:])
		if same && (p.Description == nil || *p.Description == row.Description) {
			return nil
		}
		row.UpdatedAt, row.UpdatedBy = now, p.By
		if p.Description != nil {
			row.Description = *p.Description
		}
		if !same {
			row.Revision++
			if err := insertScriptRevision(t, &row, p.Content, p.Note, p.Sign); err != nil {
				return err
			}
		}
		_, err = t.Exec(t.Ctx, "UPDATE scripts SET revision = ?, description = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			row.Revision, row.Description, row.UpdatedAt, row.UpdatedBy, row.ID, row.TenantID)
		return err
	})
	if err != nil {
		return domain.Script{}, err
	}
	return s.FindScript(ctx, p.Tenant, p.ID)
}

func (s *Scripts) DeleteScript(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, by string) error {
	return s.Run(ctx, "delete script", func(t *db.Tx) error {
		row, now, err := lockScript(t, tenant, id, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		jobs, err := scriptJobs(t.Ctx, t.Conn, tenant, id, 4)
		if err != nil {
			return err
		}
		if len(jobs) > 0 {
			return db.UsedBy("script", row.Name, jobs)
		}
		_, err = t.Exec(t.Ctx, "UPDATE scripts SET state = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			record.ScriptDeleted, now, by, row.ID, row.TenantID)
		return err
	})
}

// linkScript notes which script a job's next revision runs. A script that is
// being deleted either is gone, or sees the job.
func linkScript(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	if u := spec.Script; u != nil {
		row, _, err := lockScript(t, domain.TenantID(job.TenantID), u.ID, t.Dialect.ForShare())
		switch {
		case domain.Is(err, domain.CodeNotFound) || err == nil && u.Revision > row.Revision:
			return domain.Invalid("body.script", "there is no script %s with a revision %d", u.ID, u.Revision)
		case err != nil:
			return err
		case domain.ScriptHandlerPrefix+row.Language != spec.Handler:
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

func scriptJobs(ctx context.Context, q db.Querier, tenant domain.TenantID, id domain.ScriptID, limit int) ([]store.JobRef, error) {
	return jobsWith(ctx, q, "job_scripts", "script_id", tenant, int64(id), limit)
}

func (s *Scripts) FindScript(ctx context.Context, tenant domain.TenantID, id domain.ScriptID) (domain.Script, error) {
	return s.findScript(ctx, "id = ? AND tenant_id = ? AND state <> ?", int64(id), int64(tenant), record.ScriptDeleted)
}

func (s *Scripts) FindScriptByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Script, error) {
	return s.findScript(ctx, "tenant_id = ? AND name = ? AND state <> ?", int64(tenant), name, record.ScriptDeleted)
}

func (s *Scripts) findScript(ctx context.Context, where string, args ...any) (out domain.Script, err error) {
	row, err := db.FindOne[scriptRow](ctx, s.DB, "find script", where, args...)
	return row.script(), err
}

func (s *Scripts) ListScripts(ctx context.Context, p store.ListScriptsParams) (out []domain.Script, err error) {
	rows, err := db.FindPage[scriptRow](ctx, s.DB, "list scripts", "name", record.PageSize(p.Limit),
		"tenant_id = ? AND name > ? AND state <> ?", int64(p.Tenant), p.After, record.ScriptDeleted)
	return domain.Collect(rows, (*scriptRow).script), err
}

func (s *Scripts) ListScriptRevisions(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) (out []domain.ScriptRevision, err error) {
	rows, err := db.FindBy[scriptRevisionRow](ctx, s.DB, "list script revisions", func(g *gorm.DB) *gorm.DB {
		return g.Omit("content").Where("script_id = ? AND tenant_id = ?", int64(id), int64(tenant)).Order("revision DESC").Limit(record.PageSize(limit))
	})
	return domain.Collect(rows, (*scriptRevisionRow).revision), err
}

func (s *Scripts) FindScriptRevision(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, revision int64) (out domain.ScriptRevision, err error) {
	row, err := db.FindOne[scriptRevisionRow](ctx, s.DB, "find script revision", "script_id = ? AND revision = ? AND tenant_id = ?", int64(id), revision, int64(tenant))
	return row.revision(), err
}

func (s *Scripts) ListScriptJobs(ctx context.Context, tenant domain.TenantID, id domain.ScriptID, limit int) (out []store.JobRef, err error) {
	err = s.Look(ctx, "list jobs of a script", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = scriptJobs(ctx, q, tenant, id, record.PageSize(limit))
		return err
	})
	return out, err
}

// DeliverScript reads where it is written: a revision that was saved is what
// the next run gets.
func (s *Scripts) DeliverScript(ctx context.Context, tenant domain.TenantID, use domain.ScriptUse) (domain.Script, domain.ScriptRevision, error) {
	found, err := s.FindScript(ctx, tenant, use.ID)
	if err != nil {
		return found, domain.ScriptRevision{}, err
	}
	revision := use.Revision
	if revision == 0 {
		revision = found.Revision
	}
	out, err := s.FindScriptRevision(ctx, tenant, use.ID, revision)
	return found, out, err
}
