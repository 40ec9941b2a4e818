package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type runPurgeRow struct {
	ID         int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID   int64  `gorm:"column:tenant_id"`
	JobID      int64  `gorm:"column:job_id"`
	BeforeAt   int64  `gorm:"column:before_at"`
	AfterJob   int64  `gorm:"column:after_job"`
	Deleted    int64  `gorm:"column:deleted"`
	Cancelled  bool   `gorm:"column:cancelled"`
	CreatedBy  string `gorm:"column:created_by"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false"`
	FinishedAt int64  `gorm:"column:finished_at"`
	WakeAt     *int64 `gorm:"column:wake_at"`
}

func (runPurgeRow) TableName() string { return "run_purges" }

func (r *runPurgeRow) purge() domain.RunPurge {
	return domain.RunPurge{
		ID: domain.RunPurgeID(r.ID), TenantID: domain.TenantID(r.TenantID), JobID: domain.JobID(r.JobID), Before: db.Instant(r.BeforeAt),
		Deleted: r.Deleted, Cancelled: r.Cancelled, CreatedBy: r.CreatedBy, CreatedAt: db.Instant(r.CreatedAt), FinishedAt: db.Instant(r.FinishedAt),
	}
}

// cut is what goes of a job. What ended just now stays.
func (r *runPurgeRow) cut(job domain.JobID, now time.Time) prune {
	before := db.Instant(r.BeforeAt)
	ended := now.Add(-domain.RetentionGrace)
	if before.Before(ended) {
		ended = before
	}
	return prune{domain.TenantID(r.TenantID), job, before, ended}
}

// jobsToPurge are those that a clean-up is not done with.
func (s *RunPurges) jobsToPurge(ctx context.Context, r *runPurgeRow) (ids []domain.JobID, err error) {
	if r.JobID != 0 {
		if r.AfterJob >= r.JobID {
			return nil, nil
		}
		return []domain.JobID{domain.JobID(r.JobID)}, nil
	}
	ids, err = s.jobsOf(ctx, domain.TenantID(r.TenantID), domain.JobID(r.AfterJob))
	slices.Sort(ids)
	return ids, err
}

// CountRunPurge reads what a clean-up would read.
func (s *RunPurges) CountRunPurge(ctx context.Context, p domain.RunPurge, most int) (n int64, err error) {
	now, err := s.clock(ctx)
	if err != nil {
		return 0, err
	}
	r := &runPurgeRow{TenantID: int64(p.TenantID), JobID: int64(p.JobID), BeforeAt: db.Millis(p.Before)}
	jobs, err := s.jobsToPurge(ctx, r)
	for _, job := range jobs {
		var at pruneAt
		for more := err == nil; more && n < int64(most); {
			var list []prunable
			if list, at, more, err = s.nextPrunable(ctx, r.cut(job, now), at); err != nil {
				return n, err
			}
			n += int64(len(list))
		}
	}
	return min(n, int64(most)), err
}

