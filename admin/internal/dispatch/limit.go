package dispatch

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Freed tells that executions left their instances, or the queue of a limit: who
// waits under the same limits may have room now. It never blocks, and costs
// nothing where there are no limits. What is not told here, because another node
// or nobody heard of it, is found by the sweep a second later.
func (d *Dispatcher) Freed(executions []domain.Execution) {
	for i := range executions {
		d.freedOne(&executions[i])
	}
}

func (d *Dispatcher) freedOne(e *domain.Execution) {
	if keys := d.opt.Store.LimitsOn(e.TenantID, e.Executor); len(keys) > 0 {
		d.admits.Add(keys...)
	}
}

// admit is the flush of the limits that may have room.
func (d *Dispatcher) admit(ctx context.Context, keys []domain.LimitKey) {
	select {
	case <-d.stop: // other nodes look after them
		return
	default:
	}
	seen := make(map[domain.LimitKey]bool, len(keys))
	keys = slices.DeleteFunc(keys, func(k domain.LimitKey) bool {
		had := seen[k]
		seen[k] = true
		return had
	})
	woken, err := d.opt.Store.AdmitWaiting(context.WithoutCancel(ctx), keys)
	d.opt.Later(woken...)
	if err != nil {
		d.admitFailures.failed(d.log, err, len(keys)) // the sweep tries again
		return
	}
	d.admitFailures.recovered(d.log)
}
