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

// move is one transaction: rows are loaded, decide decides, and everything is saved.
func move[T any](d *database, q run.Request, known *limitsKnown, decide func(b *transaction) (T, error)) T {
	b := d.load(q, known)
	out, err := decide(b)
	must(err)
	b.save()
	if waiters := d.successors(b.Freed()); len(waiters) > 0 {
		move(d, run.Request{Kind: run.Successors, IDs: waiters}, nil, func(*transaction) (any, error) { return nil, nil })
	}
	return out
}

// successors are the first waiters for the slots of jobs.
func (d *database) successors(jobs []domain.JobID) (ids []domain.ExecutionID) {
	for _, id := range jobs {
		if waiters := d.jobs[id].waiters; len(waiters) > 0 {
			ids = append(ids, waiters[0])
		}
	}
	return ids
}

func (d *database) load(q run.Request, known *limitsKnown) *transaction {
	b := &transaction{d: d, before: map[domain.ExecutionID]domain.Execution{}}
	b.Batch = run.Batch{
		Kind: q.Kind, Now: d.clock(), Moves: map[domain.ExecutionID]*run.Move{}, Slots: map[domain.JobID]*run.Slot{}, Limits: map[domain.LimitKey]*run.Limit{},
		Parents: map[domain.ExecutionID]bool{}, Source: b,
	}
	if !d.rules.skipMisfire {
		b.Misfire = d.misfire
	}
	b.add(q.IDs...)
	for _, p := range q.ParentsOf(b.facts()) {
		b.Parents[p] = !d.rules.forgetParent || p%3 > 0
		b.add(p)
	}
	var on run.Known
	if known != nil {
		on.Limits = known.keys
	}
	needs := q.Needs(b.facts(), on)
	b.loadLimits(needs.Limits)
	b.loadSlots(needs.Slots)
	return b
}

func (b *transaction) facts() (facts []run.Fact) {
	for _, m := range b.Moves {
		facts = append(facts, run.FactOf(&m.E, m.Spec))
	}
	return facts
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

func (b *transaction) loadSlots(needs map[domain.JobID]*run.SlotNeed) {
	for job, need := range needs {
		j := b.d.jobs[job]
		s := run.LoadedSlot(job, tenant, int64(j.holders), int64(len(j.waiters)))
		if b.d.rules.skipQueueBound {
			s.Waiters, s.WaitersWas = 0, 0
		}
		if b.d.rules.skipSlot {
			s.Holders, s.HoldersWas = -1000, -1000
		}
		b.Slots[job] = s
		for i, id := range j.waiters {
			first := i < need.Depth()
			if first || b.Moves[id] != nil {
				s.InQueue(run.WaiterOf(b.d.find(id)), first)
			}
		}
	}
	for job, s := range b.Slots {
		if b.Kind.Wakes() || needs[job].Covers {
			for _, w := range s.Queue {
				b.add(w.ID)
			}
		}
		if !needs[job].Covers {
			continue
		}
		for _, id := range b.d.living() {
			if e := b.d.find(id); e.JobID == job && e.HoldsSlot {
				b.add(id)
			}
		}
	}
}

func (b *transaction) loadLimits(places map[domain.LimitKey][]run.Place) {
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
		l.Queue = slices.Clone(row.queue[:min(len(row.queue), int(l.Reach(len(list))))])
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
	must(b.Conclude())
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
		if domain.AwaitsStart(&before) != domain.AwaitsStart(&m.E) || domain.AwaitsStart(&m.E) && b.Waits[id].Line != 0 {
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
	b.Stored()
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
		part := b.Moves.AsMoved(*e)
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
