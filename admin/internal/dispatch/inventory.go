package dispatch

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// SettleInventories says what instances have to do with the attempts they hold,
// in their order. What they have to drop and is due again is offered anew.
func (d *Dispatcher) SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []domain.SettledInventory {
	settled := d.opt.Store.SettleInventories(ctx, list)
	out := make([]domain.SettledInventory, len(list))
	for i, p := range list {
		if out[i].Err = settled[i].Err; out[i].Err == nil {
			out[i].Verdicts = d.settled(p, settled[i].Items)
		}
	}
	return out
}

func (d *Dispatcher) settled(p store.SettleInventoryParams, settled []store.SettledItem) []domain.Verdict {
	verdicts := make([]domain.Verdict, len(settled))
	dropped := 0 // and never changed: an instance names as many of these as it likes
	for i, s := range settled {
		verdicts[i] = s.Verdict
		if s.GivenBack {
			d.opt.Later(s.Execution)
		}
		if s.Verdict == domain.VerdictDrop && !s.GivenBack {
			dropped++
		} else if s.Verdict != domain.VerdictKeep {
			d.log.Info("attempt settled by inventory", "execution_id", p.Items[i].ID, "instance_id", p.Instance,
				"fence", p.Items[i].Fence, "state", s.Execution.State, "granted", s.Verdict == domain.VerdictGrant)
		}
	}
	if dropped > 0 {
		d.log.Info("attempts dropped by inventory", "count", dropped, "instance_id", p.Instance)
	}
	return verdicts
}
