package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// SweepExecutions reads what has passed its WakeAt without a lock, then locks
// it by primary key, slots first. What another transaction holds is left to
// the next sweep.
func (s *Store) SweepExecutions(ctx context.Context, p store.SweepParams) (store.Swept, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	var out store.Swept
	if len(p.Partitions) == 0 || p.Limit <= 0 {
		now, err := s.Now(ctx)
		out.Now = now
		return out, err
	}
	now, ids, err := s.findOverdue(ctx, p)
	out.Now = now
	if err == nil {
		err = believe(now, p.Latest)
	}
	if err != nil || len(ids) == 0 {
		return out, err
	}
	err = s.runBatch(ctx, "sweep executions", ids, loadOptions{slots: true, queue: true, skipLocked: true}, func(b *batch) error {
		out = store.Swept{Now: now, Seen: len(ids)}
		if len(b.moves) == 0 {
			return nil
		}
		out.Now = b.now
		if err := believe(b.now, p.Latest); err != nil {
			return err
		}
		swept, err := b.sweep(ids, p.Hold)
		if err != nil {
			return err
		}
		woken, err := b.wake()
		if err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		swept.ended = append(swept.ended, b.ended...)
		swept.collect(&out, woken)
		return nil
	})
	return out, err
}

// findOverdue reads what has passed its WakeAt.
func (s *Store) findOverdue(ctx context.Context, p store.SweepParams) (now time.Time, ids []domain.ExecutionID, err error) {
	due := "wake_at <= " + s.d.clockNow()
	if p.Overdue > 0 {
		due += fmt.Sprintf(" AND (wake_at <= %s - %d OR reason = '%s')", s.d.clockNow(), p.Overdue.Milliseconds(), domain.ReasonWaitInstance)
	}
	return s.findByWake(ctx, "find overdue executions", byWake{p.Partitions, due, p.Limit, p.Unattended})
}

// byWake is a search along the index of when executions have to be looked at.
type byWake struct {
	partitions []int
	where      string
	limit      int
	unattended func([]domain.ExecutionID) []domain.ExecutionID
}

// findByWake reads ids by WakeAt: the first of each partition first, a page at
// a time, because under overload most of what it meets waits in a queue of the
// caller's. Pages grow, so that a long backlog takes few of them.
func (s *Store) findByWake(ctx context.Context, step string, p byWake) (now time.Time, ids []domain.ExecutionID, err error) {
	var found []overdue
	err = s.look(ctx, step, func(ctx context.Context, q querier, _ *gorm.DB) error {
		found = nil
		from := make([]overdue, len(p.partitions))
		for i, part := range p.partitions {
			from[i].part = part
		}
		for page := max(p.limit/len(p.partitions), overduePage); len(from) > 0 && len(found) < p.limit; page = min(2*page, p.limit) {
			at, list, err := s.overduePage(ctx, q, p.where, from, page)
			if err != nil {
				return err
			}
			if now.IsZero() {
				now = at
			}
			from = nextPage(from[:0], list, page)
			found = append(found, unattended(list, p.unattended)...)
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b overdue) int { return cmp.Compare(a.wakeAt, b.wakeAt) })
	for _, f := range found[:min(len(found), p.limit)] {
		ids = append(ids, f.id)
	}
	return now, ids, err
}

// overduePage is the least number of entries that are read of a partition at
// once: fewer cost about as much.
const overduePage = 16

// overdue is an entry of the index of what has to be looked at.
type overdue struct {
	part   int
	id     domain.ExecutionID
	wakeAt int64 // Unix ms
}

// overduePage reads up to page entries of each partition that follow from, by
// partition and in order.
func (s *Store) overduePage(ctx context.Context, q querier, where string, from []overdue, page int) (now time.Time, list []overdue, err error) {
	terms := []string{"SELECT 0 AS part, 0 AS id, " + s.d.clockNow() + " AS wake_at"}
	for _, f := range from {
		after := ""
		if f.id != 0 {
			after = fmt.Sprintf(" AND wake_at >= %d AND (wake_at > %[1]d OR id > %[2]d)", f.wakeAt, f.id)
		}
		terms = append(terms, s.d.bounded(fmt.Sprintf(
			"SELECT part, id, wake_at FROM executions%s WHERE part = %d AND %s%s ORDER BY wake_at, id LIMIT %d",
			s.d.byIndex("ix_executions_wake"), f.part, where, after, page)))
	}
	err = query(ctx, q, func(rows *sql.Rows) error {
		var o overdue
		if err := rows.Scan(&o.part, &o.id, &o.wakeAt); err != nil {
			return err
		}
		if o.id == 0 {
			now = instant(o.wakeAt)
		} else {
			list = append(list, o)
		}
		return nil
	}, strings.Join(terms, " UNION ALL "))
	slices.SortFunc(list, func(a, b overdue) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(a.wakeAt, b.wakeAt), cmp.Compare(a.id, b.id))
	})
	return now, list, err
}

