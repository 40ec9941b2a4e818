package console

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// DrainInstance implements store.Executors.
func (s *Executors) DrainInstance(ctx context.Context, p store.DrainInstanceParams) (domain.Instance, error) {
	row, err := db.Value(ctx, s.RunRepeatable, "drain instance", func(t *db.Tx) (row record.InstanceRow, err error) {
		now, err := t.Clock()
		if err != nil {
			return row, err
		}
		found := t.Gorm.Clauses(t.Locking()...).Where("id = ? AND tenant_id = ?", int64(p.ID), int64(p.Tenant)).Limit(1).Find(&row)
		switch {
		case found.Error != nil:
			return row, found.Error
		case found.RowsAffected == 0:
			return row, db.NotFound("instance", p.ID)
		case row.GoneAt > 0:
			return row, domain.Errorf(domain.CodeConflict, "the instance %q has gone", row.Name)
		case p.Undo:
			row.DrainedAt, row.DrainedBy, row.Draining, row.DrainingAt = 0, "", 0, 0 // its next heartbeat says whether it drains by itself
		case row.DrainedAt == 0:
			row.DrainedAt, row.DrainedBy, row.Draining = db.Millis(now), record.Clip(p.By, record.NameSize), 1
			if row.DrainingAt == 0 {
				row.DrainingAt = row.DrainedAt
			}
		}
		_, err = t.Exec(t.Ctx, "UPDATE instances SET drained_at = ?, drained_by = ?, draining = ?, draining_at = ? WHERE id = ?",
			row.DrainedAt, row.DrainedBy, row.Draining, row.DrainingAt, row.ID)
		return row, err
	})
	if err != nil {
		return domain.Instance{}, err
	}
	return row.Instance(), nil
}

// maxConnected bounds what ListConnected returns.
const maxConnected = 10_000

func (s *Executors) ListConnected(ctx context.Context) ([]domain.InstanceID, error) {
	return db.LookColumn[domain.InstanceID](ctx, s.DB, "list connected instances",
		fmt.Sprintf("SELECT i.id FROM instances AS i%s JOIN executors AS x ON x.id = i.executor_id AND x.built_in = 0"+
			" WHERE i.gone_at = 0 AND i.lease_until > %s AND i.parked = 0 AND i.draining = 0 AND i.drained_at = 0 LIMIT %d", s.Dialect.ByIndex("ix_instances_lease"), s.Dialect.Clock(), maxConnected))
}

// maxLost bounds how many lost instances are looked at.
const maxLost = 1000

func (s *Executors) ListLostInstances(ctx context.Context) (out []store.LostInstances, err error) {
	err = s.Look(ctx, "list lost instances", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		at := map[domain.ExecutorID]int{}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var of store.LostInstances
			var id domain.InstanceID
			var name, host string
			var slots int
			var gone int64
			if err := rows.Scan(&id, &of.Tenant, &of.Executor, &of.Name, &name, &host, &slots, &gone); err != nil {
				return err
			}
			n, known := at[of.Executor]
			if !known {
				n = len(out)
				at[of.Executor], of.Since = n, db.Instant(gone)
				out = append(out, of)
			}
			if host != "" && host != name {
				name += " on " + host
			}
			x := &out[n]
			x.Lost, x.LostSlots, x.Newest = append(x.Lost, name), x.LostSlots+slots, max(x.Newest, id)
			return nil
		}, fmt.Sprintf("SELECT i.id, i.tenant_id, i.executor_id, x.name, i.name, i.host, i.slots, i.gone_at FROM instances AS i%s"+
			" JOIN executors AS x ON x.id = i.executor_id AND x.built_in = 0 AND x.state = %d"+
			" WHERE i.gone_at > %[3]s - %[4]d AND i.gone_at <= %[3]s - %[5]d AND i.gone_reason = ? AND i.draining = 0 AND i.drained_at = 0"+
			" AND NOT EXISTS (SELECT 1 FROM instances AS s%[6]s WHERE s.executor_id = i.executor_id AND s.name = i.name AND s.id > i.id)"+
			" ORDER BY i.gone_at LIMIT %[7]d", s.Dialect.ByIndex("ix_instances_lease"), domain.ExecutorEnabled, s.Dialect.ClockNow(),
			(domain.LostFor+domain.LostWindow).Milliseconds(), domain.LostFor.Milliseconds(), s.Dialect.ByIndex("ix_instances_name"), maxLost), domain.LeaseRanOut)
		for i := range out {
			x := &out[i]
			if err == nil {
				err = db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&x.Living, &x.LivingSlots) },
					"SELECT COUNT(*), COALESCE(SUM(slots), 0) FROM instances"+s.Dialect.ByIndex("ix_instances_executor")+
						" WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND draining = 0 AND drained_at = 0", int64(x.Tenant), int64(x.Executor))
			}
		}
		return err
	})
	return out, err
}
