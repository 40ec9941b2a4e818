package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

const (
	// limitsFor is how long a node trusts what it read of the limits; runs
	// that it starts meanwhile under a new one are adopted.
	limitsFor = time.Second
	// limitSettles is how long after a change runs are looked for that were
	// offered without a place under the limit. It exceeds limitsFor and the
	// longest transaction (txTimeout) together.
	limitSettles = 30 * time.Second
	// limitCheck is how long a run that waits under a limit is left alone by
	// the sweep: whoever makes room wakes it, and AdmitWaiting is the net.
	limitCheck = 5 * time.Minute
	// admitBatch bounds how many runs one transaction wakes under one limit.
	admitBatch = 200
)

// Kinds of limits, as stored.
const (
	kindTenant   = 1
	kindExecutor = 2
)

// limitCache is what this node knows of the limits.
type limitCache struct {
	mu    sync.Mutex
	known map[domain.LimitKey]bool // guarded by mu; the map itself never changes
	until time.Time                // guarded by mu
}

// load returns the keys of all limits, as of limitsFor ago at most.
func (c *limitCache) load(ctx context.Context, q querier) (map[domain.LimitKey]bool, error) {
	c.mu.Lock()
	known, fresh := c.known, time.Now().Before(c.until)
	c.mu.Unlock()
	if fresh {
		return known, nil
	}
	now := time.Now()
	known = map[domain.LimitKey]bool{}
	err := query(ctx, q, func(rows *sql.Rows) error {
		var l limit
		err := rows.Scan(&l.subject, &l.kind, &l.tenant)
		known[l.key()] = true
		return err
	}, "SELECT subject_id, kind, tenant_id FROM limits")
	if err != nil {
		return nil, fmt.Errorf("read limits: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.Before(now.Add(limitsFor)) {
		c.known, c.until = known, now.Add(limitsFor)
	}
	return known, nil
}

// forget makes the next load read again.
func (c *limitCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}

// LimitsOn implements store.Limits.
func (s *Store) LimitsOn(tenant domain.TenantID, executor domain.ExecutorID) []domain.LimitKey {
	s.limits.mu.Lock()
	known := s.limits.known
	s.limits.mu.Unlock()
	return keysOn(known, tenant, executor)
}

// keysOn returns which of the limits bound an executor's runs: its own first.
func keysOn(known map[domain.LimitKey]bool, tenant domain.TenantID, executor domain.ExecutorID) (keys []domain.LimitKey) {
	if len(known) == 0 {
		return nil
	}
	for _, k := range []domain.LimitKey{{Tenant: tenant, Executor: executor}, {Tenant: tenant}} {
		if known[k] {
			keys = append(keys, k)
		}
	}
	return keys
}

// limit is a locked row of limits, with its holders and the beginning of its
// queue.
type limit struct {
	subject, kind, capacity, changedAt int64
	tenant                             domain.TenantID

	// running counts holders on instances, and those that this transaction adds.
	running int64
	holders map[domain.ExecutionID]bool
	// queue is the beginning of the queue; waiting are those of this
	// transaction's executions that stand anywhere in it.
	queue   []place
	waiting map[domain.ExecutionID]place

	hold         []domain.ExecutionID
	gone         []domain.ExecutionID // holders that are on no instance any more
	enter, leave []place
}

// place is a place in the queue of a limit, ordered by precedence.
type place struct {
	precedence int64
	id         domain.ExecutionID
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.precedence, b.precedence), cmp.Compare(a.id, b.id))
}

func placeOf(e *domain.Execution) place { return place{e.Precedence().UnixMilli(), e.ID} }

func (l *limit) key() domain.LimitKey {
	if l.kind == kindTenant {
		return domain.LimitKey{Tenant: l.tenant}
	}
	return domain.LimitKey{Tenant: l.tenant, Executor: domain.ExecutorID(l.subject)}
}

// subjectOf returns how a key is stored.
func subjectOf(k domain.LimitKey) (subject, kind int64) {
	if k.Executor != 0 {
		return int64(k.Executor), kindExecutor
	}
	return int64(k.Tenant), kindTenant
}

// where is the condition for rows of a limit; prefix is "" or "alias.".
func where(subject, kind int64, prefix string) string {
	return fmt.Sprintf("%[1]ssubject_id = %[2]d AND %[1]skind = %[3]d", prefix, subject, kind)
}

func (l *limit) where(prefix string) string { return where(l.subject, l.kind, prefix) }

