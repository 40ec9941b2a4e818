package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// registerTable is what a registration writes of an instance: all of it.
var registerTable = db.Table[record.InstanceRow]{
	Name: "instances", Keys: 2, Required: 5,
	Columns: []db.Column[record.InstanceRow]{
		db.IntColumn("id", func(r *record.InstanceRow) *int64 { return &r.ID }),
		db.IntColumn("tenant_id", func(r *record.InstanceRow) *int64 { return &r.TenantID }),
		db.IntColumn("executor_id", func(r *record.InstanceRow) *int64 { return &r.ExecutorID }),
		db.TextColumn("boot_id", 64, func(r *record.InstanceRow) *string { return &r.BootID }),
		db.TextColumn("name", record.NameSize, func(r *record.InstanceRow) *string { return &r.Name }),
		db.TextColumn("host", 255, func(r *record.InstanceRow) *string { return &r.Host }),
		db.IntColumn("pid", func(r *record.InstanceRow) *int64 { return &r.PID }),
		db.TextColumn("app_version", record.NameSize, func(r *record.InstanceRow) *string { return &r.AppVersion }),
		db.TextColumn("build", 64, func(r *record.InstanceRow) *string { return &r.Build }),
		db.TextColumn("client", record.NameSize, func(r *record.InstanceRow) *string { return &r.Client }),
		db.LongColumn("labels", db.KindLongText, func(r *record.InstanceRow) *string { return &r.Labels }),
		db.LongColumn("handlers", db.KindLongText, func(r *record.InstanceRow) *string { return &r.Handlers }),
		db.IntColumn("slots", func(r *record.InstanceRow) *int64 { return &r.Slots }),
		db.IntColumn("running", func(r *record.InstanceRow) *int64 { return &r.Running }),
		db.IntColumn("draining", func(r *record.InstanceRow) *int64 { return &r.Draining }),
		db.IntColumn("started_at", func(r *record.InstanceRow) *int64 { return &r.StartedAt }),
		db.IntColumn("connected_at", func(r *record.InstanceRow) *int64 { return &r.ConnectedAt }),
		db.IntColumn("last_seen_at", func(r *record.InstanceRow) *int64 { return &r.LastSeenAt }),
		db.IntColumn("lease_until", func(r *record.InstanceRow) *int64 { return &r.LeaseUntil }),
		db.IntColumn("gone_at", func(r *record.InstanceRow) *int64 { return &r.GoneAt }),
		db.TextColumn("gone_reason", record.NameSize, func(r *record.InstanceRow) *string { return &r.GoneReason }),
		db.IntColumn("parked", func(r *record.InstanceRow) *int64 { return &r.Parked }),
		db.IntColumn("wanted_at", func(r *record.InstanceRow) *int64 { return &r.WantedAt }),
		db.IntColumn("draining_at", func(r *record.InstanceRow) *int64 { return &r.DrainingAt }),
		db.IntColumn("refusing", func(r *record.InstanceRow) *int64 { return &r.Refusing }),
		db.IntColumn("drained_at", func(r *record.InstanceRow) *int64 { return &r.DrainedAt }),
		db.TextColumn("drained_by", record.NameSize, func(r *record.InstanceRow) *string { return &r.DrainedBy }),
		db.TextColumn("address", 64, func(r *record.InstanceRow) *string { return &r.Address }),
	},
}

// RegisterInstances brings instances back that were declared gone: they are the
// same processes, and what they lost meanwhile was decided under their old
// leases.
func (s *Instances) RegisterInstances(ctx context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	out, err := s.registerTogether(ctx, list)
	if err == nil || len(list) == 1 || domain.Is(err, domain.CodeUnavailable) || ctx.Err() != nil {
		if err != nil && len(list) == 1 && !domain.Is(err, domain.CodeUnavailable) {
			return []store.Registration{{Err: err}}, nil
		}
		return out, err
	}
	// One of them is at fault, and which one is not said: each for itself.
	out = make([]store.Registration, len(list))
	for i := range list {
		one, err := s.registerTogether(ctx, list[i:i+1])
		if err != nil {
			out[i].Err = err
		} else {
			out[i] = one[0]
		}
	}
	return out, nil
}