// CreateRunPurge implements store.RunPurges.
func (s *RunPurges) CreateRunPurge(ctx context.Context, p domain.RunPurge) (domain.RunPurge, error) {
	err := s.RunRepeatable(ctx, "create clean-up", func(t *db.Tx) error {
		found, err := record.TenantExists(t, p.TenantID, t.Dialect.ForUpdate())
		if err == nil && !found {
			err = db.NotFound("tenant", p.TenantID)
		}
		if err != nil {
			return err
		}
		if p.JobID != 0 {
			if err := retentionSubject(t, p.TenantID, p.JobID); err != nil {
				return err
			}
		}
		var open int64
		if err := t.Gorm.Model(&runPurgeRow{}).Where("tenant_id = ? AND wake_at IS NOT NULL AND id <> ?", int64(p.TenantID), int64(p.ID)).Count(&open).Error; err != nil {
			return err
		}
		if open >= domain.MaxRunPurges {
			return domain.Errorf(domain.CodeQuotaExceeded, "%d clean-ups of the tenant are under way, which is the most; wait until one is done, or cancel one", open)
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		at := db.Millis(now)
		t.AuditedChange(domain.AuditObject{ID: p.ID.String()}, nil, db.Facts{"job": p.JobID, "before": p.Before})
		return t.Gorm.Create(&runPurgeRow{
			ID: int64(p.ID), TenantID: int64(p.TenantID), JobID: int64(p.JobID), BeforeAt: db.Millis(p.Before),
			CreatedBy: record.Clip(p.CreatedBy, record.NameSize), CreatedAt: at, WakeAt: &at,
		}).Error
	})
	if err != nil && !domain.Is(err, domain.CodeConflict) { // it was stored by an earlier try
		return domain.RunPurge{}, err
	}
	return s.FindRunPurge(ctx, p.TenantID, p.ID)
}

func (s *RunPurges) FindRunPurge(ctx context.Context, tenant domain.TenantID, id domain.RunPurgeID) (domain.RunPurge, error) {
	r, err := db.FindOne[runPurgeRow](ctx, s.DB, "find clean-up", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	return r.purge(), err
}

// ListRunPurges implements store.RunPurges.
func (s *RunPurges) ListRunPurges(ctx context.Context, tenant domain.TenantID, before domain.RunPurgeID, limit int) (list []domain.RunPurge, err error) {
	rows, err := db.FindBy[runPurgeRow](ctx, s.DB, "list clean-ups", func(g *gorm.DB) *gorm.DB {
		g = g.Where("tenant_id = ?", int64(tenant))
		if before != 0 {
			g = g.Where("id < ?", int64(before))
		}
		return g.Order("id DESC").Limit(limit)
	})
	return domain.Collect(rows, (*runPurgeRow).purge), err
}

// CancelRunPurge implements store.RunPurges.
func (s *RunPurges) CancelRunPurge(ctx context.Context, tenant domain.TenantID, id domain.RunPurgeID) (domain.RunPurge, error) {
	err := s.RunRepeatable(ctx, "cancel clean-up", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE run_purges SET cancelled = 1, wake_at = NULL, finished_at = "+t.Dialect.ClockNow()+" WHERE id = ? AND tenant_id = ? AND wake_at IS NOT NULL", int64(id), int64(tenant))
		return err
	})
	if err != nil {
		return domain.RunPurge{}, err
	}
	p, err := s.FindRunPurge(ctx, tenant, id)
	if err == nil && !p.Cancelled {
		err = domain.Errorf(domain.CodeConflict, "the clean-up is done")
	}
	return p, err
}

const (
	// purgeHold is for how long a node has a clean-up for itself.
	purgeHold = 15 * time.Second
	// purgeTurn bounds how long one clean-up keeps the others waiting.
	purgeTurn = 2 * time.Second
	// purgePutOff is for how long one that failed is left alone.
	purgePutOff = time.Minute
)

// DriveRunPurges works on those that have to be driven on, oldest first.
func (s *RunPurges) DriveRunPurges(ctx context.Context, limit int) error {
	ids, err := db.LookColumn[int64](ctx, s.DB, "find clean-ups",
		"SELECT id FROM run_purges"+s.Dialect.ByIndex("ix_run_purges_wake")+" WHERE wake_at <= "+s.Dialect.ClockNow()+fmt.Sprintf(" ORDER BY wake_at LIMIT %d", limit))
	var failed error
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		if err := s.drivePurge(ctx, id); err != nil && !errors.Is(err, errPurgeOver) {
			failed = errors.Join(failed, err)
			if ctx.Err() == nil {
				failed = errors.Join(failed, s.wakePurge(ctx, id, purgePutOff))
			}
		}
	}
	return errors.Join(err, failed)
}

// errPurgeOver ends a clean-up's turn: it was cancelled, or its time is up.
var errPurgeOver = errors.New("the clean-up's turn is over")