// nextPage adds to out where to go on in the partitions that gave a full page.
func nextPage(out, list []overdue, page int) []overdue {
	for begin := 0; begin < len(list); {
		end := begin
		for end < len(list) && list[end].part == list[begin].part {
			end++
		}
		if end-begin == page {
			out = append(out, list[end-1])
		}
		begin = end
	}
	return out
}

// unattended is list without what waits in a queue of the caller's.
func unattended(list []overdue, keep func([]domain.ExecutionID) []domain.ExecutionID) []overdue {
	if keep == nil || len(list) == 0 {
		return list
	}
	ids := make([]domain.ExecutionID, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	kept := keep(ids)
	out := list[:0]
	for _, o := range list {
		if len(kept) > 0 && kept[0] == o.id {
			out, kept = append(out, o), kept[1:]
		}
	}
	return out
}

// sweptMoves are the moves of one sweep by what the caller has to do.
type sweptMoves struct {
	dispatch, cancel, resend, ended []*move
}

func (s sweptMoves) collect(out *store.Swept, woken map[domain.JobID][]*move) {
	seen := map[domain.ExecutionID]bool{}
	add := func(m *move) {
		if !seen[m.e.ID] {
			seen[m.e.ID] = true
			out.Dispatch = append(out.Dispatch, m.e)
		}
	}
	for _, m := range s.dispatch {
		add(m)
	}
	for _, moves := range woken {
		for _, m := range moves {
			add(m)
		}
	}
	for _, m := range s.cancel {
		out.Cancel = append(out.Cancel, m.e)
	}
	for _, m := range s.resend {
		out.Resend = append(out.Resend, store.OfferResult{Status: store.OfferMade, Execution: m.e, Spec: m.spec})
	}
	for _, m := range s.ended {
		out.Ended = append(out.Ended, m.e)
	}
}

func (b *batch) sweep(ids []domain.ExecutionID, hold time.Duration) (sweptMoves, error) {
	var out sweptMoves
	leases, err := b.leases()
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		m := b.moves[id]
		if m == nil || m.e.WakeAt.After(b.now) {
			continue // locked by another, or moved on since it was found
		}
		if m.e.State.Terminal() && !m.e.Lingers {
			m.e.WakeAt = time.Time{} // it cannot have one, but would be found for ever
			continue
		}
		b.deciding = id
		if b.parentAway(m) {
			continue
		}
		if b.stillBlocked(m) {
			if err := m.e.Wait(b.now, domain.ReasonWaitSlot, "", b.now.Add(slotCheck)); err != nil {
				return out, err
			}
			continue
		}
		was := m.e.State
		lease := leases[m.e.Instance]
		if !m.e.OccupiesInstance() && m.e.Bound != 0 {
			lease = leases[m.e.Bound]
		}
		action, fx, err := m.e.Sweep(b.now, lease, hold, m.policy())
		if err != nil {
			return out, fmt.Errorf("execution %s: %w", m.e.ID, err)
		}
		if err := b.apply(m, fx); err != nil {
			return out, err
		}
		switch action {
		case domain.SweepDispatch:
			out.dispatch = append(out.dispatch, m)
		case domain.SweepCancel:
			out.cancel = append(out.cancel, m)
		case domain.SweepResend:
			if err := b.resend(m, &out); err != nil {
				return out, err
			}
		}
		if was != m.e.State && (m.e.State.Terminal() || m.e.State == domain.RetryWait) {
			out.ended = append(out.ended, m)
		}
	}
	return out, nil
}

// stillBlocked reports whether an execution waits for a slot that is still
// taken. One whose slot is free (the node that was to offer it died) gets
// fresh patience: it has not waited for an instance yet.
func (b *batch) stillBlocked(m *move) bool {
	s := b.slots[m.e.JobID]
	if s == nil || m.e.Reason != domain.ReasonWaitSlot || m.e.HoldsSlot {
		return false
	}
	if !s.admits(&m.e, m.spec.SlotLimit()) {
		s.enqueue(&m.e)
		return true
	}
	if !m.e.ExpireAt.IsZero() {
		m.e.ExpireAt = b.now.Add(patience(m.spec))
	}
	return false
}

// leases reads until when the instances may live that have executions, or are
// waited for.
func (b *batch) leases() (map[domain.InstanceID]time.Time, error) {
	out := map[domain.InstanceID]time.Time{}
	var ids []domain.InstanceID
	for _, m := range b.moves {
		if m.e.OccupiesInstance() && m.e.Instance != 0 {
			ids = append(ids, m.e.Instance)
		} else if m.e.Bound != 0 {
			ids = append(ids, m.e.Bound)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	slices.Sort(ids)
	err := query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
		var id domain.InstanceID
		var until int64
		err := rows.Scan(&id, &until)
		out[id] = instant(until)
		return err
	}, "SELECT id, lease_until FROM instances WHERE id IN ("+idList(slices.Compact(ids))+")")
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	return out, nil
}
