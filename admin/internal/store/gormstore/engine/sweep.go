package engine

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
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// SweepExecutions reads what has passed its WakeAt without a lock, then locks
// it by primary key, slots first. What another transaction holds is left to
// the next sweep.
func (s *Sweeps) SweepExecutions(ctx context.Context, p store.SweepParams) (store.Swept, error) {
	ctx, cancel := db.WithDeadline(ctx)
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
		err = checkClock(now, p.Latest)
	}
	if err != nil || len(ids) == 0 {
		return out, err
	}
	return batchResult(ctx, s.core, "sweep executions", run.Request{Kind: run.Sweeps, IDs: ids}, func(b *Batch) (*store.Swept, error) {
		if len(b.Moves) == 0 {
			b.Now = now
		}
		if err := checkClock(b.Now, p.Latest); err != nil {
			return nil, err
		}
		return b.Sweep(ids, p.Hold)
	})
}

// findOverdue reads what has passed its WakeAt.
func (s *Sweeps) findOverdue(ctx context.Context, p store.SweepParams) (now time.Time, ids []domain.ExecutionID, err error) {
	due := "wake_at <= " + s.Dialect.ClockNow()
	if p.Overdue > 0 {
		due = fmt.Sprintf("wake_at <= %s - %d", s.Dialect.ClockNow(), p.Overdue.Milliseconds())
	}
	return s.findByWake(ctx, "find overdue executions", byWake{p.Partitions, due, p.Limit, p.Unattended, p.Reported})
}

// byWake is a search along the index of when executions have to be looked at.
type byWake struct {
	partitions []int
	where      string
	limit      int
	unattended func([]domain.ExecutionID) []domain.ExecutionID
	reported   func([]domain.ExecutionID) []store.ReportedRun
}

// findByWake reads ids by WakeAt: the first of each partition first, a page at
// a time, because under overload most of what it meets waits in a queue of the
// caller's. Pages grow, so that a long backlog takes few of them.
func (s *core) findByWake(ctx context.Context, step string, p byWake) (now time.Time, ids []domain.ExecutionID, err error) {
	var found []overdue
	err = s.Look(ctx, step, func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
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
			if list, err = s.unreported(ctx, q, unattended(list, p.unattended), p.reported); err != nil {
				return err
			}
			found = append(found, list...)
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
func (s *core) overduePage(ctx context.Context, q db.Querier, where string, from []overdue, page int) (now time.Time, list []overdue, err error) {
	terms := []string{"SELECT 0 AS part, 0 AS id, " + s.Dialect.ClockNow() + " AS wake_at"}
	for _, f := range from {
		after := ""
		if f.id != 0 {
			after = fmt.Sprintf(" AND wake_at >= %d AND (wake_at > %[1]d OR id > %[2]d)", f.wakeAt, f.id)
		}
		terms = append(terms, s.Dialect.Bounded(fmt.Sprintf(
			"SELECT part, id, wake_at FROM executions%s WHERE part = %d AND %s%s ORDER BY wake_at, id LIMIT %d",
			s.Dialect.ByIndex("ix_executions_wake"), f.part, where, after, page)))
	}
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var o overdue
		if err := rows.Scan(&o.part, &o.id, &o.wakeAt); err != nil {
			return err
		}
		if o.id == 0 {
			now = db.Instant(o.wakeAt)
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
	ids := domain.Collect(list, func(l *overdue) domain.ExecutionID { return l.id })
	kept := keep(ids)
	out := list[:0]
	for _, o := range list {
		if len(kept) > 0 && kept[0] == o.id {
			out, kept = append(out, o), kept[1:]
		}
	}
	return out
}

// unreported is list without the runs of which their own executor's result waits
// in the caller's memory. The index does not say whose a run is, and few of what
// is overdue have been reported: those are looked at by their rows.
func (s *core) unreported(ctx context.Context, q db.Querier, list []overdue, reported func([]domain.ExecutionID) []store.ReportedRun) ([]overdue, error) {
	if reported == nil || len(list) == 0 {
		return list, nil
	}
	claims := reported(domain.Collect(list, func(l *overdue) domain.ExecutionID { return l.id }))
	if len(claims) == 0 {
		return list, nil
	}
	claimed := make(map[store.ReportedRun]bool, len(claims))
	for _, c := range claims {
		claimed[c] = true
	}
	ids := domain.Collect(claims, func(c *store.ReportedRun) domain.ExecutionID { return c.ID })
	own := map[domain.ExecutionID]bool{}
	for part := range slices.Chunk(ids, 500) {
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var of store.ReportedRun
			err := rows.Scan(&of.ID, &of.Tenant, &of.Executor)
			own[of.ID] = claimed[of]
			return err
		}, "SELECT id, tenant_id, executor_id FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(part)+")")
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(o overdue) bool { return own[o.id] }), nil
}