func (s *Instances) registerTogether(ctx context.Context, list []store.RegisterInstanceParams) ([]store.Registration, error) {
	for try := 1; ; try++ {
		r, err := db.Value(ctx, s.RunRepeatable, "register instance", func(t *db.Tx) (*registering, error) {
			r := &registering{s: s, list: list, out: make([]store.Registration, len(list)), rows: map[bootKey]*registered{}, fresh: map[domain.TenantID]int64{}}
			return r, r.run(t)
		})
		if err == nil {
			s.countInstances(r.fresh)
			return r.answers()
		}
		// Two nodes met over the same new boot: the second one finds the row.
		if !domain.Is(err, domain.CodeConflict) || try == db.TxTries || !db.Sleep(ctx, db.TxBackoff) {
			return nil, err
		}
	}
}

// registering is one transaction of registrations.
type registering struct {
	s    *Instances
	list []store.RegisterInstanceParams
	out  []store.Registration
	rows map[bootKey]*registered
	// order of the boots, as they came
	order []*registered
	fresh map[domain.TenantID]int64 // how many instances are let in
}

type bootKey struct {
	tenant, executor int64
	boot             string
}

// registered is the row of one boot; p are the last registration's.
type registered struct {
	before *record.InstanceRow // nil: there was none
	row    *record.InstanceRow
	p      *store.RegisterInstanceParams
	// refused: there is no room for it
	refused error
}

func (r *registering) run(t *db.Tx) error {
	if err := r.prepare(t); err != nil || len(r.order) == 0 {
		return err
	}
	if err := r.lock(t); err != nil {
		return err
	}
	now, err := t.Clock()
	if err != nil {
		return err
	}
	if err := r.allow(t); err != nil {
		return err
	}
	stored, err := r.noteBuilds(t, now)
	if err != nil {
		return err
	}
	var fresh []*record.InstanceRow
	var changes []db.Change[record.InstanceRow]
	for _, one := range r.order {
		row := one.row
		row.LastSeenAt, row.LeaseUntil, row.ConnectedAt = db.Millis(now), db.Millis(now.Add(one.p.TTL)), db.Millis(now)
		row.DrainingAt = drainingSince(0, row.Draining != 0, db.Millis(now))
		if one.before == nil {
			fresh = append(fresh, row)
			continue
		}
		row.ID, row.ConnectedAt, row.Refusing = one.before.ID, one.before.ConnectedAt, one.before.Refusing // its next heartbeat says
		row.LeaseUntil = max(row.LeaseUntil, one.before.LeaseUntil)
		if row.DrainedAt, row.DrainedBy = one.before.DrainedAt, one.before.DrainedBy; row.DrainedAt > 0 {
			row.Draining = 1 // it is the same process
		}
		row.DrainingAt = drainingSince(one.before.DrainingAt, row.Draining != 0, db.Millis(now))
		changes = append(changes, db.Change[record.InstanceRow]{Before: one.before, After: row})
	}
	if err := registerTable.Insert(t, fresh); err != nil {
		return err
	}
	if err := registerTable.Update(t, changes); err != nil {
		return err
	}
	return stored.Save(t)
}

// allow leaves out those for which their tenant has no room.
func (r *registering) allow(t *db.Tx) (err error) {
	r.order = slices.DeleteFunc(r.order, func(one *registered) bool {
		if err != nil || one.before != nil && one.before.GoneAt == 0 {
			return false
		}
		tenant := domain.TenantID(one.row.TenantID)
		if one.refused = r.s.allowInstance(t, tenant, r.fresh[tenant]); one.refused == nil {
			r.fresh[tenant]++
		}
		if one.refused != nil && !domain.Is(one.refused, domain.CodeQuotaExceeded) {
			err = one.refused
		}
		return one.refused != nil
	})
	return err
}

// prepare makes the rows of those whose executors exist.
func (r *registering) prepare(t *db.Tx) error {
	executors, err := r.executors(t)
	if err != nil {
		return err
	}
	for i := range r.list {
		p := &r.list[i]
		if executors[p.Instance.Executor] != p.Instance.TenantID {
			r.out[i].Err = db.NotFound("executor", p.Instance.Executor)
			continue
		}
		row, err := toInstanceRow(p.Instance)
		if err != nil {
			r.out[i].Err = err
			continue
		}
		k := bootKey{row.TenantID, row.ExecutorID, row.BootID}
		one := r.rows[k]
		if one == nil {
			one = &registered{}
			r.rows[k] = one
			r.order = append(r.order, one)
		} else {
			row.ID = one.row.ID
		}
		one.row, one.p = row, p
	}
	return nil
}

