package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// maxQueueRead bounds how much of a queue an offer looks at. Beyond it a run may
// overtake others, but never a limit.
const maxQueueRead = 1000

// findLimits returns the limits that bound the executions, with their places
// under each. Where there is none, and that is known for a second, it costs
// nothing.
func (b *Batch) findLimits(ids []domain.ExecutionID) (map[domain.LimitKey][]run.Place, error) {
	known, err := b.s.limits.load(b.Tx.Ctx, b.Tx.Conn)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	found := map[domain.LimitKey][]run.Place{}
	for _, id := range ids {
		r := b.known[id].ref
		for _, k := range keysOn(known, r.tenant, r.executor) {
			found[k] = append(found[k], b.placeOf(id))
		}
	}
	return found, nil
}

// loadLimits locks limits, and reads who of these and of others waits under them.
func (b *Batch) loadLimits(found map[domain.LimitKey][]run.Place) (err error) {
	if len(found) == 0 {
		return nil
	}
	if b.Limits, err = LockLimits(b.Tx, slices.Collect(maps.Keys(found)), false); err != nil {
		return err
	}
	for k, l := range b.Limits {
		if err := loadMembers(b.Tx, l, found[k]); err != nil {
			return fmt.Errorf("find waiting executions: %w", err)
		}
		if err := LoadPlaces(b.Tx, l, min(l.Free()+int64(len(found[k])), maxQueueRead)); err != nil {
			return fmt.Errorf("load queue: %w", err)
		}
	}
	return nil
}

// placeOf is run.PlaceOf without the row.
func (b *Batch) placeOf(id domain.ExecutionID) run.Place {
	r := b.known[id].ref
	e := domain.Execution{ID: id, FireAt: db.Instant(r.fireAt)}
	if spec := b.specs[r.spec()].Spec; spec != nil {
		e.Priority = spec.Priority
	}
	return run.PlaceOf(&e)
}
