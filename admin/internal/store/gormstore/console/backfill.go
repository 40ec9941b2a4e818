package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type backfillRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	JobID       int64  `gorm:"column:job_id"`
	Revision    int64  `gorm:"column:revision"`
	State       int64  `gorm:"column:state"`
	Scope       string `gorm:"column:scope"`
	FromAt      int64  `gorm:"column:from_at"`
	ToAt        int64  `gorm:"column:to_at"`
	NextAt      int64  `gorm:"column:next_at"`
	Concurrency int    `gorm:"column:concurrency"`
	Planned     int    `gorm:"column:planned"`
	Created     int    `gorm:"column:created"`
	Skipped     int    `gorm:"column:skipped"`
	Succeeded   int    `gorm:"column:succeeded"`
	Failed      int    `gorm:"column:failed"`
	Live        string `gorm:"column:live"`
	Note        string `gorm:"column:note"`
	Message     string `gorm:"column:message"`
	WakeAt      *int64 `gorm:"column:wake_at"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy   string `gorm:"column:created_by"`
	FinishedAt  int64  `gorm:"column:finished_at"`
	Traceparent string `gorm:"column:traceparent"`
}

func (backfillRow) TableName() string { return "backfills" }

func toBackfillRow(b *domain.Backfill) *backfillRow {
	ids := make([]string, len(b.Live))
	for i, id := range b.Live {
		ids[i] = id.String()
	}
	row := &backfillRow{
		ID: int64(b.ID), TenantID: int64(b.TenantID), JobID: int64(b.JobID), Revision: b.Revision, State: int64(b.State), Scope: string(b.Scope),
		FromAt: db.Millis(b.From), ToAt: db.Millis(b.To), NextAt: db.Millis(b.Next), Concurrency: b.Concurrency,
		Planned: b.Planned, Created: b.Created, Skipped: b.Skipped, Succeeded: b.Succeeded, Failed: b.Failed,
		Live: strings.Join(ids, ","), Note: record.Clip(b.Note, record.MessageSize), Message: record.Clip(b.Message, record.MessageSize),
		CreatedAt: db.Millis(b.CreatedAt), CreatedBy: record.Clip(b.CreatedBy, record.NameSize), FinishedAt: db.Millis(b.FinishedAt),
		Traceparent: string(b.Trace),
	}
	if !b.WakeAt.IsZero() {
		at := db.Millis(b.WakeAt)
		row.WakeAt = &at
	}
	return row
}

func (r *backfillRow) backfill() domain.Backfill {
	b := domain.Backfill{
		ID: domain.BackfillID(r.ID), TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Revision: r.Revision,
		State: domain.BackfillState(r.State), Scope: domain.BackfillScope(r.Scope),
		From: db.Instant(r.FromAt), To: db.Instant(r.ToAt), Next: db.Instant(r.NextAt), Concurrency: r.Concurrency,
		Planned: r.Planned, Created: r.Created, Skipped: r.Skipped, Succeeded: r.Succeeded, Failed: r.Failed,
		Note: r.Note, Message: r.Message, CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy, FinishedAt: db.Instant(r.FinishedAt),
		Trace: domain.Trace(r.Traceparent),
	}
	if r.WakeAt != nil {
		b.WakeAt = db.Instant(*r.WakeAt)
	}
	for _, text := range strings.Split(r.Live, ",") {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			b.Live = append(b.Live, domain.ExecutionID(id))
		}
	}
	return b
}

func (s *Backfills) CreateBackfill(ctx context.Context, p domain.Backfill) (domain.Backfill, error) {
	err := s.Run(ctx, "create backfill", func(t *db.Tx) error {
		b := p
		e := domain.Execution{JobID: b.JobID, TenantID: b.TenantID, Revision: b.Revision}
		now, err := s.specs.FillFromJob(t, &e)
		if err != nil {
			return err
		}
		b.Revision, b.State, b.Next, b.WakeAt, b.CreatedAt = e.Revision, domain.BackfillRunning, b.From, now, now
		t.AuditedChange(domain.AuditObject{}, nil, db.Facts{"backfill": b.ID, "from": b.From, "to": b.To, "scope": b.Scope, "concurrency": b.Concurrency, "note": b.Note})
		return t.Gorm.Create(toBackfillRow(&b)).Error
	})
	if err != nil {
		return domain.Backfill{}, err
	}
	return s.FindBackfill(ctx, p.TenantID, p.ID)
}

func (s *Backfills) FindBackfill(ctx context.Context, tenant domain.TenantID, id domain.BackfillID) (b domain.Backfill, err error) {
	row, err := db.FindOne[backfillRow](ctx, s.DB, "find backfill", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return domain.Backfill{}, err
	}
	return row.backfill(), nil
}

func (s *Backfills) ListBackfills(ctx context.Context, p store.ListBackfillsParams) ([]domain.Backfill, error) {
	rows, err := db.FindBy[backfillRow](ctx, s.DB, "list backfills", func(g *gorm.DB) *gorm.DB {
		g = g.Where("tenant_id = ?", int64(p.Tenant))
		if p.Job != 0 {
			g = g.Where("job_id = ?", int64(p.Job))
		}
		if p.Before != 0 {
			g = g.Where("id < ?", int64(p.Before))
		}
		return g.Order("id DESC").Limit(record.PageSize(p.Limit))
	})
	return domain.Collect(rows, (*backfillRow).backfill), err
}

func (s *Backfills) CancelBackfill(ctx context.Context, tenant domain.TenantID, id domain.BackfillID, message string) (domain.Backfill, error) {
	err := s.Run(ctx, "cancel backfill", func(t *db.Tx) error {
		row, now, err := lockBackfill(t, id, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		if row == nil || row.TenantID != int64(tenant) {
			return db.NotFound("backfill", id)
		}
		b := row.backfill()
		if b.State != domain.BackfillRunning {
			return domain.Errorf(domain.CodeAlreadyFinished, "backfill %s is %s already", id, b.State)
		}
		b.State, b.Message, b.WakeAt, b.FinishedAt = domain.BackfillCancelled, message, time.Time{}, now
		return saveBackfill(t, &b)
	})
	if err != nil {
		return domain.Backfill{}, err
	}
	return s.FindBackfill(ctx, tenant, id)
}

// lockBackfill locks a row; nil when there is none, or somebody else has it and
// lock says to skip it.
func lockBackfill(t *db.Tx, id domain.BackfillID, lock string) (*backfillRow, time.Time, error) {
	var found, at int64
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT id, "+t.Dialect.Clock()+" FROM backfills WHERE id = ?"+lock, int64(id)).Scan(&found, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, time.Time{}, nil
	} else if err != nil {
		return nil, time.Time{}, fmt.Errorf("lock backfill: %w", err)
	}
	var row backfillRow
	err = t.Gorm.Where("id = ?", found).Take(&row).Error
	return &row, db.Instant(at), err
}

func saveBackfill(t *db.Tx, b *domain.Backfill) error {
	row := toBackfillRow(b)
	return t.Gorm.Model(&backfillRow{}).Where("id = ? AND tenant_id = ?", row.ID, row.TenantID).Select("*").Omit("id", "tenant_id", "created_at", "created_by").Updates(row).Error
}

func (s *Backfills) ListOccurred(ctx context.Context, tenant domain.TenantID, job domain.JobID, from, to time.Time) (out map[int64]domain.Occurred, err error) {
	err = s.Look(ctx, "list fire times", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = occurred(ctx, q, tenant, job, from, to)
		return err
	})
	return out, err
}

// occurred reads along the unique key of executions.
func occurred(ctx context.Context, q db.Querier, tenant domain.TenantID, job domain.JobID, from, to time.Time) (map[int64]domain.Occurred, error) {
	out := map[int64]domain.Occurred{}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var at, state int64
		var key string
		if err := rows.Scan(&at, &key, &state); err != nil {
			return err
		}
		o := out[at]
		if key == "" {
			o.Scheduled = domain.State(state)
		} else {
			o.Backfill = true
		}
		out[at] = o
		return nil
	}, "SELECT fire_at, occurrence_key, state FROM executions WHERE job_id = ? AND fire_at >= ? AND fire_at < ? AND occurrence_key IN ('', ?) AND tenant_id = ?",
		int64(job), db.Millis(from), db.Millis(to), domain.BackfillKey, int64(tenant))
	return out, err
}
