package dispatch

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// SettleInventory says what an instance has to do with the attempts it holds,
// in their order. What it has to drop and is due again is offered anew.
func (d *Dispatcher) SettleInventory(ctx context.Context, p store.SettleInventoryParams) ([]domain.Verdict, error) {
	settled, err := d.opt.Store.SettleInventory(ctx, p)
	if err != nil {
		return nil, err
	}
	verdicts := make([]domain.Verdict, len(settled))
	for i, s := range settled {
		verdicts[i] = s.Verdict
		if s.GivenBack {
			d.opt.Later(s.Execution)
		}
		if s.Verdict != domain.VerdictKeep {
			d.log.Info("attempt settled by inventory", "execution_id", p.Items[i].ID, "instance_id", p.Instance,
				"fence", p.Items[i].Fence, "state", s.Execution.State, "granted", s.Verdict == domain.VerdictGrant)
		}
	}
	return verdicts, nil
}
