package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/store"
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

// lostEvery is how often a node looks for lost instances.
const lostEvery = 10 * time.Second

// tellLostInstances records an alert of lost instances once for each executor, and again
// when it loses another one. All nodes look, and write the same key.
func (a *Admin) tellLostInstances(ctx context.Context) error {
	list, err := a.store.ListLostInstances(ctx)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := a.store.RecordAlerts(ctx, domain.Collect(list, lostEvent)); err != nil {
		return fmt.Errorf("write the alert: %w", err)
	}
	a.alerting.Nudge()
	return nil
}

// maxLostNames bounds how many instances a message names.
const maxLostNames = 10

func lostEvent(x *store.LostInstances) domain.AlertEvent {
	names, more := x.Lost, ""
	if len(names) > maxLostNames {
		names, more = names[:maxLostNames], fmt.Sprintf(" and %d more", len(names)-maxLostNames)
	}
	return domain.AlertEvent{
		TenantID: x.Tenant, Kind: domain.AlertInstanceGone, Executor: x.Executor, DedupeKey: fmt.Sprintf("%s:%s:%s", domain.AlertInstanceGone, x.Executor, x.Newest),
		Detail: fmt.Sprintf("executor %q: %d of %d instances gone since %s, capacity %d %%: %s%s", x.Name, len(x.Lost), len(x.Lost)+x.Living,
			x.Since.UTC().Format(time.RFC3339), 100*x.LivingSlots/max(1, x.LivingSlots+x.LostSlots), strings.Join(names, ", "), more),
	}
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

// tellStalled tells the operators of a run that stands still beside a free slot.
func (a *Admin) tellStalled(ctx context.Context) error {
	stands := a.dispatcher.Stalled()
	if stands == 0 {
		return nil
	}
	event := domain.AlertEvent{
		Kind: domain.AlertStalled, DedupeKey: a.oncePerHour(string(domain.AlertStalled)),
		Detail: fmt.Sprintf("node %q has room for a run that has not started for %s", a.members.self.Name, stands.Round(time.Second)),
	}
	if err := a.store.RecordAlerts(ctx, []domain.AlertEvent{event}); err != nil {
		return fmt.Errorf("write the alert: %w", err)
	}
	a.alerting.Nudge()
	return nil
}
