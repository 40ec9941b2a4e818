package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ToInstances is what rows mean.
func ToInstances(rows []record.InstanceRow) []domain.Instance {
	out := domain.Collect(rows, (*record.InstanceRow).Instance)
	return out
}

func (s *Instances) CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (n int, err error) {
	err = s.Look(ctx, "count online instances", func(ctx context.Context, _ db.Querier, _ *gorm.DB) error {
		return s.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > "+
			s.Dialect.ClockNow(), int64(tenant), int64(executor)).Scan(&n)
	})
	return n, err
}

// ListHeld asks by primary key. An instance's slots bound how many it asks.
func (s *Instances) ListHeld(ctx context.Context, tenant domain.TenantID, instance domain.InstanceID, attempts []domain.Held) (held []domain.Held, err error) {
	if len(attempts) == 0 {
		return nil, nil
	}
	asked := make(map[domain.Held]bool, len(attempts))
	ids := make([]domain.ExecutionID, len(attempts))
	for i, a := range attempts {
		asked[domain.Held{ID: a.ID, Fence: a.Fence}] = true
		ids[i] = a.ID
	}
	held, err = db.LookSelect(ctx, s.DB, "list held attempts", func(h *domain.Held) []any { return []any{&h.ID, &h.Fence} },
		"SELECT id, fence FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ? AND instance_id = ? AND (lingers = 1 OR state IN ("+record.OnInstance+"))",
		int64(tenant), int64(instance))
	return slices.DeleteFunc(held, func(h domain.Held) bool { return !asked[h] }), err
}

func toInstanceRow(i domain.Instance) (*record.InstanceRow, error) {
	labels, err := json.Marshal(i.Labels)
	if err != nil {
		return nil, fmt.Errorf("encode labels: %w", err)
	}
	handlers, err := json.Marshal(i.Handlers)
	if err != nil {
		return nil, fmt.Errorf("encode handlers: %w", err)
	}
	return &record.InstanceRow{
		ID: int64(i.ID), TenantID: int64(i.TenantID), ExecutorID: int64(i.Executor), BootID: i.BootID,
		Name: record.Clip(i.Name, record.NameSize), Host: record.Clip(i.Host, 255), Address: record.Clip(i.Address, 64), PID: int64(i.PID),
		AppVersion: record.Clip(i.AppVersion, record.NameSize), Build: i.Build, Client: record.Clip(i.Client, record.NameSize), Labels: string(labels), Handlers: string(handlers),
		Slots: int64(i.Slots), Running: int64(i.Running), Draining: db.Flag(i.Draining), StartedAt: db.Millis(i.StartedAt),
	}, nil
}

// leaseRow is the part of an instance that heartbeats change.
type leaseRow struct {
	id, tenantID, running, slots, draining, lastSeenAt, leaseUntil, goneAt, parked, wantedAt, drainingAt, refusing int64
}

var leaseTable = db.Table[leaseRow]{
	Name: "instances", Keys: 2, Required: 2,
	Columns: []db.Column[leaseRow]{
		db.IntColumn("id", func(r *leaseRow) *int64 { return &r.id }),
		db.IntColumn("tenant_id", func(r *leaseRow) *int64 { return &r.tenantID }),
		db.IntColumn("running", func(r *leaseRow) *int64 { return &r.running }),
		db.IntColumn("slots", func(r *leaseRow) *int64 { return &r.slots }),
		db.IntColumn("draining", func(r *leaseRow) *int64 { return &r.draining }),
		db.IntColumn("last_seen_at", func(r *leaseRow) *int64 { return &r.lastSeenAt }),
		db.IntColumn("lease_until", func(r *leaseRow) *int64 { return &r.leaseUntil }),
		db.IntColumn("gone_at", func(r *leaseRow) *int64 { return &r.goneAt }),
		db.IntColumn("parked", func(r *leaseRow) *int64 { return &r.parked }),
		db.IntColumn("wanted_at", func(r *leaseRow) *int64 { return &r.wantedAt }),
		db.IntColumn("draining_at", func(r *leaseRow) *int64 { return &r.drainingAt }),
		db.IntColumn("refusing", func(r *leaseRow) *int64 { return &r.refusing }),
	},
}

// drainingSince keeps the earliest instant that anybody heard of.
func drainingSince(known int64, drains bool, at int64) int64 {
	switch {
	case !drains:
		return 0
	case known == 0:
		return at
	}
	return min(known, at)
}

// RenewInstances never shortens a lease.
func (s *Instances) RenewInstances(ctx context.Context, renewals []store.InstanceRenewal, ttl time.Duration) (now time.Time, renewed []domain.InstanceID, err error) {
	if len(renewals) == 0 {
		now, err = s.Now(ctx)
		return now, nil, err
	}
	loads := make(map[int64]store.InstanceRenewal, len(renewals))
	ids := make([]int64, 0, len(renewals))
	for _, r := range renewals {
		loads[int64(r.ID)] = r
		ids = append(ids, int64(r.ID))
	}
	slices.Sort(ids)
	type renewal struct {
		now time.Time
		ids []domain.InstanceID
	}
	did, err := db.Value(ctx, s.RunRepeatable, "renew instances", func(t *db.Tx) (r renewal, err error) {
		var changes []db.Change[leaseRow]
		err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			before := &leaseRow{}
			var at int64
			if err := rows.Scan(leaseTable.Targets(before, &at)...); err != nil {
				return err
			}
			r.now = db.Instant(max(at, db.Millis(r.now)))
			after, load := *before, loads[before.id]
			after.running, after.slots, after.draining = int64(load.Running), int64(load.Slots), db.Flag(load.Draining)
			after.drainingAt = drainingSince(before.drainingAt, load.Draining, at-load.DrainingFor.Milliseconds())
			if after.parked = db.Flag(load.Parked); !load.Parked {
				after.wantedAt = 0
			}
			after.refusing, after.lastSeenAt = db.Flag(load.Refusing), at
			after.leaseUntil = max(after.leaseUntil, at+(ttl+load.Quiet).Milliseconds())
			changes = append(changes, db.Change[leaseRow]{Before: before, After: &after})
			r.ids = append(r.ids, domain.InstanceID(before.id))
			return nil
		}, "SELECT "+t.Dialect.Clock()+", "+leaseTable.List("")+" FROM instances"+t.Dialect.ByPrimary()+
			" WHERE id IN ("+db.IDList(ids)+") AND gone_at = 0 ORDER BY id"+t.Dialect.ForUpdate())
		if err != nil {
			return r, err
		}
		if len(changes) == 0 {
			r.now, err = t.Clock()
			return r, err
		}
		return r, leaseTable.Update(t, changes)
	})
	return did.now, did.ids, err
}

