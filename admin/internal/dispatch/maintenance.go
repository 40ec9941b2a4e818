package dispatch

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// resumeFor is how long after the end of maintenance a run may still begin to wait for
// it: a transaction decides by what its node knew half a second ago, and takes a while.
const resumeFor = 3 * time.Second

// resume loads what waited for the end of maintenance, once one has ended: whether this
// node saw that it was on or not, for a short one may lie between two looks.
func (d *Dispatcher) resume(ctx context.Context) error {
	ended, now, err := d.opt.Store.MaintenanceEnded(ctx)
	if err != nil {
		return err
	}
	if !ended.After(d.resumed) {
		return nil
	}
	var partitions []int
	for p, held := 0, d.holding(); p < domain.Partitions; p++ {
		if held(p) {
			partitions = append(partitions, p)
		}
	}
	if err := d.load(ctx, partitions, nil); err != nil {
		return err // the next look finds it ended still
	}
	if now.Sub(ended) > resumeFor {
		d.resumed = ended
	}
	return nil
}

// underMaintenance reports whether nothing of an executor is to start, as far as this
// node knows.
func (d *Dispatcher) underMaintenance(tenant domain.TenantID, executor domain.ExecutorID, now time.Time) bool {
	return d.opt.Store.KnownMaintenances().Holds(now, &domain.Execution{TenantID: tenant, Executor: executor}) != nil
}
