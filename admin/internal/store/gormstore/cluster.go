package gormstore

import (
	"context"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

type clusterValueRow struct {
	Name  string `gorm:"column:name;primaryKey"`
	Value string `gorm:"column:value"`
}

func (clusterValueRow) TableName() string { return "cluster_values" }

type nodeRow struct {
	ID              int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	BootID          string `gorm:"column:boot_id"`
	Name            string `gorm:"column:name"`
	ExecutorAddress string `gorm:"column:executor_address"`
	Version         string `gorm:"column:version"`
	StartedAt       int64  `gorm:"column:started_at"`
	HeartbeatAt     int64  `gorm:"column:heartbeat_at"`
	Sessions        int64  `gorm:"column:sessions"`
	GoneAt          int64  `gorm:"column:gone_at"`
	ZoneSource      string `gorm:"column:zone_source"`
	ZoneVersion     string `gorm:"column:zone_version"`
	ZoneDigest      string `gorm:"column:zone_digest"`
}

func (nodeRow) TableName() string { return "nodes" }

func (r nodeRow) node() domain.Node {
	return domain.Node{
		ID: domain.NodeID(r.ID), BootID: r.BootID, Name: r.Name, ExecutorAddress: r.ExecutorAddress, Version: r.Version,
		StartedAt: instant(r.StartedAt), HeartbeatAt: instant(r.HeartbeatAt), Sessions: int(r.Sessions),
		Zones: domain.ZoneRules{Source: r.ZoneSource, Version: r.ZoneVersion, Digest: r.ZoneDigest},
	}
}

func (r nodeRow) alive(now time.Time, ttl time.Duration) bool {
	return r.GoneAt == 0 && instant(r.HeartbeatAt).Add(ttl).After(now)
}

type signingKeyRow struct {
	ID        string `gorm:"column:id;primaryKey"`
	PublicKey []byte `gorm:"column:public_key"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt int64  `gorm:"column:expires_at"`
}

func (signingKeyRow) TableName() string { return "signing_keys" }

func (s *DB) Now(ctx context.Context) (now time.Time, err error) {
	err = s.look(ctx, "read database clock", func(ctx context.Context, _ querier, _ *gorm.DB) error {
		var ms int64
		err := s.read.QueryRowContext(ctx, "SELECT "+s.d.clock()).Scan(&ms)
		if err == nil {
			s.clock.learn(ms)
		}
		now = instant(ms)
		return err
	})
	return now, err
}

// RegisterNode prefers a number that was never used, then the one that has
// been silent for longest: ids of the old and the new holder must not meet,
// even when their clocks differ. Two nodes that choose the same number collide
// on the row, and the loser chooses again.
func (s *Nodes) RegisterNode(ctx context.Context, n domain.Node, ttl time.Duration) (domain.Node, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	for {
		row, err := s.registerNode(ctx, n, ttl)
		if err == nil {
			return row.node(), nil
		}
		if !domain.Is(err, domain.CodeConflict) || !sleep(ctx, txBackoff) {
			return domain.Node{}, err
		}
	}
}

func (s *Nodes) registerNode(ctx context.Context, n domain.Node, ttl time.Duration) (row nodeRow, err error) {
	err = s.runRepeatable(ctx, "register node", func(t *txn) error {
		now, err := t.clock()
		if err != nil {
			return err
		}
		var rows []nodeRow
		if err := t.db.Clauses(t.locking()...).Order("id").Find(&rows).Error; err != nil {
			return err
		}
		row = nodeRow{
			BootID: n.BootID, Name: n.Name, ExecutorAddress: n.ExecutorAddress, Version: n.Version,
			StartedAt: millis(n.StartedAt), HeartbeatAt: millis(now), Sessions: int64(n.Sessions),
			ZoneSource: clip(n.Zones.Source, 190), ZoneVersion: clip(n.Zones.Version, 64), ZoneDigest: n.Zones.Digest,
		}
		if row.StartedAt == 0 {
			row.StartedAt = millis(now)
		}
		number, exists, err := chooseNumber(rows, n.BootID, now, ttl)
		if err != nil {
			return err
		}
		row.ID = number
		if exists {
			return t.db.Model(&nodeRow{}).Where("id = ?", number).Select("*").Omit("id").Updates(&row).Error
		}
		return t.db.Create(&row).Error
	})
	return row, err
}

func chooseNumber(rows []nodeRow, bootID string, now time.Time, ttl time.Duration) (number int64, exists bool, err error) {
	used := make(map[int64]bool, len(rows))
	var stale *nodeRow
	for i, r := range rows {
		if r.BootID == bootID {
			return r.ID, true, nil
		}
		used[r.ID] = true
		if !r.alive(now, ttl) && (stale == nil || r.HeartbeatAt < stale.HeartbeatAt) {
			stale = &rows[i]
		}
	}
	for number = 1; number <= domain.MaxNodeID; number++ {
		if !used[number] {
			return number, false, nil
		}
	}
	if stale == nil {
		return 0, false, domain.Errorf(domain.CodeUnavailable, "all %d node numbers are taken by living nodes", domain.MaxNodeID)
	}
	return stale.ID, true, nil
}

func (s *Nodes) HeartbeatNode(ctx context.Context, n domain.Node, ttl time.Duration) (now time.Time, live []domain.Node, err error) {
	err = s.runRepeatable(ctx, "node heartbeat", func(t *txn) error {
		if now, err = t.clock(); err != nil {
			return err
		}
		found, err := t.exec(t.ctx, "UPDATE nodes SET heartbeat_at = ?, sessions = ? WHERE id = ? AND boot_id = ? AND gone_at = 0",
			millis(now), n.Sessions, int64(n.ID), n.BootID)
		if err != nil {
			return err
		}
		if found == 0 {
			return domain.Errorf(domain.CodeNotFound, "node %s was silent for too long, its number was taken over", n.ID)
		}
		live, err = liveNodes(t, now, ttl)
		return err
	})
	return now, live, err
}

func liveNodes(t *txn, now time.Time, ttl time.Duration) ([]domain.Node, error) {
	var rows []nodeRow
	if err := t.db.Where("gone_at = 0 AND heartbeat_at > ?", millis(now.Add(-ttl))).Order("id").Find(&rows).Error; err != nil {
		return nil, err
	}
	live := domain.Collect(rows, (*nodeRow).node)
	return live, nil
}

func (s *Nodes) RemoveNode(ctx context.Context, id domain.NodeID, bootID string) error {
	return s.runRepeatable(ctx, "remove node", func(t *txn) error {
		_, err := t.exec(t.ctx, "UPDATE nodes SET gone_at = "+t.d.clock()+" WHERE id = ? AND boot_id = ? AND gone_at = 0", int64(id), bootID)
		return err
	})
}

func (s *Cluster) ClusterValue(ctx context.Context, key, initial string) (value string, err error) {
	err = s.runRepeatable(ctx, "cluster value", func(t *txn) error {
		row := clusterValueRow{Name: key, Value: initial}
		if err := t.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err != nil {
			return err
		}
		var stored clusterValueRow
		err := t.db.Where("name = ?", key).Take(&stored).Error
		value = stored.Value
		return err
	})
	return value, err
}

func (s *Cluster) SetClusterValue(ctx context.Context, key, value string) error {
	return s.runRepeatable(ctx, "set cluster value", func(t *txn) error { return setClusterValue(t, key, value) })
}

func setClusterValue(t *txn, key, value string) error {
	return t.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&clusterValueRow{Name: key, Value: value}).Error
}

// clockConfirmed is the cluster value that ConfirmClock writes, in milliseconds.
const clockConfirmed = "clock_confirmed"

func (s *Cluster) ConfirmClock(ctx context.Context) (now time.Time, err error) {
	err = s.runRepeatable(ctx, "confirm clock", func(t *txn) error {
		if now, err = t.clock(); err != nil {
			return err
		}
		return setClusterValue(t, clockConfirmed, strconv.FormatInt(millis(now), 10))
	})
	return now, err
}

// HoldClock keys the alert by the last time that was believed.
func (s *Cluster) HoldClock(ctx context.Context, jump time.Duration, alert domain.AlertEvent) error {
	id, err := s.id()
	if err != nil {
		return err
	}
	return s.runRepeatable(ctx, "hold clock", func(t *txn) error {
		var held clusterValueRow
		if err := t.db.Clauses(t.locking()...).Where("name = ?", domain.ClockHoldValue).Limit(1).Find(&held).Error; err != nil {
			return err
		}
		at := millis(alert.CreatedAt)
		err := setClusterValue(t, domain.ClockHoldValue, strconv.FormatInt(jump.Milliseconds(), 10))
		if err == nil {
			err = setClusterValue(t, domain.ClockHeldAtValue, strconv.FormatInt(at, 10))
		}
		if err != nil || held.Value != "" { // it leapt again, or another node was quicker to tell
			return err
		}
		return insertAlerts(t, []alertEventRow{{
			ID: id, Kind: string(alert.Kind), Detail: clip(alert.Detail, messageSize), CreatedAt: at,
			DedupeKey: string(alert.Kind) + ":" + strconv.FormatInt(at, 10),
		}})
	})
}

func (s *Cluster) SaveSigningKey(ctx context.Context, k domain.SigningKey) error {
	return s.runRepeatable(ctx, "save signing key", func(t *txn) error {
		row := signingKeyRow{ID: k.ID, PublicKey: k.PublicKey, CreatedAt: millis(k.CreatedAt), ExpiresAt: millis(k.ExpiresAt)}
		return t.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
	})
}

func (s *Cluster) ListSigningKeys(ctx context.Context) (keys []domain.SigningKey, err error) {
	err = s.look(ctx, "list signing keys", func(ctx context.Context, _ querier, g *gorm.DB) error {
		var rows []signingKeyRow
		err := g.Where("expires_at > " + s.d.clockNow()).Order("created_at DESC, id").Find(&rows).Error
		keys = make([]domain.SigningKey, len(rows))
		for i, r := range rows {
			keys[i] = domain.SigningKey{ID: r.ID, PublicKey: r.PublicKey, CreatedAt: instant(r.CreatedAt), ExpiresAt: instant(r.ExpiresAt)}
		}
		return err
	})
	return keys, err
}

// locking is gorm's FOR UPDATE; SQLite's dialect leaves it out by itself.
func (t *txn) locking() []clause.Expression {
	return []clause.Expression{clause.Locking{Strength: "UPDATE"}}
}

// skipLocked is gorm's FOR UPDATE SKIP LOCKED.
func (t *txn) skipLocked() []clause.Expression {
	return []clause.Expression{clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}}
}

// believe refuses a time that the caller does not believe of the database.
func believe(now time.Time, latest func() time.Time) error {
	if latest == nil {
		return nil
	}
	if most := latest(); !most.IsZero() && now.After(most) {
		return domain.Errorf(domain.CodeClockJump, "the database says %s, which is later than is believed (%s)",
			now.Format(time.RFC3339Nano), most.Format(time.RFC3339Nano))
	}
	return nil
}
