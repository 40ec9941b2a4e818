package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// register is RegisterInstance.
func (d *database) register(p store.RegisterInstanceParams) domain.Instance {
	now := d.clock()
	i := p.Instance
	i.ConnectedAt, i.LastSeenAt, i.LeaseUntil = now, now, now.Add(p.TTL)
	if id, ok := d.boots[i.BootID]; ok {
		known := d.instances[id]
		d.noteLapse(known, now)
		i.ID, i.ConnectedAt = id, known.ConnectedAt
		if known.LeaseUntil.After(i.LeaseUntil) {
			i.LeaseUntil = known.LeaseUntil
		}
	}
	d.instances[i.ID], d.boots[i.BootID] = &i, i.ID
	return i
}

// noteLapse counts how often an instance's lease was over: it may be renewed
// afterwards, but what ran under it has lost its rights.
func (d *database) noteLapse(i *domain.Instance, now time.Time) {
	if d.lapsed(i, now) {
		d.lapses[i.ID]++
	}
}

func (d *database) lapsed(i *domain.Instance, now time.Time) bool {
	return !i.GoneAt.IsZero() || i.LeaseUntil.Before(now)
}

// renewInstances is RenewInstances.
func (d *database) renewInstances(list []store.InstanceRenewal, ttl time.Duration) (renewed []domain.InstanceID) {
	now := d.clock()
	for _, r := range list {
		i := d.instances[r.ID]
		if i == nil || !i.GoneAt.IsZero() {
			continue
		}
		d.noteLapse(i, now)
		i.Running, i.LastSeenAt = r.Running, now
		if until := now.Add(ttl + r.Quiet); until.After(i.LeaseUntil) {
			i.LeaseUntil = until
		}
		if d.rules.takeLease && r.Quiet == 0 {
			i.LeaseUntil = now
		}
		renewed = append(renewed, r.ID)
	}
	return renewed
}

// supersede is SupersedeBoots.
func (d *database) supersede(p store.SupersedeBootsParams) {
	now := d.clock()
	var ended []domain.InstanceID
	for _, boot := range p.BootIDs {
		i := d.instances[d.boots[boot]]
		if i == nil || !i.GoneAt.IsZero() {
			continue
		}
		i.GoneAt, i.Running = now, 0
		d.noteLapse(i, now)
		until := now
		if p.OwedComplete {
			until = now.Add(-domain.LeaseMargin - time.Millisecond)
		}
		if i.LeaseUntil.After(until) {
			i.LeaseUntil = until
		}
		ended = append(ended, i.ID)
	}
	for _, id := range d.living() {
		e := d.find(id)
		if e.OccupiesInstance() && slices.Contains(ended, e.Instance) {
			before := *e
			e.WakeAt = now.Add(p.GraceOf(id))
			toStored(e)
			d.changed(&before, e)
		}
	}
}

// expire is ExpireInstances.
func (d *database) expire(order []domain.InstanceID, latest func() time.Time) error {
	now := d.clock()
	if err := checkClock(now, latest); err != nil {
		return err
	}
	if d.signs.LeasesHold(now).Add(domain.LeaseMargin).After(now) {
		return nil
	}
	for _, id := range order {
		if i := d.instances[id]; i != nil && i.GoneAt.IsZero() && i.LeaseUntil.Before(now.Add(-domain.LeaseMargin)) {
			i.GoneAt, i.Running = now, 0
		}
	}
	return nil
}

// online is CountOnline.
func (d *database) online(order []domain.InstanceID) (count int) {
	now := d.clock()
	for _, id := range order {
		if i := d.instances[id]; i.GoneAt.IsZero() && i.LeaseUntil.After(now) {
			count++
		}
	}
	return count
}

// table is ReadPartitions.
func (d *database) table() domain.PartitionTable {
	t := domain.PartitionTable{Now: d.clock(), ClockConfirmedAt: d.confirmed, Leases: slices.Clone(d.leases[:])}
	for _, n := range d.nodes {
		if t.Now.Sub(n.status.HeartbeatAt) < store.NodesShown {
			s := n.status
			s.Connected, s.Sessions = n.connected(), n.sessions()
			t.Nodes = append(t.Nodes, s)
		}
	}
	return t
}

// renew is RenewPartitions.
func (d *database) renew(p store.RenewPartitionsParams) domain.PartitionTable {
	now := d.clock()
	if d.signs.Absent(now) {
		d.signs.Returned = now
	}
	d.signs.Seen = now
	for _, n := range d.nodes {
		if n.status.BootID == p.BootID {
			n.status.RenewedAt, n.status.HeartbeatAt = now, now
			n.status.ClockSkew, n.status.ClockHeld = p.Wall.Sub(now), p.ClockHeld
		}
	}
	for _, h := range p.Held {
		if l := &d.leases[h.Partition]; l.Term == h.Term {
			l.Until = now.Add(p.TTL)
		}
	}
	return d.table()
}

// acquire is AcquirePartitions.
func (d *database) acquire(p store.AcquirePartitionsParams) (got []domain.PartitionLease) {
	now := d.clock()
	for _, h := range p.Want {
		l := &d.leases[h.Partition]
		left := l.Until.Sub(now)
		if l.Term != h.Term || !l.Until.IsZero() && left > 0 && left <= 2*p.TTL {
			continue
		}
		l.Term, l.Node, l.BootID, l.Until = l.Term+1, p.Node, p.BootID, now.Add(p.TTL)
		got = append(got, *l)
	}
	return got
}

