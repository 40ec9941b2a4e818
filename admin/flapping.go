package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
)

// oncePerHour is a key that is the same for what is told once an hour, however many
// nodes notice.
func (a *Admin) oncePerHour(what string) string {
	return fmt.Sprintf("%s:%d", what, a.clock.Now().Unix()/int64(time.Hour/time.Second))
}

// flapping tells the operators of an executor whose processes come and go: once for
// all of its names.
func (a *Admin) flapping(f gateway.Flapping) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	event := domain.AlertEvent{
		TenantID: f.Tenant, Kind: domain.AlertFlapping, Executor: f.Executor, DedupeKey: a.oncePerHour(fmt.Sprintf("%s:%s", domain.AlertFlapping, f.Executor)),
		Detail: fmt.Sprintf("executor %q, instance %q: %d processes ended within %s; perhaps others of the executor as well",
			f.Name, f.Instance, f.Strikes, f.Within),
	}
	if err := a.store.RecordAlerts(ctx, []domain.AlertEvent{event}); err != nil {
		a.log.Warn("the alert about a flapping executor cannot be written", "executor_id", f.Executor, "err", err)
		return
	}
	a.alerting.Nudge()
}

const (
	// overloadLag is how late planning is when the operators are told, though the
	// database answers.
	overloadLag = 10 * time.Second
	// overloadLookEvery is how often a node looks whether it is.
	overloadLookEvery = 5 * time.Second
)

// tellOverload tells the operators that this node's tenants are held back, because
// more is due than it can send out, and that their runs are late by that.
func (a *Admin) tellOverload(ctx context.Context) error {
	return a.overload(ctx, a.planner.HeldBack(), a.planner.Lag())
}

func (a *Admin) overload(ctx context.Context, heldBack bool, lag time.Duration) error {
	if !heldBack || lag < overloadLag {
		return nil
	}
	event := domain.AlertEvent{
		Kind: domain.AlertOverload, DedupeKey: a.oncePerHour(string(domain.AlertOverload)),
		Detail: fmt.Sprintf("node %q is %s late with planning; perhaps others are as well", a.members.self.Name, lag.Round(time.Second)),
	}
	if err := a.store.RecordAlerts(ctx, []domain.AlertEvent{event}); err != nil {
		return fmt.Errorf("write the alert: %w", err)
	}
	a.alerting.Nudge()
	return nil
}