// drivePurge deletes for as long as a turn takes.
func (s *RunPurges) drivePurge(ctx context.Context, id int64) error {
	r, now, err := s.takePurge(ctx, id)
	if err != nil || r == nil {
		return err
	}
	jobs, err := s.jobsToPurge(ctx, r)
	if err != nil {
		return err
	}
	until := time.Now().Add(purgeTurn)
	goOn := func() error {
		if time.Now().After(until) {
			return errPurgeOver
		}
		return ctx.Err()
	}
	for _, job := range jobs {
		_, _, err := s.pruneRuns(ctx, r.cut(job, now), runsAtOnce, goOn, func(t *db.Tx, deleted int64) error {
			found, err := t.Exec(t.Ctx, "UPDATE run_purges SET deleted = deleted + ?, wake_at = "+t.Dialect.ClockNow()+" + ? WHERE id = ? AND wake_at IS NOT NULL", deleted, purgeHold.Milliseconds(), id)
			if err == nil && found == 0 {
				err = errPurgeOver
			}
			return err
		})
		if err != nil {
			return errors.Join(err, s.leavePurge(ctx, id, r.AfterJob))
		}
		r.AfterJob = int64(job)
	}
	return s.RunRepeatable(ctx, "end clean-up", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE run_purges SET wake_at = NULL, finished_at = "+t.Dialect.ClockNow()+" WHERE id = ? AND wake_at IS NOT NULL", id)
		return err
	})
}

// runsAtOnce bounds one transaction.
const runsAtOnce = 500

// takePurge takes a clean-up for some seconds; nil: another node has it, or it is done.
func (s *RunPurges) takePurge(ctx context.Context, id int64) (row *runPurgeRow, now time.Time, err error) {
	type taken struct {
		row *runPurgeRow
		now time.Time
	}
	got, err := db.Value(ctx, s.RunRepeatable, "take clean-up", func(t *db.Tx) (taken, error) {
		var rows []runPurgeRow
		if err := t.Gorm.Clauses(t.SkipLocked()...).Where("id = ? AND wake_at <= "+t.Dialect.ClockNow(), id).Find(&rows).Error; err != nil || len(rows) == 0 {
			return taken{}, err
		}
		now, err := t.Clock()
		if err != nil {
			return taken{}, err
		}
		_, err = t.Exec(t.Ctx, "UPDATE run_purges SET wake_at = ? WHERE id = ?", db.Millis(now.Add(purgeHold)), id)
		return taken{&rows[0], now}, err
	})
	return got.row, got.now, err
}

// leavePurge lets others go on behind a job.
func (s *RunPurges) leavePurge(ctx context.Context, id, job int64) error {
	return s.RunRepeatable(ctx, "leave clean-up", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE run_purges SET after_job = CASE WHEN after_job < ? THEN ? ELSE after_job END, wake_at = "+t.Dialect.ClockNow()+" WHERE id = ? AND wake_at IS NOT NULL", job, job, id)
		return err
	})
}

func (s *RunPurges) wakePurge(ctx context.Context, id int64, after time.Duration) error {
	return s.RunRepeatable(ctx, "put off clean-up", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE run_purges SET wake_at = "+t.Dialect.ClockNow()+" + ? WHERE id = ? AND wake_at IS NOT NULL", after.Milliseconds(), id)
		return err
	})
}

// DeleteRunPurgesBefore goes along the primary key.
func (s *Retention) DeleteRunPurgesBefore(ctx context.Context, before time.Time, limit int) (int64, error) {
	return db.Value(ctx, s.RunRepeatable, "delete old clean-ups", func(t *db.Tx) (int64, error) {
		purges, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("run_purges", "id < ? AND wake_at IS NULL"), domain.IDFloor(before), int64(limit))
		if err != nil || purges >= int64(limit) {
			return purges, err
		}
		backfills, err := t.Exec(t.Ctx, t.Dialect.DeleteBounded("backfills", fmt.Sprintf("id < %d AND wake_at IS NULL AND finished_at < ?", domain.IDFloor(before))),
			db.Millis(before), int64(limit)-purges)
		return purges + backfills, err
	})
}
