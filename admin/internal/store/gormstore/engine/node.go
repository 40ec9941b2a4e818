package engine

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

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

func (s *Nodes) registerNode(ctx context.Context, n domain.Node, ttl time.Duration) (nodeRow, error) {
	return db.Value(ctx, s.RunRepeatable, "register node", func(t *db.Tx) (row nodeRow, err error) {
		now, err := t.Clock()
		if err != nil {
			return row, err
		}
		var rows []nodeRow
		if err := t.Gorm.Clauses(t.Locking()...).Order("id").Find(&rows).Error; err != nil {
			return row, err
		}
		row = nodeRow{
			BootID: n.BootID, Name: n.Name, ExecutorAddress: n.ExecutorAddress, Version: n.Version,
			StartedAt: db.Millis(n.StartedAt), HeartbeatAt: db.Millis(now), Sessions: int64(n.Sessions),
			ZoneSource: record.Clip(n.Zones.Source, 190), ZoneVersion: record.Clip(n.Zones.Version, 64), ZoneDigest: n.Zones.Digest,
		}
		if row.StartedAt == 0 {
			row.StartedAt = db.Millis(now)
		}
		number, exists, err := chooseNumber(rows, n, now, ttl)
		if err != nil {
			return row, err
		}
		row.ID = number
		if exists {
			return row, t.Gorm.Model(&nodeRow{}).Where("id = ?", number).Select("*").Omit("id").Updates(&row).Error
		}
		return row, t.Gorm.Create(&row).Error
	})
}

func chooseNumber(rows []nodeRow, n domain.Node, now time.Time, ttl time.Duration) (number int64, exists bool, err error) {
	first, last := cmp.Or(int64(n.Numbers.First), 1), cmp.Or(int64(n.Numbers.Last), domain.MaxNodeID)
	used := make(map[int64]bool, len(rows))
	var stale *nodeRow
	for i, r := range rows {
		if r.BootID == n.BootID {
			return r.ID, true, nil
		}
		used[r.ID] = true
		if r.ID >= first && r.ID <= last && !r.alive(now, ttl) && (stale == nil || r.HeartbeatAt < stale.HeartbeatAt) {
			stale = &rows[i]
		}
	}
	for number = first; number <= last; number++ {
		if !used[number] {
			return number, false, nil
		}
	}
	if stale == nil {
		return 0, false, domain.Errorf(domain.CodeUnavailable, "all %d node numbers are taken by living nodes", last-first+1)
	}
	return stale.ID, true, nil
}

func (s *Nodes) HeartbeatNode(ctx context.Context, n domain.Node, ttl time.Duration) (now time.Time, live []domain.Node, err error) {
	type beat struct {
		now  time.Time
		live []domain.Node
	}
	did, err := db.Value(ctx, s.RunRepeatable, "node heartbeat", func(t *db.Tx) (b beat, err error) {
		if b.now, err = t.Clock(); err != nil {
			return b, err
		}
		found, err := t.Exec(t.Ctx, "UPDATE nodes SET heartbeat_at = ?, sessions = ? WHERE id = ? AND boot_id = ? AND gone_at = 0",
			db.Millis(b.now), n.Sessions, int64(n.ID), n.BootID)
		if err != nil {
			return b, err
		}
		if found == 0 {
			return b, domain.Errorf(domain.CodeNotFound, "node %s was silent for too long, its number was taken over", n.ID)
		}
		b.live, err = liveNodes(t, b.now, ttl)
		return b, err
	})
	return did.now, did.live, err
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

// checkClock refuses a time of the database that is later than the caller's limit.
func checkClock(now time.Time, latest func() time.Time) error {
	if latest == nil {
		return nil
	}
	if most := latest(); !most.IsZero() && now.After(most) {
		return domain.Errorf(domain.CodeClockJump, "the database says %s, which is later than is believed (%s)",
			now.Format(time.RFC3339Nano), most.Format(time.RFC3339Nano))
	}
	return nil
}

// nodesReturned is the cluster value that ends an absence of all nodes, in milliseconds.
const nodesReturned = "nodes_returned"

// signsOfLife reads those of the nodes, and the clock. A node that has left has the instant
// of that, negative.
func signsOfLife(t *db.Tx) (signs domain.SignsOfLife, now time.Time, err error) {
	var at, seen, returned int64
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&at, &seen, &returned) },
		"SELECT "+t.Dialect.Clock()+", COALESCE((SELECT MAX(ABS(renewed_at)) FROM node_states), 0),"+
			" COALESCE((SELECT CAST(value AS SIGNED) FROM cluster_values WHERE name = '"+nodesReturned+"'), 0)")
	if err != nil {
		return signs, now, fmt.Errorf("read signs of life: %w", err)
	}
	return domain.SignsOfLife{Seen: db.Instant(seen), Returned: db.Instant(returned)}, db.Instant(at), nil
}

// noteReturn comes before the sign of life of a node in its transaction. The first node
// that comes back ends the absence for all.
func noteReturn(t *db.Tx) error {
	signs, now, err := signsOfLife(t)
	if err != nil || !signs.Absent(now) {
		return err
	}
	_, err = t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, ?)"+t.Dialect.OnDuplicate("name")+" value = "+t.Dialect.Inserted("value"),
		nodesReturned, fmt.Sprint(db.Millis(now)))
	return err
}
