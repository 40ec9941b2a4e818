package auth

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// denialCheck is how often a node looks for new denials; who comes in is
	// checked at the door.
	denialCheck = 2 * time.Second
	// denialOverlap covers transactions that were written down earlier than
	// they became visible.
	denialOverlap = 30 * time.Second
)

// Denials keeps out whom an administrator has denied.
type Denials struct {
	store store.Trust
	// end ends the living sessions that a denial names, and tells of which instances.
	end func(domain.Denial) []domain.InstanceID
	log *slog.Logger
	now chan struct{} // capacity 1: look at once; nobody closes it

	since time.Time          // owned by Run
	seen  map[int64]struct{} // owned by Run: denials that were followed, by id
}

// NewDenials returns Denials; it starts nothing.
func NewDenials(store store.Trust, end func(domain.Denial) []domain.InstanceID, logger *slog.Logger) *Denials {
	return &Denials{store: store, end: end, log: logger.With("component", "authority"), now: make(chan struct{}, 1), seen: map[int64]struct{}{}}
}

// Nudge lets Run look at once.
func (d *Denials) Nudge() {
	select {
	case d.now <- struct{}{}:
	default:
	}
}

// Run ends sessions that are denied while they stand, until ctx ends.
func (d *Denials) Run(ctx context.Context) {
	tick := time.NewTicker(denialCheck)
	defer tick.Stop()
	for {
		if err := d.follow(ctx); err != nil && ctx.Err() == nil {
			d.log.Debug("denials could not be read", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.now:
		}
	}
}

// follow looks at what is new; the first time, at everything.
func (d *Denials) follow(ctx context.Context) error {
	if d.since.IsZero() {
		d.since = time.UnixMilli(1)
	}
	now, list, err := d.store.ListDenialsSince(ctx, d.since)
	if err != nil {
		return err
	}
	d.since = now.Add(-denialOverlap)
	seen := make(map[int64]struct{}, len(list))
	for _, one := range list {
		if _, old := d.seen[one.ID]; !old {
			d.expel(ctx, one)
		}
		seen[one.ID] = struct{}{}
	}
	d.seen = seen
	return nil
}

// expel ends the sessions here, and takes their instances off the list.
func (d *Denials) expel(ctx context.Context, one domain.Denial) {
	ended := d.end(one)
	if len(ended) == 0 {
		return
	}
	d.log.Warn("denied: its sessions are ended", "executor_id", one.Executor, "kind", one.Kind, "subject", one.Subject, "sessions", len(ended))
	if err := d.store.MarkDenied(ctx, one.TenantID, one.Executor, ended); err != nil {
		d.log.Warn("denied instances stay on the list until their leases run out", "executor_id", one.Executor, "err", err)
	}
}

// Denied returns, for each of the list, an error with CodeInstanceDenied when the
// boot, or the certificate with its serial number, is kept out. An error of its
// own is everybody's: without an answer nobody comes in.
func (d *Denials) Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error) {
	questions := make([]store.DenialQuery, len(list))
	for i, who := range list {
		questions[i] = store.DenialQuery{Tenant: who.Tenant, Executor: who.Executor, Subjects: []string{who.BootID}}
		if who.Serial != "" {
			questions[i].Subjects = append(questions[i].Subjects, who.Serial)
		}
	}
	found, err := d.store.FindDenials(ctx, questions)
	if err != nil {
		return nil, fmt.Errorf("look for denials: %w", err)
	}
	out := make([]error, len(list))
	for i, denial := range found {
		if denial != nil {
			out[i] = domain.Errorf(domain.CodeInstanceDenied, "an administrator has denied this %s; a new process has to be started", denial.Kind)
		}
	}
	return out, nil
}
