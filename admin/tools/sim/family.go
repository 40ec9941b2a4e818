package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
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
