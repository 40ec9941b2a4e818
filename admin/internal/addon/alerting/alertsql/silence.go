package alertsql

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type silenceRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Matcher   string `gorm:"column:matcher"`
	Reason    string `gorm:"column:reason"`
	StartsAt  int64  `gorm:"column:starts_at"`
	EndsAt    int64  `gorm:"column:ends_at"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	EndedBy   string `gorm:"column:ended_by"`
}

func (silenceRow) TableName() string { return "alert_silences" }

func (r *silenceRow) silence() (noun.AlertSilence, error) {
	match, err := decodeMatcher(r.Matcher)
	if err != nil {
		return noun.AlertSilence{}, fmt.Errorf("decode silence %d: %w", r.ID, err)
	}
	return noun.AlertSilence{
		ID: domain.SilenceID(r.ID), TenantID: domain.TenantID(r.TenantID), Match: match, Reason: r.Reason, StartsAt: db.Instant(r.StartsAt),
		EndsAt: db.Instant(r.EndsAt), CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy, EndedBy: r.EndedBy,
	}, nil
}

func (s *Alerts) CreateSilence(ctx context.Context, silence noun.AlertSilence) (noun.AlertSilence, error) {
	matcher, err := encodeMatcher(&silence.Match)
	if err != nil {
		return noun.AlertSilence{}, fmt.Errorf("encode silence: %w", err)
	}
	silence.CreatedAt, err = db.Value(ctx, s.Run, "create silence", func(t *db.Tx) (now time.Time, err error) {
		if now, err = t.Clock(); err != nil {
			return now, err
		}
		count, err := record.CountOfTenant(t, silence.TenantID, &silenceRow{}, "ends_at > ?", db.Millis(now))
		if err != nil {
			return now, err
		}
		if count >= noun.MaxAlertSilences {
			return now, domain.Errorf(domain.CodeConflict, "there are %d silences that are not over, which is the most; end one first", count)
		}
		t.Audited(domain.AuditObject{ID: silence.ID.String(), Name: silence.Reason, After: matcher})
		return now, t.Gorm.Create(&silenceRow{
			ID: int64(silence.ID), TenantID: int64(silence.TenantID), Matcher: matcher, Reason: record.Clip(silence.Reason, record.MessageSize),
			StartsAt: db.Millis(silence.StartsAt), EndsAt: db.Millis(silence.EndsAt), CreatedAt: db.Millis(now), CreatedBy: silence.CreatedBy,
		}).Error
	})
	if err != nil {
		return noun.AlertSilence{}, err
	}
	return silence, nil
}

func (s *Alerts) EndSilence(ctx context.Context, tenant domain.TenantID, id domain.SilenceID, by string) (noun.AlertSilence, error) {
	err := s.RunAt(ctx, "end silence", func(t *db.Tx, now time.Time) error {
		var was []silenceRow
		if err := t.Gorm.Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Find(&was).Error; err != nil {
			return err
		}
		for _, r := range was {
			t.Audited(domain.AuditObject{Name: r.Reason, Before: r.Matcher})
		}
		_, err := t.Exec(t.Ctx, "UPDATE alert_silences SET ends_at = ?, ended_by = ? WHERE id = ? AND tenant_id = ? AND ends_at > ?",
			db.Millis(now), by, int64(id), int64(tenant), db.Millis(now))
		return err
	})
	if err != nil {
		return noun.AlertSilence{}, err
	}
	return s.FindSilence(ctx, tenant, id)
}

func (s *Alerts) FindSilence(ctx context.Context, tenant domain.TenantID, id domain.SilenceID) (noun.AlertSilence, error) {
	row, err := db.FindOne[silenceRow](ctx, s.DB, "find silence", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return noun.AlertSilence{}, err
	}
	return row.silence()
}

func (s *Alerts) ListSilences(ctx context.Context, tenant domain.TenantID, endAfter time.Time) ([]noun.AlertSilence, error) {
	rows, err := db.FindPage[silenceRow](ctx, s.DB, "list silences", "ends_at", record.MaxPage*5, "tenant_id = ? AND ends_at > ?", int64(tenant), db.Millis(endAfter))
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, (*silenceRow).silence)
}
