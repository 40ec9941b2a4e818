package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// admitLimits bounds how many limits one transaction holds.
const admitLimits = 8

// AdmitWaiting is the only place where waiting under a limit ends well. It is
// not part of what ends runs: those transactions stay as they are, limits or
// not.
func (s *Store) AdmitWaiting(ctx context.Context, keys []domain.LimitKey) ([]domain.Execution, error) {
	ctx, cancel := withDeadline(ctx)
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
	as, ak := subjectOf(a)
	bs, bk := subjectOf(b)
	return comparePlaces(place{as, domain.ExecutionID(ak)}, place{bs, domain.ExecutionID(bk)})
}

// admit is AdmitWaiting in one transaction; again: the places at the head of a
// queue were given up, so others stand there now.
func (s *Store) admit(ctx context.Context, keys []domain.LimitKey, skipLocked bool) (woken []domain.Execution, again bool, err error) {
	var b *batch
	err = s.runChecked(ctx, "admit waiting executions", s.landed(&b), func(t *txn) error {
		b, woken, again = nil, nil, false
		if err := t.guard(); err != nil {
			return err
		}
		limits, err := lockLimits(t, keys, skipLocked)
		if err != nil || len(limits) == 0 {
			return err
		}
		now, err := t.clock()
		if err != nil {
			return err
		}
		var ids []domain.ExecutionID
		for _, l := range limits {
			if l.unsettled(now) {
				if err := l.adopt(t); err != nil {
					return err
				}
			}
			if err := l.loadQueue(t, min(l.room(), admitBatch)); err != nil {
				return fmt.Errorf("load queue: %w", err)
			}
			for _, p := range l.queue {
				l.waiting[p.id] = p
				ids = append(ids, p.id)
			}
		}
		// A waiter that another transaction works on is left to the next look.
		if b, err = newBatch(t, ids, loadOptions{skipLocked: true}); err != nil {
			return err
		}
		var moved []*move
		for _, l := range limits {
			some, err := b.admit(l)
			if err != nil {
				return err
			}
			moved = append(moved, some...)
		}
		if err := b.save(); err != nil {
			return err
		}
		if err := saveLimits(t, limits); err != nil {
			return fmt.Errorf("save limits: %w", err)
		}
		for _, l := range limits {
			again = again || len(l.leave) > 0
			if err := l.removeIfDone(t); err != nil {
				return err
			}
		}
		for _, m := range moved {
			woken = append(woken, m.e)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return woken, again, nil
}

// admit wakes the runs at the head of a queue, which is no longer than there is
// room. One that was woken before keeps its place; one that waits for something
// else, or for nothing any more, loses it.
func (b *batch) admit(l *limit) (woken []*move, err error) {
	var absent []domain.ExecutionID
	for _, p := range slices.Clone(l.queue) {
		m := b.moves[p.id]
		if m == nil {
			absent = append(absent, p.id)
			continue
		}
		waits := m.e.State == domain.Due || m.e.State == domain.RetryWait
		switch {
		case waits && m.e.Reason == domain.ReasonWaitLimit:
			if err := m.e.Wake(b.now, patience(m.spec)); err != nil {
				return nil, err
			}
			woken = append(woken, m)
		case waits && m.e.Reason == "":
		default:
			l.dequeue(p.id)
		}
	}
	return woken, l.dropDeleted(b.t, absent)
}

// dropDeleted gives up the places of runs whose rows are gone; those that are
// there are locked by another transaction.
func (l *limit) dropDeleted(t *txn, absent []domain.ExecutionID) error {
	if len(absent) == 0 {
		return nil
	}
	there := map[domain.ExecutionID]bool{}
	err := query(t.ctx, t.q, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		err := rows.Scan(&id)
		there[id] = true
		return err
	}, "SELECT id FROM executions WHERE id IN ("+idList(absent)+")")
	for _, id := range absent {
		if !there[id] && err == nil {
			l.dequeue(id)
		}
	}
	return err
}

// removeIfDone ends a limit that was taken away once nobody waits under it.
func (l *limit) removeIfDone(t *txn) error {
	if l.capacity > 0 {
		return nil
	}
	if err := l.loadQueue(t, 1); err != nil || len(l.queue) > 0 {
		return err
	}
	return l.remove(t)
}
