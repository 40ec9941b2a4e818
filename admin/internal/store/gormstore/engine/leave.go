package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// endedInstance is one instance that ends, and how.
type endedInstance struct {
	row    *record.InstanceRow
	reason string
	// dead: the process is proven to be gone, so that nothing has to be waited
	// for after the end of its lease.
	dead bool
	// grace is when an execution of it has to be looked at.
	grace func(domain.ExecutionID) time.Duration
}

func (s *Instances) LeaveInstances(ctx context.Context, list []store.InstanceLeave) []error {
	return together(ctx, list, func(list []store.InstanceLeave) ([]error, error) {
		return db.Value(ctx, s.RunRepeatable, "leave instances", func(t *db.Tx) ([]error, error) { return s.leave(t, list) })
	}, func(err error) error { return err })
}

func (s *Instances) leave(t *db.Tx, list []store.InstanceLeave) ([]error, error) {
	rows, err := lockInstances(t, domain.Collect(list, func(l *store.InstanceLeave) int64 { return int64(l.ID) }))
	if err != nil {
		return nil, err
	}
	out := make([]error, len(list))
	var ends []endedInstance
	for i, l := range list {
		row := rows[int64(l.ID)]
		if row == nil || row.TenantID != int64(l.Tenant) {
			out[i] = db.NotFound("instance", l.ID)
			continue
		}
		ends = append(ends, endedInstance{row: row, reason: l.Reason, grace: func(domain.ExecutionID) time.Duration { return domain.LeaseMargin }})
	}
	_, err = s.endInstances(t, ends)
	return out, err
}

func (s *Instances) SupersedeBoots(ctx context.Context, list []store.SupersedeBootsParams) []store.SupersededBoots {
	return together(ctx, list, func(list []store.SupersedeBootsParams) ([]store.SupersededBoots, error) {
		return db.Value(ctx, s.RunRepeatable, "supersede boots", func(t *db.Tx) ([]store.SupersededBoots, error) { return s.supersede(t, list) })
	}, func(err error) store.SupersededBoots { return store.SupersededBoots{Err: err} })
}

func (s *Instances) supersede(t *db.Tx, list []store.SupersedeBootsParams) ([]store.SupersededBoots, error) {
	var ids []int64
	by := map[int64]int{} // which of the list named an instance first
	for i, p := range list {
		if len(p.BootIDs) == 0 {
			continue
		}
		boots := make([]any, len(p.BootIDs))
		for n, b := range p.BootIDs {
			boots[n] = b
		}
		found, err := db.SelectColumn[int64](t.Ctx, t.Conn, fmt.Sprintf("SELECT id FROM instances%s WHERE tenant_id = %d AND executor_id = %d AND boot_id IN (%s)",
			t.Dialect.ByIndex("uq_instances_boot"), p.Tenant, p.Executor, db.Placeholders(len(boots))), boots...)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			if _, named := by[id]; !named {
				by[id] = i
				ids = append(ids, id)
			}
		}
	}
	rows, err := lockInstances(t, ids)
	if err != nil {
		return nil, err
	}
	var ends []endedInstance
	for _, id := range ids {
		if p := list[by[id]]; rows[id] != nil {
			ends = append(ends, endedInstance{row: rows[id], reason: "superseded by a new boot", dead: p.OwedComplete, grace: p.GraceOf})
		}
	}
	ended, err := s.endInstances(t, ends)
	out := make([]store.SupersededBoots, len(list))
	for _, id := range ended {
		of := by[int64(id)]
		out[of].Ended = append(out[of].Ended, id)
	}
	return out, err
}

// lockInstances goes in the order of the ids, as renewals do.
func lockInstances(t *db.Tx, ids []int64) (map[int64]*record.InstanceRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ids = slices.Sorted(slices.Values(ids))
	list, err := registerTable.SelectRows(t, "SELECT "+registerTable.List("")+" FROM instances"+t.Dialect.ByPrimary()+
		" WHERE id IN ("+db.IDList(ids)+") ORDER BY id"+t.Dialect.ForUpdate())
	rows := make(map[int64]*record.InstanceRow, len(list))
	for _, r := range list {
		rows[r.ID] = r
	}
	return rows, err
}

// endInstances ends the leases of locked instances, each once, and lets their
// executions be looked at.
func (s *Instances) endInstances(t *db.Tx, list []endedInstance) (ended []domain.InstanceID, err error) {
	ends := make(map[domain.InstanceID]endedInstance, len(list))
	for _, p := range list {
		if _, twice := ends[domain.InstanceID(p.row.ID)]; !twice && p.row.GoneAt == 0 {
			ends[domain.InstanceID(p.row.ID)] = p
			ended = append(ended, domain.InstanceID(p.row.ID))
		}
	}
	if len(ended) == 0 {
		return nil, nil
	}
	now, err := t.Clock()
	if err != nil {
		return nil, err
	}
	changes := make([]db.Change[record.InstanceRow], 0, len(ended))
	for _, id := range ended {
		p := ends[id]
		until := now
		if p.dead {
			until = now.Add(-domain.LeaseMargin - time.Millisecond) // so that the margin has passed
		}
		after := *p.row
		after.LeaseUntil, after.GoneAt, after.Running = min(after.LeaseUntil, db.Millis(until)), db.Millis(now), 0
		after.GoneReason = record.Clip(p.reason, record.NameSize)
		changes = append(changes, db.Change[record.InstanceRow]{Before: p.row, After: &after})
	}
	if err := registerTable.Update(t, changes); err != nil {
		return nil, err
	}
	return ended, s.wakeInstances(t, ends)
}

// wakeInstances finds the executions among their tenants' living and lingering
// ones. All are locked at once, so that those who do the same for others do not
// wait for each other in a circle.
func (s *Instances) wakeInstances(t *db.Tx, ends map[domain.InstanceID]endedInstance) error {
	type group struct{ tenant, executor int64 }
	of := map[group][]domain.InstanceID{}
	for id, p := range ends {
		g := group{p.row.TenantID, p.row.ExecutorID}
		of[g] = append(of[g], id)
	}
	var ids []domain.ExecutionID
	for g, instances := range of {
		some, err := db.SelectColumn[domain.ExecutionID](t.Ctx, t.Conn, fmt.Sprintf("SELECT id FROM executions%s WHERE tenant_id = %d AND %s AND %s AND executor_id = %d AND instance_id IN (%s)",
			t.Dialect.ByIndex("ix_executions_phase"), g.tenant, occupyingPhases, OccupiesInstance(""), g.executor, db.IDList(instances)))
		if err != nil {
			return err
		}
		ids = append(ids, some...)
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := s.move(t, run.Request{IDs: ids}, func(b *Batch) error {
		for _, m := range b.Moves {
			if p, ends := ends[m.E.Instance]; ends && m.E.OccupiesInstance() {
				m.E.WakeAt = b.Now.Add(p.grace(m.E.ID))
			}
		}
		return nil
	})
	return err
}
