package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Paces of limits (as in gormstore).
const (
	limitsFor    = time.Second
	limitSettles = 30 * time.Second
	limitCheck   = 5 * time.Minute
	admitBatch   = 200
)

// limitRow is a limit with who holds a place under it, and who waits.
type limitRow struct {
	key     domain.LimitKey
	max     int
	changed time.Time
	// strictFrom is when all nodes have to keep to it.
	strictFrom time.Duration
	holders    []domain.ExecutionID
	queue      []domain.ExecutionID // by precedence
}

// limitsKnown is what a node knows of the limits.
type limitsKnown struct {
	keys  []domain.LimitKey
	until time.Duration
}

func (k *limitsKnown) on(e domain.ExecutorID) (out []domain.LimitKey) {
	for _, key := range []domain.LimitKey{{Tenant: tenant, Executor: e}, {Tenant: tenant}} {
		if slices.Contains(k.keys, key) {
			out = append(out, key)
		}
	}
	return out
}

func (d *database) limit(key domain.LimitKey) *limitRow {
	for _, l := range d.limits {
		if l.key == key {
			return l
		}
	}
	return nil
}

// limitKeys are the keys of all limits.
func (d *database) limitKeys() (keys []domain.LimitKey) {
	for _, l := range d.limits {
		keys = append(keys, l.key)
	}
	return keys
}

// setLimit is SetLimit.
func (d *database) setLimit(key domain.LimitKey, maximum int) {
	l := d.limit(key)
	switch {
	case l == nil && maximum == 0:
		return
	case l == nil:
		l = &limitRow{key: key}
		d.limits = append(d.limits, l)
		slices.SortFunc(d.limits, func(a, b *limitRow) int { return int(b.key.Executor) - int(a.key.Executor) })
	}
	l.max, l.changed = maximum, d.clock()
	if maximum > 0 {
		d.adopt(l)
	} else if len(l.queue) == 0 {
		d.removeLimit(l)
	}
}

func (d *database) removeLimit(l *limitRow) {
	d.limits = slices.DeleteFunc(d.limits, func(o *limitRow) bool { return o == l })
}

// adopt counts runs that were offered by those who did not know of the limit.
func (d *database) adopt(l *limitRow) {
	for _, id := range d.living() {
		if d.find(id).OccupiesInstance() && !slices.Contains(l.holders, id) {
			l.holders = append(l.holders, id)
		}
	}
}

// running counts holders on instances, and forgets the others.
func (d *database) running(l *limitRow) int {
	l.holders = slices.DeleteFunc(l.holders, func(id domain.ExecutionID) bool {
		e := d.find(id)
		return e == nil || !e.OccupiesInstance()
	})
	return len(l.holders)
}

func (d *database) roomUnder(l *limitRow) int {
	if l.max == 0 {
		return admitBatch
	}
	return max(l.max-d.running(l), 0)
}

// fits says whether there is room under l for e and all that wait before it.
func (d *database) fits(l *limitRow, e *domain.Execution) bool {
	if l.max == 0 || d.rules.skipLimit {
		return true
	}
	places := d.roomUnder(l)
	for _, id := range l.queue {
		o := d.find(id)
		if places <= 0 || o == nil || domain.ComparePrecedence(o, e) >= 0 {
			break
		}
		places--
	}
	return places > 0
}

// bounds are the limits that the present transaction has found on e.
func (d *database) bounds(known *limitsKnown, e *domain.Execution) (out []*limitRow) {
	for _, key := range known.on(e.Executor) {
		if l := d.limit(key); l != nil {
			out = append(out, l)
		}
	}
	return out
}

// occupy gives e a place among the holders, whether or not there is room.
func (d *database) occupy(known *limitsKnown, e *domain.Execution) {
	for _, l := range d.bounds(known, e) {
		l.leave(e.ID)
		if !slices.Contains(l.holders, e.ID) {
			l.holders = append(l.holders, e.ID)
		}
	}
}

func (l *limitRow) leave(id domain.ExecutionID) {
	l.queue = slices.DeleteFunc(l.queue, func(o domain.ExecutionID) bool { return o == id })
}

func (d *database) queue(l *limitRow, e *domain.Execution) {
	if slices.Contains(l.queue, e.ID) {
		return
	}
	at := slices.IndexFunc(l.queue, func(id domain.ExecutionID) bool {
		o := d.find(id)
		return o != nil && domain.ComparePrecedence(e, o) < 0
	})
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, e.ID)
}

// admit is AdmitWaiting; nil keys are those with something to do.
func (d *database) admit(keys []domain.LimitKey) (woken []domain.Execution) {
	now := d.clock()
	if keys == nil {
		for _, l := range d.limits {
			if l.max == 0 || len(l.queue) > 0 || now.Sub(l.changed) < limitSettles {
				keys = append(keys, l.key)
			}
		}
	}
	for _, key := range keys {
		l := d.limit(key)
		if l == nil {
			continue
		}
		if l.max > 0 && now.Sub(l.changed) < limitSettles {
			d.adopt(l)
		}
		woken = append(woken, d.admitUnder(now, l)...)
		if l.max == 0 && len(l.queue) == 0 {
			d.removeLimit(l)
		}
	}
	return woken
}

func (d *database) admitUnder(now time.Time, l *limitRow) (woken []domain.Execution) {
	for again := true; again; {
		again = false
		for _, id := range slices.Clone(l.queue[:min(len(l.queue), d.roomUnder(l))]) {
			e := d.find(id)
			waits := e != nil && (e.State == domain.Due || e.State == domain.RetryWait)
			switch {
			case waits && e.Reason == domain.ReasonWaitLimit:
				_ = d.move(now, e, func(j *jobRow, e *domain.Execution) (domain.Effects, error) {
					return domain.Effects{}, e.Wake(now, patience(j.of(e)))
				})
				woken = append(woken, *e)
			case waits && e.Reason == "":
			default:
				l.leave(id)
				again = true
			}
		}
	}
	return woken
}