// release is ReleasePartitions.
func (d *database) release(p store.ReleasePartitionsParams) (ended []domain.PartitionTerm) {
	if p.Leaving {
		for _, n := range d.nodes {
			if n.status.BootID == p.BootID {
				n.status.RenewedAt = time.Time{}
			}
		}
	}
	for _, h := range p.Held {
		l := &d.leases[h.Partition]
		if l.Term != h.Term || l.BootID != p.BootID {
			continue
		}
		l.Until = time.Time{}
		if p.Leaving {
			l.BootID, l.Node = "", 0
		}
		ended = append(ended, h)
	}
	return ended
}

// stillDue is StillDue.
func (d *database) stillDue(ids []domain.ExecutionID) map[domain.ExecutionID]int64 {
	out := map[domain.ExecutionID]int64{}
	for _, id := range ids {
		if e := d.find(id); e != nil && (e.State == domain.Due || e.State == domain.RetryWait) {
			out[id] = e.Fence
		}
	}
	return out
}

// place is where a run waits, and from when each node may take it.
type place struct {
	line   int64
	openAt time.Time
}

// place keeps the place of a run that begins to wait for a start, or ceases to.
func (d *database) place(e *domain.Execution, w store.Wait, now time.Time) {
	if !domain.AwaitsStart(e) {
		delete(d.places, e.ID)
		return
	}
	p := place{w.Line, now}
	if p.line == 0 {
		p.line = domain.LineNumber(e.Executor)
	}
	if !w.Anyone {
		p.openAt = now.Add(store.OwnFor)
	}
	d.places[e.ID] = p
}

// waitingIn lists the runs that wait for a start, by line.
func (d *database) waitingIn() map[int64][]*domain.Execution {
	out := map[int64][]*domain.Execution{}
	for _, id := range d.living() {
		if at, waits := d.places[id]; waits {
			out[at.line] = append(out[at.line], d.find(id))
		}
	}
	for _, list := range out {
		slices.SortFunc(list, domain.ComparePrecedence)
	}
	return out
}

// waitingLines is WaitingLines.
func (d *database) waitingLines(after int64, limit int) (out []store.WaitingLine) {
	lines := d.waitingIn()
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		if first := lines[line][0]; line > after && len(out) < limit {
			out = append(out, store.WaitingLine{Line: line, Tenant: first.TenantID, Executor: first.Executor, Next: first.ID, First: first.Precedence()})
		}
	}
	return out
}

// listWaiting is ListWaiting.
func (d *database) listWaiting(p store.ListWaitingParams) (out []domain.Execution) {
	list := d.waitingIn()[p.Line]
	if d.rules.skipWaiting && p.Unattended != nil {
		return nil
	}
	if p.Newest {
		slices.Reverse(list)
	}
	read := 0
	for _, e := range list {
		own := slices.Contains(p.Partitions, e.Partition) || len(p.Partitions) == 0 && !d.places[e.ID].openAt.After(d.clock())
		if !own {
			continue
		}
		if read++; read > p.Read || len(out) == p.Limit {
			break
		}
		if p.Unattended == nil || len(p.Unattended([]domain.ExecutionID{e.ID})) > 0 {
			out = append(out, *e)
		}
	}
	return out
}

// planned is ListPlanned.
func (d *database) planned(p store.ListPlannedParams) (out []domain.Execution) {
	until := d.clock().Add(p.Horizon + domain.PickupGrace)
	for _, id := range d.living() {
		e := d.find(id)
		planned := (e.State == domain.Due || e.State == domain.RetryWait) && e.Reason != domain.ReasonWaitSlot && e.Reason != domain.ReasonWaitLimit && e.Reason != domain.ReasonMaintenance
		offered := e.State == domain.Offered || e.State == domain.Running && e.Idempotent && e.StartedAt.IsZero()
		offered = offered && slices.Contains(p.OfferedBy, e.Node)
		if stopped := (run.JobStates{e.JobID: d.jobs[e.JobID].state}); e.State == domain.Running && !stopped.MayResend(e) {
			continue // the sweep asks its instance
		}
		listed := (planned || offered) && slices.Contains(p.Partitions, e.Partition) || offered && slices.Contains(p.OffersOnly, e.Partition)
		if listed && !e.WakeAt.After(until) {
			out = append(out, *e)
		}
	}
	return out
}

// recent is RecentInstances.
func (d *database) recent(p store.RecentInstancesParams) map[domain.JobID][]domain.InstanceID {
	out := map[domain.JobID][]domain.InstanceID{}
	for _, j := range p.Jobs {
		var rows []*domain.Execution
		for _, id := range d.order {
			if e := d.executions[id]; e != nil && e.JobID == j.Job && !e.FireAt.After(p.Until) {
				rows = append(rows, e)
			}
		}
		slices.SortStableFunc(rows, func(a, b *domain.Execution) int { return b.FireAt.Compare(a.FireAt) })
		for _, e := range rows[:min(len(rows), p.Limit)] {
			if e.Instance != 0 {
				out[j.Job] = append(out[j.Job], e.Instance)
			}
		}
	}
	return out
}
