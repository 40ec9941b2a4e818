package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// hotLook says when the database is asked for what a hot store has missed.
type hotLook struct {
	mu   sync.Mutex
	last time.Time // guarded by mu: local clock; zero = ask now
}

// missedEvery is how often. With each look reaching half the horizon ahead, 1.5 s,
// a timer that the hot store does not know is found before its time, between two
// ticks of the planner that are late by as much as a tick.
const missedEvery = 750 * time.Millisecond

func (l *hotLook) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.last) >= missedEvery
}

// looked: what was found that the hot store does not name may be a part of what
// there is.
func (l *hotLook) looked(at time.Time, unnamed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last = at; unnamed {
		l.last = time.Time{}
	}
}

// findDue returns the ids of due timers, oldest first over all partitions, for this
// claim and some more. A hot store may name them; then the database is asked for the
// partitions of which that does not know all, and now and then, whatever it says, for
// timers of all partitions that it should have named long ago.
func (s *DueTimers) findDue(ctx context.Context, p store.ClaimDueTimersParams) ([]domain.TimerID, error) {
	began := time.Now()
	hot := p.Hot != nil && len(p.Except) == 0 && len(s.quarantined()) == 0 // it knows no tenants and jobs
	if !hot {
		all, err := s.searchTimers(ctx, p, func(int) time.Duration { return p.Horizon })
		return oldest(all, dueBatches*p.Limit), err
	}
	named, unknown := p.Hot.DueTimers(ctx, p.Partitions, p.Horizon, p.Limit)
	missed := s.hot.due(began)
	var all []dueAt[domain.TimerID]
	if missed || len(unknown) > 0 {
		var err error
		all, err = s.searchTimers(ctx, p, func(partition int) time.Duration {
			switch {
			case slices.Contains(unknown, partition):
				return p.Horizon
			case missed:
				return p.Horizon / 2
			default:
				return noLook
			}
		})
		if err != nil {
			return nil, err
		}
	}
	unnamed := make(map[domain.TimerID]bool, len(all)+len(named))
	for _, t := range all {
		unnamed[t.id] = true
	}
	left := len(all)
	for _, t := range named {
		of, found := unnamed[t.ID]
		if unnamed[t.ID] = false; of {
			left--
		} else if !found {
			all = append(all, dueAt[domain.TimerID]{t.ID, db.Millis(t.FireAt)})
		}
	}
	if missed {
		s.hot.looked(began, left > 0)
	}
	return oldest(all, dueBatches*p.Limit), nil
}

// noLook: a partition is not searched.
const noLook = time.Duration(-1)

// searchTimers reads which timers of the partitions are due within their horizons.
func (s *DueTimers) searchTimers(ctx context.Context, p store.ClaimDueTimersParams, horizon func(partition int) time.Duration) (all []dueAt[domain.TimerID], err error) {
	err = s.Look(ctx, "find due timers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		but := ""
		if len(p.Except) > 0 {
			but = " AND tenant_id NOT IN (" + db.IDList(p.Except) + ")"
		}
		if jobs := s.quarantined(); len(jobs) > 0 {
			but += " AND job_id NOT IN (" + db.IDList(jobs) + ")"
		}
		terms := []string{"SELECT 0 AS id, " + s.Dialect.ClockNow() + " AS fire_at"}
		for _, held := range p.Partitions {
			if ahead := horizon(held.Partition); ahead != noLook {
				terms = append(terms, s.Dialect.Bounded(fmt.Sprintf(
					"SELECT id, fire_at FROM timers%s WHERE part = %d AND fire_at <= %s + %d%s ORDER BY fire_at LIMIT %d",
					s.Dialect.ByIndex("ix_timers_due"), held.Partition, s.Dialect.ClockNow(), ahead.Milliseconds(), but, p.Limit)))
			}
		}
		_, all, err = searchDue[domain.TimerID](ctx, q, terms)
		return err
	})
	return all, err
}

// PendingTimers implements store.TimerPages.
func (s *DueTimers) PendingTimers(ctx context.Context, p store.PendingTimersParams) (page []store.HotTimer, err error) {
	err = s.Look(ctx, "read pending timers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		page = nil
		from, rest := db.Millis(p.From), ""
		if a := p.After; a.ID != 0 {
			from = db.Millis(a.FireAt)
			rest = fmt.Sprintf(" AND (fire_at > %d OR tenant_id > %d OR tenant_id = %d AND id > %d)", from, a.Tenant, a.Tenant, a.ID)
		}
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			t := store.HotTimer{Partition: p.Partition}
			var at int64
			err := rows.Scan(&t.ID, &t.Tenant, &at)
			t.FireAt = db.Instant(at)
			page = append(page, t)
			return err
		}, fmt.Sprintf("SELECT id, tenant_id, fire_at FROM timers%s WHERE part = %d AND fire_at >= %d AND fire_at < %d%s ORDER BY fire_at, tenant_id, id LIMIT %d",
			s.Dialect.ByIndex("ix_timers_due"), p.Partition, from, db.Millis(p.To), rest, p.Limit))
	})
	return page, err
}
