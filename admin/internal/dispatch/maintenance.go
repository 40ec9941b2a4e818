package dispatch

import (
	"context"
	"slices"
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
	known, err := d.opt.Store.Maintenances(ctx)
	if err != nil {
		return err
	}
	stopped := known.Stopping(now)
	// One whose row was taken away, as by the end of a move, has no end on record.
	over := slices.ContainsFunc(d.stopped, func(s domain.MaintenanceScope) bool { return !slices.Contains(stopped, s) })
	if !over && !ended.After(d.resumed) {
		d.stopped = stopped
		return nil
	}
	if err := d.loadAll(ctx, d.allHeld()); err != nil {
		return err // the next look finds it ended still
	}
	d.stopped = stopped
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
