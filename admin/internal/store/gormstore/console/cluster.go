package console

import (
	"context"
	"strconv"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type signingKeyRow struct {
	ID        string `gorm:"column:id;primaryKey"`
	PublicKey []byte `gorm:"column:public_key"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt int64  `gorm:"column:expires_at"`
}

func (signingKeyRow) TableName() string { return "signing_keys" }

func (s *Cluster) ClusterValue(ctx context.Context, key, initial string) (string, error) {
	return db.Value(ctx, s.RunRepeatable, "cluster value", func(t *db.Tx) (string, error) {
		row := record.ClusterValueRow{Name: key, Value: initial}
		if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return "", err
		}
		var stored record.ClusterValueRow
		err := t.Gorm.Where("name = ?", key).Take(&stored).Error
		return stored.Value, err
	})
}

func (s *Cluster) SetClusterValue(ctx context.Context, key, value string) error {
	return s.RunRepeatable(ctx, "set cluster value", func(t *db.Tx) error { return setClusterValue(t, key, value) })
}

func setClusterValue(t *db.Tx, key, value string) error {
	return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&record.ClusterValueRow{Name: key, Value: value}).Error
}

func (s *Cluster) ConfirmClock(ctx context.Context) (time.Time, error) {
	return db.Value(ctx, s.RunRepeatable, "confirm clock", func(t *db.Tx) (time.Time, error) {
		now, err := t.Clock()
		if err != nil {
			return now, err
		}
		return now, setClusterValue(t, engine.ClockConfirmed, strconv.FormatInt(db.Millis(now), 10))
	})
}

// HoldClock keys the alert by the last time that was confirmed.
func (s *Cluster) HoldClock(ctx context.Context, jump time.Duration, alert domain.AlertEvent) error {
	return s.RunRepeatable(ctx, "hold clock", func(t *db.Tx) error {
		var held record.ClusterValueRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("name = ?", domain.ClockHoldValue).Limit(1).Find(&held).Error; err != nil {
			return err
		}
		at := db.Millis(alert.CreatedAt)
		err := setClusterValue(t, domain.ClockHoldValue, strconv.FormatInt(jump.Milliseconds(), 10))
		if err == nil {
			err = setClusterValue(t, domain.ClockHeldAtValue, strconv.FormatInt(at, 10))
		}
		if err != nil || held.Value != "" { // it leapt again, or another node was quicker to tell
			return err
		}
		return engine.InsertEvents(t, []domain.AlertEvent{{
			Kind: alert.Kind, Detail: alert.Detail, CreatedAt: alert.CreatedAt, DedupeKey: string(alert.Kind) + ":" + strconv.FormatInt(at, 10),
		}}, alert.CreatedAt)
	})
}

func (s *Cluster) SaveSigningKey(ctx context.Context, k domain.SigningKey) error {
	return s.RunRepeatable(ctx, "save signing key", func(t *db.Tx) error {
		row := signingKeyRow{ID: k.ID, PublicKey: k.PublicKey, CreatedAt: db.Millis(k.CreatedAt), ExpiresAt: db.Millis(k.ExpiresAt)}
		return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	})
}

func (s *Cluster) ListSigningKeys(ctx context.Context) (keys []domain.SigningKey, err error) {
	rows, err := db.FindAll[signingKeyRow](ctx, s.DB, "list signing keys", "created_at DESC, id", "expires_at > "+s.Dialect.ClockNow())
	return domain.Collect(rows, func(r *signingKeyRow) domain.SigningKey {
		return domain.SigningKey{ID: r.ID, PublicKey: r.PublicKey, CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt)}
	}), err
}

// DoubtHistory keeps the farthest history that anybody knows.
func (s *Cluster) DoubtHistory(ctx context.Context, r domain.Rollback, alert domain.AlertEvent) error {
	err := s.RunRepeatable(ctx, "doubt history", func(t *db.Tx) error {
		_, doubted, err := t.History()
		if err != nil {
			return err
		}
		if doubted.Before(r.Seen) || doubted == (domain.Doubt{}) {
			doubted.History = r.Seen
			return setClusterValue(t, db.HistoryDoubt, doubted.String())
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Its key names the epoch: however many nodes find out, people hear once.
	alert.DedupeKey = string(alert.Kind) + ":" + strconv.FormatInt(r.Seen.Epoch, 10)
	return s.engine.RecordAlerts(ctx, []domain.AlertEvent{alert})
}

// AcceptHistory makes an epoch that is later than any that is known of.
func (s *Cluster) AcceptHistory(ctx context.Context) (accepted domain.History, err error) {
	accepted, err = db.Value(ctx, s.RunRepeatable, "accept history", func(t *db.Tx) (found domain.History, err error) {
		found, doubted, err := t.History()
		if err != nil {
			return found, err
		}
		held, is := s.Rollbacks.RolledBack()
		if !is && doubted == (domain.Doubt{}) {
			return found, domain.Errorf(domain.CodeConflict, "no node has found that the database lost anything")
		}
		found.Epoch = max(found.Epoch, doubted.Epoch, held.Seen.Epoch, s.Rollbacks.Marks().Known.Epoch) + 1
		if _, err := t.Exec(t.Ctx, "DELETE FROM cluster_values WHERE name = ?", db.HistoryDoubt); err != nil {
			return found, err
		}
		now, err := t.Clock()
		if err != nil {
			return found, err
		}
		if err := setClusterValue(t, domain.HistoryAcceptedValue, strconv.FormatInt(db.Millis(now), 10)); err != nil {
			return found, err
		}
		return found, setClusterValue(t, db.HistoryEpoch, strconv.FormatInt(found.Epoch, 10))
	})
	if err == nil {
		s.Rollbacks.Judge(s.Rollbacks.Marks(), accepted, domain.Doubt{}, 0)
	}
	return accepted, err
}
