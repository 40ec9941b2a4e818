package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

// transaction is one that package run decides: what it loads of the tables,
// and how it is written back. It loads what gormstore does, and no more, so that
// a rule that would need more fails here.
type transaction struct {
	run.Batch
	d      *database
	before map[domain.ExecutionID]domain.Execution
}

// loads say what a transaction loads beside the executions (as in gormstore).
type loads struct {
	slots   bool                 // moves may take or release slots
	queue   bool                 // a freed slot has to wake who waits for it
	known   *limitsKnown         // moves may start runs, or let them wait: limits are loaded as well
	linger  []domain.ExecutionID // whose limits are loaded as well
	spreads bool
	parents []domain.ExecutionID
	all     bool // parents move on that were loaded for another reason
}

// Beginnings of queues (as in gormstore).
const (
	coverQueue   = 100
	maxQueueRead = 1000
)

func (d *database) load(ids []domain.ExecutionID, o loads) *transaction {
	b := &transaction{d: d, before: map[domain.ExecutionID]domain.Execution{}}
	b.Batch = run.Batch{
		Now: d.clock(), Moves: map[domain.ExecutionID]*run.Move{}, Slots: map[domain.JobID]*run.Slot{}, Limits: map[domain.LimitKey]*run.Limit{},
		Parents: map[domain.ExecutionID]bool{}, AllParents: o.all, Source: b,
	}
	if !d.rules.skipMisfire {
		b.Misfire = d.misfire
	}
	b.add(ids...)
	b.loadParents(o)
	switch {
	case o.known != nil && len(o.linger) > 0:
		b.loadLimits(o.known, o.linger)
	case o.known != nil:
		b.loadLimits(o.known, ids)
	}
	if o.slots {
		b.loadSlots(o)
	}
	return b
}

func (b *transaction) add(ids ...domain.ExecutionID) {
	for _, id := range ids {
		if e := b.d.find(id); e != nil && b.Moves[id] == nil {
			m := run.NewMove(*e, b.d.specOf(e))
			b.Moves[id], b.before[id] = &m, *e
		}
	}
}

// specOf is what a run follows.
func (d *database) specOf(e *domain.Execution) *domain.JobSpec {
	spec := d.jobs[e.JobID].of(e)
	if d.rules.retryLost {
		return retried(spec)
	}
	return spec
}

func retried(spec *domain.JobSpec) *domain.JobSpec {
	broken := *spec
	broken.OnLost = domain.OnLostRetry
	return &broken
}

func (b *transaction) loadParents(o loads) {
	for _, id := range o.parents {
		b.Parents[id] = true
	}
	if !o.queue {
		return
	}
	for id, m := range b.Moves {
		if p := m.E.Parent; p != 0 && (!b.d.rules.forgetParent || p%3 > 0) {
			b.Parents[p] = true
		}
		if b.d.rules.forgetParent && id%3 == 0 {
			delete(b.Parents, id)
		}
	}
	for id := range b.Parents {
		b.add(id)
	}
}

func (b *transaction) loadSlots(o loads) {
	covers := map[domain.JobID]bool{}
	limits := map[domain.JobID]int{}
	for _, m := range b.Moves {
		limit := m.Spec.SlotLimit()
		if limit <= 0 || m.E.IsPart() {
			continue
		}
		limits[m.E.JobID] = max(limits[m.E.JobID], limit)
		if (o.known != nil && o.linger == nil || o.spreads) && m.Spec.Blocking == domain.BlockCover {
			covers[m.E.JobID] = true
		}
	}
	for job, limit := range limits {
		j := b.d.jobs[job]
		s := run.LoadedSlot(job, tenant, int64(j.holders), int64(len(j.waiters)))
		if b.d.rules.skipQueueBound {
			s.Waiters, s.WaitersWas = 0, 0
		}
		if b.d.rules.skipSlot {
			s.Holders, s.HoldersWas = -1000, -1000
		}
		b.Slots[job] = s
		if covers[job] {
			limit = max(limit, coverQueue)
		}
		for i, id := range j.waiters {
			first := i < max(limit, 1)+1
			if first || b.Moves[id] != nil {
				s.InQueue(run.WaiterOf(b.d.find(id)), first)
			}
		}
	}
	for job, s := range b.Slots {
		if o.queue || covers[job] {
			for _, w := range s.Queue {
				b.add(w.ID)
			}
		}
		if !covers[job] {
			continue
		}
		for _, id := range b.d.living() {
			if e := b.d.find(id); e.JobID == job && e.HoldsSlot {
				b.add(id)
			}
		}
	}
}

