package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// resume loads what waited for the end of maintenance, once one has ended.
func (d *Dispatcher) resume(ctx context.Context) error {
	stopped, err := d.opt.Store.StoppedScopes(ctx)
	if err != nil {
		return err
	}
	over := slices.ContainsFunc(d.stopped, func(s domain.MaintenanceScope) bool { return !slices.Contains(stopped, s) })
	if !over {
		d.stopped = stopped
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
	d.stopped = stopped
	return nil
}

// underMaintenance reports whether nothing of an executor is to start, as far as this
// node knows.
func (d *Dispatcher) underMaintenance(tenant domain.TenantID, executor domain.ExecutorID, now time.Time) bool {
	return d.opt.Store.KnownMaintenances().Holds(now, &domain.Execution{TenantID: tenant, Executor: executor}) != nil
}
