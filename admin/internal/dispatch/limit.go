package dispatch

import (
	"context"
	"log/slog"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// limiter looks after runs that wait under a limit.
type limiter struct {
	// fixed after construction
	store Store
	later func(...domain.Execution)
	log   *slog.Logger
	queue *batch.Queue[domain.LimitKey]

	failures failureLog
	stop     <-chan struct{} // set by Run before its workers begin
}

// freed tells that executions left their instances, or the queue of a limit. Runs
// that wait under the same limits may have room now. It never blocks, and costs
// nothing without limits. The sweep finds the others a second later.
func (ls *limiter) freed(executions []domain.Execution) {
	for i := range executions {
		ls.freedOne(&executions[i])
	}
}

func (ls *limiter) freedOne(e *domain.Execution) {
	if keys := ls.store.LimitsOn(e.TenantID, e.Executor); len(keys) > 0 {
		ls.queue.Add(keys...)
	}
}

// admit is the flush of the limits that may have room.
func (ls *limiter) admit(ctx context.Context, keys []domain.LimitKey) {
	select {
	case <-ls.stop: // other nodes look after them
		return
	default:
	}
	seen := make(map[domain.LimitKey]bool, len(keys))
	keys = slices.DeleteFunc(keys, func(k domain.LimitKey) bool {
		had := seen[k]
		seen[k] = true
		return had
	})
	woken, err := ls.store.AdmitWaiting(context.WithoutCancel(ctx), keys)
	ls.later(woken...)
	if err != nil {
		ls.failures.failed(ls.log, err, len(keys)) // the sweep tries again
		return
	}
	ls.failures.recovered(ls.log)
}
