package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
)

// flapping tells the operators of an executor whose processes come and go:
// once an hour and executor, however many names and nodes notice.
func (a *Admin) flapping(f gateway.Flapping) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	event := domain.AlertEvent{
		TenantID: f.Tenant, Kind: domain.AlertFlapping,
		DedupeKey: fmt.Sprintf("%s:%s:%d", domain.AlertFlapping, f.Executor, a.clock.Now().Unix()/int64(time.Hour/time.Second)),
		Detail: fmt.Sprintf("executor %q, instance %q: %d processes ended within %s; perhaps others of the executor as well",
			f.Name, f.Instance, f.Strikes, f.Within),
	}
	if err := a.store.RecordAlerts(ctx, []domain.AlertEvent{event}); err != nil {
		a.log.Warn("the alert about a flapping executor cannot be written", "executor_id", f.Executor, "err", err)
		return
	}
	a.alerting.Nudge()
}
