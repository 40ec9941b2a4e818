package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// shardsOf makes up how a job's fires are cut.
func shardsOf(r *rand.Rand) domain.Sharding {
	s := domain.Sharding{
		Mode: domain.ShardFixed, Shards: 1 + r.IntN(4),
		Before: oneOf(r, "", "", handlerOnce, handlerSafe), After: oneOf(r, "", "", handlerOnce, handlerSafe),
		Timeout: oneOf(r, 0, 0, 12*time.Second),
	}
	if r.IntN(2) == 0 {
		s.Mode, s.Shards, s.OnGone = domain.ShardBroadcast, 0, oneOf(r, domain.GoneMiss, domain.GoneMove)
	}
	return s
}

// spread is SpreadExecutions.
func (d *database) spread(spreads []store.Spread) []store.SpreadResult {
	now := d.clock()
	out := make([]store.SpreadResult, len(spreads))
	order := make([]int, 0, len(spreads))
	for i, o := range spreads {
		if e := d.find(o.ID); e != nil && e.TenantID == o.Tenant {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return d.compareOffers(spreads[x].ID, spreads[y].ID) })
	for _, i := range order {
		out[i] = d.spreadOne(now, spreads[i].Since, d.find(spreads[i].ID))
	}
	for i := range out {
		if id := out[i].Execution.ID; id != 0 {
			out[i].Execution = *d.find(id)
		}
	}
	return out
}

func (d *database) spreadOne(now, since time.Time, e *domain.Execution) store.SpreadResult {
	j := d.jobs[e.JobID]
	spec := j.of(e)
	r := store.SpreadResult{OfferResult: store.OfferResult{Status: store.OfferGone, Execution: *e, Spec: spec}}
	if e.State != domain.Due || now.Before(e.NotBefore) || !spec.Sharding.On() || e.IsPart() || !d.enter(now, since, nil, j, e, &r.OfferResult) {
		return r
	}
	var instances []domain.InstanceID
	if spec.Sharding.Mode == domain.ShardBroadcast && e.NextPart(spec.Sharding) == domain.PartShard {
		if instances = d.serving(now); len(instances) == 0 {
			if spec.SlotLimit() > 0 && !e.HoldsSlot {
				d.enqueue(j, e)
			}
			_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
				return domain.Effects{}, e.Wait(now, domain.ReasonWaitInstance, "", now.Add(time.Second))
			})
			r.Status = store.OfferBlocked
			return r
		}
	}
	_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (fx domain.Effects, err error) {
		if spec.SlotLimit() > 0 && !e.HoldsSlot {
			e.HoldsSlot = true
			j.holders++
			j.dequeue(e.ID)
		}
		r.Parts, err = e.Spread(now, spec, instances, d.newPartID)
		return fx, err
	})
	if d.rules.dropShard && len(r.Parts) > 1 {
		r.Parts = r.Parts[1:]
	}
	for i := range r.Parts {
		d.insert(r.Parts[i])
	}
	r.Status = store.OfferMade
	return r
}

func (d *database) newPartID() (domain.ExecutionID, error) { return domain.ExecutionID(d.newID()), nil }

