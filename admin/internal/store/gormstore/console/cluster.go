package console

import (
	"context"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type clusterValueRow struct {
	Name  string `gorm:"column:name;primaryKey"`
	Value string `gorm:"column:value"`
}

func (clusterValueRow) TableName() string { return "cluster_values" }

type signingKeyRow struct {
	ID        string `gorm:"column:id;primaryKey"`
	PublicKey []byte `gorm:"column:public_key"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt int64  `gorm:"column:expires_at"`
}

func (signingKeyRow) TableName() string { return "signing_keys" }

func (s *Cluster) ClusterValue(ctx context.Context, key, initial string) (value string, err error) {
	err = s.RunRepeatable(ctx, "cluster value", func(t *db.Tx) error {
		row := clusterValueRow{Name: key, Value: initial}
		if err := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
		var stored clusterValueRow
		err := t.Gorm.Where("name = ?", key).Take(&stored).Error
		value = stored.Value
		return err
	})
	return value, err
}

func (s *Cluster) SetClusterValue(ctx context.Context, key, value string) error {
	return s.RunRepeatable(ctx, "set cluster value", func(t *db.Tx) error { return setClusterValue(t, key, value) })
}

func setClusterValue(t *db.Tx, key, value string) error {
	return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&clusterValueRow{Name: key, Value: value}).Error
}

func (s *Cluster) ConfirmClock(ctx context.Context) (now time.Time, err error) {
	err = s.RunRepeatable(ctx, "confirm clock", func(t *db.Tx) error {
		if now, err = t.Clock(); err != nil {
			return err
		}
		return setClusterValue(t, engine.ClockConfirmed, strconv.FormatInt(db.Millis(now), 10))
	})
	return now, err
}

// HoldClock keys the alert by the last time that was confirmed.
func (s *Cluster) HoldClock(ctx context.Context, jump time.Duration, alert domain.AlertEvent) error {
	id, err := s.NewID()
	if err != nil {
		return err
	}
	return s.RunRepeatable(ctx, "hold clock", func(t *db.Tx) error {
		var held clusterValueRow
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
		return record.InsertAlerts(t, []record.AlertEventRow{{
			ID: id, Kind: string(alert.Kind), Detail: record.Clip(alert.Detail, record.MessageSize), CreatedAt: at,
			DedupeKey: string(alert.Kind) + ":" + strconv.FormatInt(at, 10),
		}})
	})
}

func (s *Cluster) SaveSigningKey(ctx context.Context, k domain.SigningKey) error {
	return s.RunRepeatable(ctx, "save signing key", func(t *db.Tx) error {
		row := signingKeyRow{ID: k.ID, PublicKey: k.PublicKey, CreatedAt: db.Millis(k.CreatedAt), ExpiresAt: db.Millis(k.ExpiresAt)}
		return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	})
}

func (s *Cluster) ListSigningKeys(ctx context.Context) (keys []domain.SigningKey, err error) {
	err = s.Look(ctx, "list signing keys", func(ctx context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []signingKeyRow
		err := g.Where("expires_at > " + s.Dialect.ClockNow()).Order("created_at DESC, id").Find(&rows).Error
		keys = make([]domain.SigningKey, len(rows))
		for i, r := range rows {
			keys[i] = domain.SigningKey{ID: r.ID, PublicKey: r.PublicKey, CreatedAt: db.Instant(r.CreatedAt), ExpiresAt: db.Instant(r.ExpiresAt)}
		}
		return err
	})
	return keys, err
}
