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
	// end ends the living sessions that a denial names, and tells how many.
	end func(domain.Denial) int
	log *slog.Logger
	now chan struct{} // capacity 1: look at once; nobody closes it

	since time.Time          // owned by Run
	seen  map[int64]struct{} // owned by Run: denials that were followed, by id
}

// NewDenials returns Denials; it starts nothing.
func NewDenials(store store.Trust, end func(domain.Denial) int, logger *slog.Logger) *Denials {
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
			if n := d.end(one); n > 0 {
				d.log.Warn("denied: its sessions are ended", "executor_id", one.Executor, "kind", one.Kind, "subject", one.Subject, "sessions", n)
			}
		}
		seen[one.ID] = struct{}{}
	}
	d.seen = seen
	return nil
}

// Denied returns CodeInstanceDenied when the boot, or the certificate with this
// serial number, is kept out.
func (d *Denials) Denied(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, bootID, serial string) error {
	subjects := []string{bootID}
	if serial != "" {
		subjects = append(subjects, serial)
	}
	found, err := d.store.FindDenial(ctx, tenant, executor, subjects...)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look for denials: %w", err)
	}
	return domain.Errorf(domain.CodeInstanceDenied, "an administrator has denied this %s; a new process has to be started", found.Kind)
}