// serving are the instances that a broadcast reaches now.
func (d *database) serving(now time.Time) (out []domain.InstanceID) {
	for id, i := range d.instances {
		if i.GoneAt.IsZero() && i.LeaseUntil.After(now) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// partsOf lists a parent's parts.
func (d *database) partsOf(parent domain.ExecutionID) (out []*domain.Execution) {
	for _, id := range d.order {
		if e := d.find(id); e.Parent == parent {
			out = append(out, e)
		}
	}
	return out
}

// parentsOf names the parents of these parts, and those that are parents.
func (d *database) parentsOf(list []*domain.Execution, themselves bool) (ids []domain.ExecutionID) {
	for _, e := range list {
		if e.IsPart() {
			ids = append(ids, e.Parent)
		} else if themselves && e.OnlyPartsMove() {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// advance moves parents on by what their parts say.
func (d *database) advance(now time.Time, parents []domain.ExecutionID) (woken, ended []domain.Execution) {
	for _, id := range parents {
		p := d.find(id)
		if p == nil || !p.OnlyPartsMove() {
			continue
		}
		family := domain.Family{Shards: map[domain.State]int{}}
		parts := d.partsOf(id)
		for _, e := range parts {
			family.Add(e)
		}
		if d.rules.endEarly && family.Living == 1 {
			family.Living = 0
		}
		if d.rules.forgetParent && id%3 == 0 {
			continue
		}
		step := domain.StepNone
		_ = d.move(now, p, func(j *jobRow, e *domain.Execution) (fx domain.Effects, err error) {
			step, fx = e.Advance(now, family, j.of(e))
			return fx, nil
		})
		switch step {
		case domain.StepReady:
			woken = append(woken, *p)
		case domain.StepAfter:
			hook, err := p.BearAfter(now, d.jobs[p.JobID].of(p), nil, d.newPartID)
			if err == nil {
				d.insert(hook)
				woken = append(woken, hook)
			}
		case domain.StepEnded:
			ended = append(ended, *p)
		}
	}
	return woken, ended
}

// cancelParts is CancelParts.
func (d *database) cancelParts(parents []domain.Execution) (out store.CancelledParts) {
	now := d.begin()
	var ids []domain.ExecutionID
	for _, p := range parents {
		ids = append(ids, p.ID)
		parent := d.find(p.ID)
		if parent == nil || parent.State != domain.Cancelling {
			continue
		}
		for _, e := range d.partsOf(p.ID) {
			if e.State.Terminal() {
				continue
			}
			_ = d.move(now, e, func(_ *jobRow, e *domain.Execution) (domain.Effects, error) {
				return e.RequestCancel(now, parent.Reason, parent.Message)
			})
			if e.State.Terminal() {
				out.Ended = append(out.Ended, *e)
			} else {
				out.Cancel = append(out.Cancel, *e)
			}
		}
	}
	slices.Sort(ids)
	woken, ended := d.advance(now, slices.Compact(ids))
	out.Ended = append(out.Ended, ended...)
	for _, id := range d.jobOrder {
		woken = append(woken, d.wake(now, d.jobs[id])...)
	}
	out.Woken = woken
	return out
}

// holder is who holds the slot for an execution: its parent, or itself.
func (d *database) holder(e *domain.Execution) *domain.Execution {
	if !e.IsPart() {
		return e
	}
	return d.find(e.Parent)
}

// checkParent looks at every change in a family: a parent has ended only when
// all of its parts have, and nothing of it comes back after that.
func (w *world) checkParent(before, after *domain.Execution) {
	if after.IsPart() {
		if p := w.db.find(after.Parent); !after.State.Terminal() && p.State.Terminal() {
			w.fail("family: part %d of %d is %s, and its parent is %s", after.ID, p.ID, after.State, p.State)
		}
		return
	}
	if !after.OnlyPartsMove() || before == nil || !after.State.Terminal() || before.State.Terminal() {
		return
	}
	for _, e := range w.db.partsOf(after.ID) {
		if !e.State.Terminal() {
			w.fail("family: execution %d ended as %s while its part %d is %s", after.ID, after.State, e.ID, e.State)
		}
	}
}

// checkFamilies: each shard is there exactly once, each instance of a broadcast
// has one, and what became of the shards is what became of the fire.
func (w *world) checkFamilies() {
	for _, id := range w.db.order {
		p := w.db.find(id)
		if p.Stage == domain.StageNone {
			continue
		}
		shards, bound, succeeded := map[int]int{}, map[domain.InstanceID]int{}, 0
		for _, e := range w.db.partsOf(id) {
			if e.Part != domain.PartShard {
				continue
			}
			shards[e.Shard]++
			if e.Bound != 0 {
				bound[e.Bound]++
			}
			if e.State == domain.Succeeded {
				succeeded++
			}
		}
		cut := p.Stage == domain.StageShards || p.Stage == domain.StageAfter
		for shard := range p.Shards {
			if cut && shards[shard] != 1 {
				w.fail("family: execution %d has %d rows of shard %d of %d", id, shards[shard], shard, p.Shards)
			}
		}
		for i, n := range bound {
			if n > 1 {
				w.fail("family: execution %d has %d shards for instance %d", id, n, i)
			}
		}
		switch {
		case !cut && len(shards) > 0, cut && len(shards) != p.Shards:
			w.fail("family: execution %d has %d shards in stage %s", id, len(shards), p.Stage)
		case p.State == domain.Succeeded && succeeded != p.Shards:
			w.fail("family: execution %d succeeded, %d of its %d shards did", id, succeeded, p.Shards)
		}
	}
}
