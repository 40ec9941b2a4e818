package dispatch

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// boundTo leaves only the instance that an execution is bound to; 0 = all.
func boundTo(instance domain.InstanceID, targets []Target) []Target {
	if instance == 0 {
		return targets
	}
	for _, t := range targets {
		if t.InstanceID() == instance {
			return []Target{t}
		}
	}
	return nil
}

// spread lets the database make the next parts of runs, and fires those. Which
// instances a broadcast reaches is decided there: this node may not see all.
func (d *Dispatcher) spread(ctx context.Context, parents []domain.Execution) {
	if len(parents) == 0 {
		return
	}
	spreads := domain.Collect(parents, func(e *domain.Execution) store.Spread {
		return store.Spread{Tenant: e.TenantID, ID: e.ID, Since: waitsSince(e)}
	})
	results, err := d.opt.Store.SpreadExecutions(ctx, spreads)
	if err != nil {
		d.postpone(&d.spreadFailures, err, parents...)
		return
	}
	d.spreadFailures.recovered(d.log)
	var ended []domain.Execution
	for _, r := range results {
		ended = append(ended, d.cancels.stopCovered(r.Covered)...)
		switch {
		case r.Status == store.OfferDiscarded:
			ended = append(ended, r.Execution)
		case r.Status == store.OfferGone && !r.Execution.State.Terminal() && r.Execution.NotBefore.After(d.opt.Now()):
			d.opt.Later(r.Execution) // the database's clock was set back
		}
		d.fire(r.Parts)
	}
	d.ended(ended)
}

// cancelParts is the flush of the parents that are to be cancelled. What does not
// get through is swept.
func (cs *canceller) cancelParts(ctx context.Context, parents []domain.Execution) {
	slices.SortFunc(parents, func(a, b domain.Execution) int { return int(a.ID - b.ID) })
	parents = slices.CompactFunc(parents, func(a, b domain.Execution) bool { return a.ID == b.ID })
	out, err := cs.store.CancelParts(context.WithoutCancel(ctx), parents)
	if err != nil {
		cs.log.Warn("parts could not be cancelled; the sweep tries again", "count", len(parents), "err", err)
		return
	}
	for _, e := range out.Cancel {
		cs.send(e)
	}
	cs.later(out.Woken...)
	cs.ended(out.Ended)
}