// executors tells whose they are.
func (r *registering) executors(t *db.Tx) (map[domain.ExecutorID]domain.TenantID, error) {
	ids := make([]domain.ExecutorID, 0, 1)
	for i := range r.list {
		if id := r.list[i].Instance.Executor; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return db.Pairs[domain.ExecutorID, domain.TenantID](t.Ctx, t.Conn,
		"SELECT id, tenant_id FROM executors WHERE id IN ("+db.IDList(ids)+") AND "+record.LivingExecutor)
}

// lock finds the rows of known boots and locks them in the order of their ids,
// as renewals do.
func (r *registering) lock(t *db.Tx) error {
	byExecutor := map[[2]int64][]any{}
	for k := range r.rows {
		of := [2]int64{k.tenant, k.executor}
		byExecutor[of] = append(byExecutor[of], k.boot)
	}
	var ids []int64
	for of, boots := range byExecutor {
		some, err := db.SelectColumn[int64](t.Ctx, t.Conn, fmt.Sprintf("SELECT id FROM instances%s WHERE tenant_id = %d AND executor_id = %d AND boot_id IN (%s)",
			t.Dialect.ByIndex("uq_instances_boot"), of[0], of[1], db.Placeholders(len(boots))), boots...)
		if err != nil {
			return err
		}
		ids = append(ids, some...)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		before := &record.InstanceRow{}
		if err := rows.Scan(registerTable.Targets(before)...); err != nil {
			return err
		}
		r.rows[bootKey{before.TenantID, before.ExecutorID, before.BootID}].before = before
		return nil
	}, "SELECT "+registerTable.List("")+" FROM instances"+t.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(ids)+") ORDER BY id"+t.Dialect.ForUpdate())
}

// noteBuilds notes each build once, and leaves out those for which there is no
// room. They go in the order of their names, so that nodes do not wait for each
// other in a circle. It returns by how much the stored bytes grow.
func (r *registering) noteBuilds(t *db.Tx, now time.Time) (record.StoredBytes, error) {
	list := slices.SortedStableFunc(slices.Values(r.order), func(a, b *registered) int {
		if a.row.ExecutorID != b.row.ExecutorID {
			return int(max(-1, min(1, a.row.ExecutorID-b.row.ExecutorID)))
		}
		return strings.Compare(a.p.Build.Digest, b.p.Build.Digest)
	})
	noted, stored := map[buildKey]error{}, record.StoredBytes{}
	for _, one := range list {
		k := buildKey{one.row.TenantID, one.row.ExecutorID, one.p.Build.Digest}
		err, done := noted[k]
		if !done || k.digest == "" {
			var bytes int64
			bytes, err = noteBuild(t, k, *one.p, now, r.digestsOf(k.executor))
			noted[k] = err
			stored[domain.TenantID(k.tenant)] += bytes
		}
		if err != nil && !domain.Is(err, domain.CodeQuotaExceeded) {
			return nil, err
		}
		one.refused = err
	}
	r.order = slices.DeleteFunc(r.order, func(one *registered) bool { return one.refused != nil })
	return stored, nil
}

// digestsOf are the builds with which instances of an executor come in now.
func (r *registering) digestsOf(executor int64) (out []string) {
	for _, one := range r.order {
		if one.row.ExecutorID == executor {
			out = append(out, one.p.Build.Digest)
		}
	}
	return out
}

// answers tells each of the list what its boot's row is.
func (r *registering) answers() ([]store.Registration, error) {
	for i := range r.list {
		if r.out[i].Err != nil {
			continue
		}
		p := &r.list[i].Instance
		one := r.rows[bootKey{int64(p.TenantID), int64(p.Executor), p.BootID}]
		if r.out[i].Err = one.refused; one.refused == nil {
			r.out[i].Instance = one.row.Instance()
		}
	}
	return r.out, nil
}