// lockLimits locks the rows of limits in the order of their keys; those that do
// not exist are missing in the answer. Slots are locked before, executions
// after.
func lockLimits(t *txn, keys []domain.LimitKey, skipLocked bool) (map[domain.LimitKey]*limit, error) {
	limits := make(map[domain.LimitKey]*limit, len(keys))
	if len(keys) == 0 {
		return limits, nil
	}
	var terms []string
	for _, k := range keys {
		subject, kind := subjectOf(k)
		terms = append(terms, "("+where(subject, kind, "")+")")
	}
	lock := t.d.forUpdate()
	if skipLocked {
		lock = t.d.forUpdateSkip()
	}
	err := query(t.ctx, t.q, func(rows *sql.Rows) error {
		l := &limit{holders: map[domain.ExecutionID]bool{}, waiting: map[domain.ExecutionID]place{}}
		if err := rows.Scan(&l.subject, &l.kind, &l.tenant, &l.capacity, &l.changedAt); err != nil {
			return err
		}
		limits[l.key()] = l
		return nil
	}, "SELECT subject_id, kind, tenant_id, capacity, changed_at FROM limits"+t.d.byPrimary()+
		" WHERE "+strings.Join(terms, " OR ")+" ORDER BY subject_id, kind"+lock)
	if err != nil {
		return nil, fmt.Errorf("lock limits: %w", err)
	}
	for _, l := range limits {
		if err := l.count(t); err != nil {
			return nil, fmt.Errorf("count holders: %w", err)
		}
	}
	return limits, nil
}

// count looks which holders are on an instance. What another transaction ends
// at this moment still counts, so it never counts too few.
func (l *limit) count(t *txn) error {
	return query(t.ctx, t.q, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var there bool
		if err := rows.Scan(&id, &there); err != nil {
			return err
		}
		l.holders[id] = true
		if there {
			l.running++
		} else {
			l.gone = append(l.gone, id)
		}
		return nil
	}, "SELECT h.execution_id, COALESCE("+occupiesInstance("e.")+", 0) FROM limit_holders AS h LEFT JOIN executions AS e ON e.id = h.execution_id WHERE "+l.where("h."))
}

// room is how many more runs may be offered.
func (l *limit) room() int64 {
	if l.capacity == 0 { // taken away
		return admitBatch
	}
	return max(l.capacity-l.running, 0)
}

// loadQueue reads the first n places of the queue.
func (l *limit) loadQueue(t *txn, n int64) error {
	if n <= 0 {
		return nil
	}
	l.queue = l.queue[:0]
	return query(t.ctx, t.q, func(rows *sql.Rows) error {
		var p place
		err := rows.Scan(&p.precedence, &p.id)
		l.queue = append(l.queue, p)
		return err
	}, fmt.Sprintf("SELECT precedence, execution_id FROM limit_waiters WHERE %s ORDER BY subject_id, kind, precedence, execution_id LIMIT %d", l.where(""), n))
}

// loadMembers finds out which of these stand in the queue.
func (l *limit) loadMembers(t *txn, places []place) error {
	for part := range slices.Chunk(places, 200) {
		var terms []string
		for _, p := range part {
			terms = append(terms, fmt.Sprintf("(%s AND precedence = %d AND execution_id = %d)", l.where(""), p.precedence, p.id))
		}
		err := query(t.ctx, t.q, func(rows *sql.Rows) error {
			var p place
			err := rows.Scan(&p.precedence, &p.id)
			l.waiting[p.id] = p
			return err
		}, "SELECT precedence, execution_id FROM limit_waiters WHERE "+strings.Join(terms, " OR "))
		if err != nil {
			return err
		}
	}
	return nil
}

// admits reports whether e may be offered: there is room for it and for all
// that wait before it.
func (l *limit) admits(e *domain.Execution) bool {
	if l.capacity == 0 {
		return true
	}
	me, places := placeOf(e), l.room()
	for _, p := range l.queue {
		if places <= 0 || comparePlaces(p, me) >= 0 {
			break
		}
		places--
	}
	return places > 0
}

// take gives e a place among the holders.
func (l *limit) take(e *domain.Execution) {
	l.running++
	if i := slices.Index(l.gone, e.ID); i >= 0 {
		l.gone = slices.Delete(l.gone, i, i+1) // offered again
	} else if !l.holders[e.ID] {
		l.holders[e.ID] = true
		l.hold = append(l.hold, e.ID)
	}
	l.dequeue(e.ID)
}

// enqueue lets e wait; it does nothing when it waits already.
func (l *limit) enqueue(e *domain.Execution) {
	if _, ok := l.waiting[e.ID]; ok {
		return
	}
	p := placeOf(e)
	l.waiting[e.ID] = p
	l.enter = append(l.enter, p)
	i, _ := slices.BinarySearchFunc(l.queue, p, comparePlaces)
	l.queue = slices.Insert(l.queue, i, p)
}

func (l *limit) dequeue(id domain.ExecutionID) {
	p, ok := l.waiting[id]
	if !ok {
		return
	}
	delete(l.waiting, id)
	if i := slices.Index(l.enter, p); i >= 0 {
		l.enter = slices.Delete(l.enter, i, i+1)
	} else {
		l.leave = append(l.leave, p)
	}
	if i := slices.Index(l.queue, p); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
}