func (s *Instances) WakeInstances(ctx context.Context, executors []domain.ExecutorID) error {
	if len(executors) == 0 {
		return nil
	}
	return s.RunRepeatable(ctx, "wake instances", func(t *db.Tx) error {
		_, err := t.Exec(t.Ctx, "UPDATE instances SET wanted_at = "+t.Dialect.Clock()+" WHERE parked = 1 AND executor_id IN ("+db.IDList(executors)+") AND gone_at = 0 AND wanted_at = 0")
		return err
	})
}

func (s *Instances) ListWanted(ctx context.Context, ids []domain.InstanceID) (out []domain.InstanceID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.LookColumn[domain.InstanceID](ctx, s.DB, "list wanted instances",
		"SELECT id FROM instances WHERE id IN ("+db.IDList(ids)+") AND parked = 1 AND wanted_at > 0")
}

// ExpireInstances waits as long after a lease's end, or an absence of all nodes, as the
// sweep does.
func (s *Instances) ExpireInstances(ctx context.Context, limit int, latest func() time.Time) ([]domain.Instance, error) {
	return db.Value(ctx, s.RunRepeatable, "expire instances", func(t *db.Tx) ([]domain.Instance, error) {
		if err := t.Guard(); err != nil {
			return nil, err
		}
		now, err := t.Clock()
		if err == nil {
			err = checkClock(now, latest)
		}
		if err != nil {
			return nil, err
		}
		signs, _, err := signsOfLife(t)
		if err != nil || signs.LeasesHold(now).Add(domain.LeaseMargin).After(now) {
			return nil, err
		}
		var rows []record.InstanceRow
		err = t.Gorm.Clauses(t.SkipLocked()...).Where("gone_at = 0 AND lease_until < ?", db.Millis(now.Add(-domain.LeaseMargin))).
			Order("lease_until").Limit(record.PageSize(limit)).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		ids := make([]int64, len(rows))
		for i := range rows {
			rows[i].GoneAt, rows[i].GoneReason, rows[i].Running = db.Millis(now), domain.LeaseRanOut, 0
			ids[i] = rows[i].ID
		}
		_, err = t.Exec(t.Ctx, "UPDATE instances SET gone_at = ?, gone_reason = ?, running = 0 WHERE id IN ("+db.IDList(ids)+")", db.Millis(now), rows[0].GoneReason)
		if err != nil {
			return nil, err
		}
		return ToInstances(rows), nil
	})
}

// instanceCount is how many instances a tenant may have, and had.
type instanceCount struct {
	domain.Quota
	at time.Time
}

// countedTenants bounds the counts of instances that are kept.
const countedTenants = 10_000

// allowInstance lets one more of a tenant in, after some that the same transaction lets
// in. It goes by a count that may be InstanceCountAge old, to which this node adds what it
// has let in: a count with each registration would cost the database more than the
// registration.
func (s *Instances) allowInstance(t *db.Tx, tenant domain.TenantID, after int64) error {
	c, known := s.counts.Get(tenant)
	if !known || time.Since(c.at) > domain.InstanceCountAge {
		quotas, err := record.ReadQuotas(t.Ctx, t.Conn, tenant)
		if err != nil {
			return fmt.Errorf("read quotas: %w", err)
		}
		c = instanceCount{quotas[domain.QuotaInstances], time.Now()}
		if c.Max > 0 {
			if c.Used, err = record.CountQuota(t.Ctx, t.Conn, t.Dialect, tenant, domain.QuotaInstances); err != nil {
				return fmt.Errorf("count instances: %w", err)
			}
		}
		s.counts.Add(tenant, c)
	}
	c.Used += after
	return c.Check(1)
}

// countInstances adds what a transaction has let in to the counts, after its commit.
func (s *Instances) countInstances(fresh map[domain.TenantID]int64) {
	for tenant, n := range fresh {
		if c, known := s.counts.Get(tenant); known {
			c.Used += n
			s.counts.Add(tenant, c)
		}
	}
}

// ForgetCount makes the next registration count a tenant's instances anew: its
// quota has changed.
func (s *Instances) ForgetCount(tenant domain.TenantID) { s.counts.Remove(tenant) }

// maxDrained bounds how many instances are drained at once, those first that were
// drained last.
const maxDrained = 10_000

// ListDrained implements store.Instances.
func (s *Instances) ListDrained(ctx context.Context) (out []domain.InstanceID, err error) {
	return db.LookColumn[domain.InstanceID](ctx, s.DB, "list drained instances",
		fmt.Sprintf("SELECT id FROM instances%s WHERE drained_at > 0 AND gone_at = 0 ORDER BY drained_at DESC LIMIT %d", s.Dialect.ByIndex("ix_instances_drained"), maxDrained))
}
