package gormstore

import (
	"context"
	"strconv"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
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
		StartedAt: db.Instant(r.StartedAt), HeartbeatAt: db.Instant(r.HeartbeatAt), Sessions: int(r.Sessions),
		Zones: domain.ZoneRules{Source: r.ZoneSource, Version: r.ZoneVersion, Digest: r.ZoneDigest},
	}
}

func (r nodeRow) alive(now time.Time, ttl time.Duration) bool {
	return r.GoneAt == 0 && db.Instant(r.HeartbeatAt).Add(ttl).After(now)
}

type signingKeyRow struct {
	ID        string `gorm:"column:id;primaryKey"`
	PublicKey []byte `gorm:"column:public_key"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	ExpiresAt int64  `gorm:"column:expires_at"`
}

func (signingKeyRow) TableName() string { return "signing_keys" }

// RegisterNode prefers a number that was never used, then the one that has
// been silent for longest: ids of the old and the new holder must not meet,
// even when their clocks differ. Two nodes that choose the same number collide
// on the row, and the loser chooses again.
func (s *Nodes) RegisterNode(ctx context.Context, n domain.Node, ttl time.Duration) (domain.Node, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	for {
		row, err := s.registerNode(ctx, n, ttl)
		if err == nil {
			return row.node(), nil
		}
		if !domain.Is(err, domain.CodeConflict) || !db.Sleep(ctx, db.TxBackoff) {
			return domain.Node{}, err
		}
	}
}

func (s *Nodes) registerNode(ctx context.Context, n domain.Node, ttl time.Duration) (row nodeRow, err error) {
	err = s.RunRepeatable(ctx, "register node", func(t *db.Tx) error {
		now, err := t.Clock()
		if err != nil {
			return err
		}
		var rows []nodeRow
		if err := t.Gorm.Clauses(t.Locking()...).Order("id").Find(&rows).Error; err != nil {
			return err
		}
		row = nodeRow{
			BootID: n.BootID, Name: n.Name, ExecutorAddress: n.ExecutorAddress, Version: n.Version,
			StartedAt: db.Millis(n.StartedAt), HeartbeatAt: db.Millis(now), Sessions: int64(n.Sessions),
			ZoneSource: clip(n.Zones.Source, 190), ZoneVersion: clip(n.Zones.Version, 64), ZoneDigest: n.Zones.Digest,
		}
		if row.StartedAt == 0 {
			row.StartedAt = db.Millis(now)
		}
		number, exists, err := chooseNumber(rows, n.BootID, now, ttl)
		if err != nil {
			return err
		}
		row.ID = number
		if exists {
			return t.Gorm.Model(&nodeRow{}).Where("id = ?", number).Select("*").Omit("id").Updates(&row).Error
		}
		return t.Gorm.Create(&row).Error
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
	err = s.RunRepeatable(ctx, "node heartbeat", func(t *db.Tx) error {
		if now, err = t.Clock(); err != nil {
			return err
		}
		found, err := t.Exec(t.Ctx, "UPDATE nodes SET heartbeat_at = ?, sessions = ? WHERE id = ? AND boot_id = ? AND gone_at = 0",
			db.Millis(now), n.Sessions, int64(n.ID), n.BootID)
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

func liveNodes(t *db.Tx, now time.Time, ttl time.Duration) ([]domain.Node, error) {
	var rows []nodeRow
	if err := t.Gorm.Where("gone_at = 0 AND heartbeat_at > ?", db.Millis(now.Add(-ttl))).Order("id").Find(&rows).Error; err != nil {
		return nil, err
	}
	live := domain.Collect(rows, (*nodeRow).node)
	return live, nil
}

func (s *Nodes) RemoveNode(ctx context.Context, id domain.NodeID, bootID string) error {
	return s.RunRepeatable(ctx, "remove node", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE nodes SET gone_at = "+t.Dialect.Clock()+" WHERE id = ? AND boot_id = ? AND gone_at = 0", int64(id), bootID)
		return err
	})
}

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

// clockConfirmed is the cluster value that ConfirmClock writes, in milliseconds.
const clockConfirmed = "clock_confirmed"

func (s *Cluster) ConfirmClock(ctx context.Context) (now time.Time, err error) {
	err = s.RunRepeatable(ctx, "confirm clock", func(t *db.Tx) error {
		if now, err = t.Clock(); err != nil {
			return err
		}
		return setClusterValue(t, clockConfirmed, strconv.FormatInt(db.Millis(now), 10))
	})
	return now, err
}

// HoldClock keys the alert by the last time that was believed.
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
		return insertAlerts(t, []alertEventRow{{
			ID: id, Kind: string(alert.Kind), Detail: clip(alert.Detail, messageSize), CreatedAt: at,
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

// DoubtHistory keeps the farthest history that anybody knows.
func (s *Cluster) DoubtHistory(ctx context.Context, r domain.Rollback, alert domain.AlertEvent) error {
	err := s.RunRepeatable(ctx, "doubt history", func(t *db.Tx) error {
		_, doubted, err := t.History()
		if err != nil {
			return err
		}
		if doubted.Before(r.Seen) || doubted == (domain.History{}) {
			return setClusterValue(t, db.HistoryDoubt, r.Seen.String())
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
	err = s.RunRepeatable(ctx, "accept history", func(t *db.Tx) error {
		found, doubted, err := t.History()
		if err != nil {
			return err
		}
		held, is := s.Rollbacks.RolledBack()
		if !is && doubted == (domain.History{}) {
			return domain.Errorf(domain.CodeConflict, "no node has found that the database lost anything")
		}
		found.Epoch = max(found.Epoch, doubted.Epoch, held.Seen.Epoch, s.Rollbacks.Marks().Known.Epoch) + 1
		accepted = found
		if _, err := t.Exec(t.Ctx, "DELETE FROM cluster_values WHERE name = ?", db.HistoryDoubt); err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		if err := setClusterValue(t, domain.HistoryAcceptedValue, strconv.FormatInt(db.Millis(now), 10)); err != nil {
			return err
		}
		return setClusterValue(t, db.HistoryEpoch, strconv.FormatInt(found.Epoch, 10))
	})
	if err == nil {
		s.Rollbacks.Judge(s.Rollbacks.Marks(), accepted, domain.History{}, 0)
	}
	return accepted, err
}