func (b *transaction) loadLimits(known *limitsKnown, ids []domain.ExecutionID) {
	places := map[domain.LimitKey][]run.Place{}
	for _, id := range ids {
		if m := b.Moves[id]; m != nil {
			for _, key := range known.on(m.E.Executor) {
				places[key] = append(places[key], run.PlaceOf(&m.E))
			}
		}
	}
	for key, list := range places {
		row := b.d.limit(key)
		if row == nil || b.d.rules.skipLimit {
			continue
		}
		l := b.d.loadLimit(row)
		for _, p := range list {
			if slices.Contains(row.queue, p) {
				l.Waiting[p.ID] = p
			}
		}
		l.Queue = slices.Clone(row.queue[:min(len(row.queue), int(min(l.Free()+int64(len(list)), maxQueueRead)))])
		b.Limits[key] = l
	}
}

func (d *database) loadLimit(row *limitRow) *run.Limit {
	l := run.NewLimit(row.key)
	l.Capacity, l.ChangedAt = int64(row.max), row.changed
	for _, id := range row.holders {
		e := d.find(id)
		l.Count(id, e != nil && e.OccupiesInstance())
	}
	return l
}

// save writes everything that changed, and then says so.
func (b *transaction) save() {
	d := b.d
	type change struct{ before, after *domain.Execution }
	var changes []change
	for id, m := range b.Moves {
		toStored(&m.E)
		before, row := b.before[id], d.find(id)
		if d.rules.freeLingering && m.E.Lingers && m.E.HoldsSlot {
			m.E.HoldsSlot = false
			d.jobs[m.E.JobID].holders--
		}
		if d.rules.keepSlot && before.HoldsSlot && !m.E.HoldsSlot && id%3 == 0 {
			d.jobs[m.E.JobID].holders++
		}
		if before.AwaitsStart() != m.E.AwaitsStart() || m.E.AwaitsStart() && b.Waits[id].Line != 0 {
			b.d.place(&m.E, b.Waits[id], b.Now)
		}
		*row = m.E
		if before.State.Terminal() && mayMove(row) && !slices.Contains(d.alive, id) { // lost, and its late failure is repeated, or lingers
			d.alive = append(d.alive, id)
		}
		if moved(&before, row) {
			changes = append(changes, change{&before, row})
		}
	}
	slices.Sort(d.alive)
	for job, s := range b.Slots {
		d.jobs[job].saveSlot(d, s)
	}
	for key, l := range b.Limits {
		d.limit(key).save(l)
	}
	// In the order in which runs of a job take its slot: which of them found how many there depends on it.
	slices.SortFunc(changes, func(x, y change) int { return run.CompareWaiters(run.WaiterOf(x.after), run.WaiterOf(y.after)) })
	b.saveRest()
	for _, c := range changes {
		if j := d.jobs[c.after.JobID]; c.after.State.Terminal() && !c.before.State.Terminal() && j.awaits == c.after.ID && !d.rules.standStill {
			d.rearm(b.Now, j)
		}
		d.changed(c.before, c.after)
	}
}

// moved reports whether something has changed that a check looks at.
func moved(a, b *domain.Execution) bool {
	return a.State != b.State || a.Fence != b.Fence || a.Attempt != b.Attempt || a.Instance != b.Instance || a.Reason != b.Reason ||
		a.HoldsSlot != b.HoldsSlot || a.Lingers != b.Lingers || a.Stage != b.Stage || a.MaxAttempts != b.MaxAttempts || a.LostAttempts != b.LostAttempts ||
		a.LogLines != b.LogLines || !a.WakeAt.Equal(b.WakeAt) || !a.NotBefore.Equal(b.NotBefore) || !a.OfferedAt.Equal(b.OfferedAt) ||
		!a.StartedAt.Equal(b.StartedAt) || !a.FinishedAt.Equal(b.FinishedAt) || !a.Deadline.Equal(b.Deadline)
}

func (j *jobRow) saveSlot(d *database, s *run.Slot) {
	j.holders += int(s.Holders - s.HoldersWas)
	for _, w := range s.Leave {
		j.waiters = slices.DeleteFunc(j.waiters, func(id domain.ExecutionID) bool { return id == w.ID })
	}
	for _, w := range s.Enter {
		at, _ := slices.BinarySearchFunc(j.waiters, w, func(id domain.ExecutionID, w run.Waiter) int { return run.CompareWaiters(run.WaiterOf(d.find(id)), w) })
		j.waiters = slices.Insert(j.waiters, at, w.ID)
	}
}

