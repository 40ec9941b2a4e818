// Package watchdog answers: what goes wrong on this node that operators and owners must know?
//
// It records alerts of executors whose processes come and go, of lost instances, of overload
// and of runs that stand still. Each alert has a key, so that it is told once however many
// nodes notice. It sums up in the log how runs have ended.
package watchdog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Options configures a Watchdog.
type Options struct {
	Store interface {
		store.Outbox
		ListLostInstances(ctx context.Context) ([]store.LostInstances, error)
	}
	// Recorded is called when the outbox has new events. It must not block.
	Recorded func()
	// Unexplained leaves out lost instances that another event explains.
	Unexplained func(ctx context.Context, list []store.LostInstances) ([]store.LostInstances, error)
	Node        string           // its name
	Now         func() time.Time // the database's clock
	// Planning says whether this node holds its tenants back, and how late it plans.
	Planning func() (heldBack bool, lag time.Duration)
	// Stalled is for how long a run has stood still beside a free slot; 0: none has.
	Stalled func() time.Duration
	Logger  *slog.Logger
}

// Watchdog looks at one node. Its methods are chores, but for Flapping.
type Watchdog struct{ opt Options }

// New returns a Watchdog; it starts nothing.
func New(o Options) *Watchdog {
	o.Logger = o.Logger.With("component", "watchdog")
	return &Watchdog{o}
}

const (
	// LostEvery and LoadEvery are the paces of the looks for lost instances, and for
	// overload and stalled runs.
	LostEvery = 10 * time.Second
	LoadEvery = 5 * time.Second
	// overloadLag is how late planning is when the operators are told, though the
	// database answers.
	overloadLag = 10 * time.Second
	// maxLostNames bounds how many instances a message names.
	maxLostNames = 10
	// flappingTime bounds the write of an alert about a flapping executor.
	flappingTime = 5 * time.Second
)

// record writes alerts and lets them be told at once.
func (w *Watchdog) record(ctx context.Context, events ...domain.AlertEvent) error {
	if err := w.opt.Store.RecordAlerts(ctx, events); err != nil {
		return fmt.Errorf("write the alert: %w", err)
	}
	w.opt.Recorded()
	return nil
}

// oncePerHour is a key that is the same for what is told once an hour, however many
// nodes notice.
func (w *Watchdog) oncePerHour(what string) string {
	return fmt.Sprintf("%s:%d", what, w.opt.Now().Unix()/int64(time.Hour/time.Second))
}

// Flapping tells the operators of an executor whose processes come and go: once for
// all of its names.
func (w *Watchdog) Flapping(f domain.Flapping) {
	ctx, cancel := context.WithTimeout(context.Background(), flappingTime)
	defer cancel()
	err := w.record(ctx, domain.AlertEvent{
		TenantID: f.Tenant, Kind: domain.AlertFlapping, Executor: f.Executor, DedupeKey: w.oncePerHour(fmt.Sprintf("%s:%s", domain.AlertFlapping, f.Executor)),
		Detail: fmt.Sprintf("executor %q, instance %q: %d processes ended within %s; perhaps others of the executor as well",
			f.Name, f.Instance, f.Strikes, f.Within),
	})
	if err != nil {
		w.opt.Logger.Warn("the alert about a flapping executor cannot be written", "executor_id", f.Executor, "err", err)
	}
}

// LookForLost records an alert of lost instances once for each executor, and again
// when it loses another one. All nodes look, and write the same key.
func (w *Watchdog) LookForLost(ctx context.Context) error {
	list, err := w.opt.Store.ListLostInstances(ctx)
	if err == nil && len(list) > 0 {
		list, err = w.opt.Unexplained(ctx, list)
	}
	if err != nil || len(list) == 0 {
		return err
	}
	return w.record(ctx, domain.Collect(list, lostEvent)...)
}

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

// LookForOverload tells the operators that this node's tenants are held back, because
// more is due than it can send out, and that their runs are late by that.
func (w *Watchdog) LookForOverload(ctx context.Context) error {
	heldBack, lag := w.opt.Planning()
	if !heldBack || lag < overloadLag {
		return nil
	}
	return w.record(ctx, domain.AlertEvent{
		Kind: domain.AlertOverload, DedupeKey: w.oncePerHour(string(domain.AlertOverload)),
		Detail: fmt.Sprintf("node %q is %s late with planning; perhaps others are as well", w.opt.Node, lag.Round(time.Second)),
	})
}

// LookForStalled tells the operators of a run that stands still beside a free slot.
func (w *Watchdog) LookForStalled(ctx context.Context) error {
	stands := w.opt.Stalled()
	if stands == 0 {
		return nil
	}
	return w.record(ctx, domain.AlertEvent{
		Kind: domain.AlertStalled, DedupeKey: w.oncePerHour(string(domain.AlertStalled)),
		Detail: fmt.Sprintf("node %q has room for a run that has not started for %s", w.opt.Node, stands.Round(time.Second)),
	})
}
