package dispatch

import (
	"context"
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Repeat is Resend for executions without their specs.
func (d *Dispatcher) Repeat(ctx context.Context, offered []domain.Execution) {
	var offers []store.OfferResult
	for _, e := range offered {
		if d.opt.Fleet.TargetOf(e.Instance) == nil {
			continue
		}
		spec, err := d.opt.Store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
		if err != nil {
			d.log.Warn("one-step offers are left to the sweep", "err", err)
			break
		}
		offers = append(offers, store.OfferResult{Status: store.OfferMade, Execution: e, Spec: spec.For(e.Part)})
	}
	d.Resend(offers)
}

// Resend sends one-step offers again whose start nobody has reported, if this
// node serves their instances. The rows name instance and fence already, so
// that an instance which has one of them says so and does nothing else. One that
// has not refuses it, and the run is offered anew: the time of the offer that was
// lost is over (SDKs that do not know this start it).
func (d *Dispatcher) Resend(offers []store.OfferResult) {
	var out batch.Groups[Target, store.OfferResult]
	for _, o := range offers {
		if t := d.opt.Fleet.TargetOf(o.Execution.Instance); t != nil {
			if !t.Holds(o.Execution.ID, o.Execution.Fence) {
				_ = t.Reserve(o.Execution.ID, o.Execution.Fence, t.Weight(o.Spec.Handler), len(o.Spec.InputOf(&o.Execution))) // a full instance refuses by itself
			}
			o.Again = true
			out.Add(t, o)
		}
	}
	for _, g := range out {
		g.Key.SendOffers(g.Items)
	}
}

// canceller passes cancels on to instances, and those of parents to their parts.
type canceller struct {
	// fixed after construction
	store Store
	fleet Fleet
	later func(...domain.Execution)
	ended func([]domain.Execution)
	log   *slog.Logger
	queue *batch.Queue[domain.Execution] // parents whose parts are to be cancelled
}

// stopCovered tells covered runs to stop, and returns those that have ended.
func (cs *canceller) stopCovered(covered []domain.Execution) (ended []domain.Execution) {
	for _, e := range covered {
		if e.State.Terminal() {
			ended = append(ended, e)
		} else {
			cs.send(e)
		}
	}
	return ended
}

// send passes a cancel on, if this node serves the instance. The sweep repeats a
// cancel that did not get through. A parent's cancel goes to its parts.
func (cs *canceller) send(e domain.Execution) {
	if e.OnlyPartsMove() {
		cs.queue.Add(e)
		return
	}
	if t := cs.fleet.TargetOf(e.Instance); t != nil {
		t.SendCancel(e)
	}
}