// save writes what changed in holders and queue.
func (l *limitRow) save(loaded *run.Limit) {
	l.holders = slices.DeleteFunc(l.holders, func(id domain.ExecutionID) bool { return slices.Contains(loaded.Gone, id) })
	l.holders = append(l.holders, loaded.Hold...)
	l.queue = slices.DeleteFunc(l.queue, func(p run.Place) bool { return slices.Contains(loaded.Leave, p) })
	l.queue = append(l.queue, loaded.Enter...)
	slices.SortFunc(l.queue, run.ComparePlaces)
}

// saveRest writes what comes of the moves beside executions, slots and limits.
func (b *transaction) saveRest() {
	d := b.d
	for _, l := range b.Late {
		if a := d.attempts[attemptKey{l.ID, l.Fence}]; a != nil && a.State == domain.Lost {
			a.State, a.FinishedAt = l.State, b.Now
		}
	}
	for _, k := range b.Unarchive {
		delete(d.attempts, attemptKey{k.ID, k.Fence})
	}
	for _, a := range b.Archived {
		d.attempts[attemptKey{a.ExecutionID, a.Fence}] = a
	}
	for _, e := range b.Alerts {
		if !d.rules.dropAlert || e.ExecutionID%3 > 0 {
			d.alert(e.DedupeKey)
		}
	}
	for i := range b.Missed {
		if e := &b.Missed[i]; !d.rules.dropAlert || e.ID%3 > 0 {
			d.alert(alertKey(domain.AlertRunMissed, e))
		}
	}
	born := b.Born
	if shards := slices.DeleteFunc(slices.Clone(born), func(e domain.Execution) bool { return e.Part != domain.PartShard }); d.rules.dropShard && len(shards) > 1 {
		born = slices.DeleteFunc(born, func(e domain.Execution) bool { return e.ID == shards[0].ID })
	}
	for _, e := range born {
		d.insert(e)
	}
}

// What follows implements run.Source.

func (b *transaction) Stopped(jobs []domain.JobID) (run.JobStates, error) {
	stopped := run.JobStates{}
	for _, id := range jobs {
		if state := b.d.jobs[id].state; state != domain.JobEnabled && !b.d.rules.startStopped {
			stopped[id] = state
		}
	}
	return stopped, nil
}

func (b *transaction) TriggerRevision(job domain.JobID) (int64, error) {
	return b.d.jobs[job].trigger.Revision, nil
}

func (b *transaction) Leases(ids []domain.InstanceID) (map[domain.InstanceID]time.Time, error) {
	out := map[domain.InstanceID]time.Time{}
	for _, id := range ids {
		if i := b.d.instances[id]; b.d.rules.skipLease {
			out[id] = b.Now
		} else if i != nil {
			out[id] = i.LeaseUntil
			if hold := b.d.signs.LeasesHold(b.Now); i.GoneAt.IsZero() && hold.After(i.LeaseUntil) {
				out[id] = hold
			}
		}
	}
	return out, nil
}

func (b *transaction) Serving(*run.Move) ([]domain.InstanceID, error) { return b.d.serving(b.Now), nil }

func (b *transaction) Family(parent *run.Move) (domain.Family, error) {
	family := domain.Family{Shards: map[domain.State]int{}}
	for _, e := range b.d.partsOf(parent.E.ID) {
		part := b.AsMoved(*e)
		family.Add(&part)
	}
	if b.d.rules.endEarly && family.Living == 1 {
		family.Living = 0
	}
	return family, nil
}

func (b *transaction) Results(*run.Move, domain.Family) ([]byte, error) { return nil, nil }

func (b *transaction) HeldSince(job domain.JobID, before time.Time) (since time.Time, err error) {
	for _, id := range b.d.living() {
		if e := b.d.find(id); e.JobID == job && e.HoldsSlot && e.FireAt.Before(before) && e.GrantedAt.After(since) {
			since = e.GrantedAt
		}
	}
	return since, nil
}

func (b *transaction) Known(id domain.ExecutionID) bool { return b.d.find(id) != nil }

func (b *transaction) NewID() (domain.ExecutionID, error) {
	return domain.ExecutionID(b.d.newID()), nil
}
