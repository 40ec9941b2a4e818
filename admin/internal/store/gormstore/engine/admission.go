package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// admitLimits bounds how many limits one transaction holds.
const admitLimits = 8

// AdmitWaiting is the only place where waiting under a limit ends well. It is
// not part of what ends runs: those transactions stay as they are, limits or
// not.
func (s *Admission) AdmitWaiting(ctx context.Context, keys []domain.LimitKey) ([]domain.Execution, error) {
	ctx, cancel := db.WithDeadline(ctx)
	defer cancel()
	all := keys == nil
	if all {
		var err error
		if keys, err = s.limitsToLook(ctx); err != nil {
			return nil, err
		}
	}
	keys = slices.Clone(keys)
	slices.SortFunc(keys, compareKeys)
	var woken []domain.Execution
	for part := range slices.Chunk(slices.Compact(keys), admitLimits) {
		for more := true; more; {
			some, again, err := s.admit(ctx, part, all)
			if err != nil {
				return woken, err
			}
			woken, more = append(woken, some...), again
		}
	}
	return woken, nil
}

func compareKeys(a, b domain.LimitKey) int {
	as, ak := SubjectOf(a)
	bs, bk := SubjectOf(b)
	return cmp.Or(cmp.Compare(as, bs), cmp.Compare(ak, bk))
}

// admit is AdmitWaiting in one transaction; again: the places at the head of a
// queue were given up, so others stand there now.
func (s *Admission) admit(ctx context.Context, keys []domain.LimitKey, skipLocked bool) (woken []domain.Execution, again bool, err error) {
	type admitted struct {
		b     *Batch
		moved []*run.Move
		again bool
	}
	landed := func(ctx context.Context, last admitted) (bool, error) { return s.landed(ctx, last.b) }
	did, err := db.ValueChecked(ctx, s.DB, "admit waiting executions", landed, func(t *db.Tx) (out admitted, err error) {
		if err := t.Guard(); err != nil {
			return out, err
		}
		limits, err := LockLimits(t, keys, skipLocked)
		if err != nil || len(limits) == 0 {
			return out, err
		}
		ids, err := loadHeads(t, limits)
		if err != nil {
			return out, err
		}
		// A waiter that another transaction works on is left to the next look.
		out.b, err = s.move(t, run.Request{Kind: run.Admit, IDs: ids}, func(b *Batch) error {
			b.Limits = limits
			for _, l := range limits {
				some, absent, err := b.Admit(l)
				if err == nil {
					err = dropDeleted(t, l, absent)
				}
				if err != nil {
					return err
				}
				out.moved = append(out.moved, some...)
			}
			return nil
		})
		if err != nil {
			return out, err
		}
		for _, l := range limits {
			out.again = out.again || len(l.Leave) > 0
			if err := removeIfDone(t, l); err != nil {
				return out, err
			}
		}
		return out, nil
	})
	for _, m := range did.moved {
		woken = append(woken, m.E)
	}
	return woken, did.again, err
}

// loadHeads reads the runs that may be admitted. Runs become holders that were offered
// by nodes which did not know of a limit.
func loadHeads(t *db.Tx, limits map[domain.LimitKey]*run.Limit) (ids []domain.ExecutionID, err error) {
	now, err := t.Clock()
	if err != nil {
		return nil, err
	}
	for _, l := range limits {
		if l.Unsettled(now) {
			if err := Adopt(t, l); err != nil {
				return nil, err
			}
		}
		if err := LoadPlaces(t, l, min(l.Free(), run.AdmitBatch)); err != nil {
			return nil, fmt.Errorf("load queue: %w", err)
		}
		for _, p := range l.Queue {
			l.Waiting[p.ID] = p
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// dropDeleted gives up the places of runs whose rows are gone; those that are
// there are locked by another transaction.
func dropDeleted(t *db.Tx, l *run.Limit, absent []domain.ExecutionID) error {
	if len(absent) == 0 {
		return nil
	}
	there, err := db.Set[domain.ExecutionID](t.Ctx, t.Conn, "SELECT id FROM executions WHERE id IN ("+db.IDList(absent)+")")
	for _, id := range absent {
		if !there[id] && err == nil {
			l.Dequeue(id)
		}
	}
	return err
}

// removeIfDone ends a limit that was taken away once nobody waits under it.
func removeIfDone(t *db.Tx, l *run.Limit) error {
	if l.Capacity > 0 {
		return nil
	}
	if err := LoadPlaces(t, l, 1); err != nil || len(l.Queue) > 0 {
		return err
	}
	return RemoveLimit(t, l)
}
