package sim

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

// limitRow is a limit with who holds a place under it, and who waits.
type limitRow struct {
	key     domain.LimitKey
	max     int
	changed time.Time
	// strictFrom is when all nodes have to keep to it.
	strictFrom time.Duration
	holders    []domain.ExecutionID
	queue      []run.Place // by precedence
}

// limitsKnown is what a node knows of the limits.
type limitsKnown struct {
	keys  map[domain.LimitKey]bool
	until time.Duration
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
func (d *database) limitKeys() map[domain.LimitKey]bool {
	keys := map[domain.LimitKey]bool{}
	for _, l := range d.limits {
		keys[l.key] = true
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

// admit is AdmitWaiting; nil keys are those with something to do.
func (d *database) admit(keys []domain.LimitKey) (woken []domain.Execution) {
	now := d.clock()
	if keys == nil {
		for _, l := range d.limits {
			if l.max == 0 || len(l.queue) > 0 || now.Sub(l.changed) < run.LimitSettles {
				keys = append(keys, l.key)
			}
		}
	}
	for _, key := range keys {
		for again := true; again; {
			var some []domain.Execution
			some, again = d.admitUnder(now, key)
			woken = append(woken, some...)
		}
	}
	return woken
}

func (d *database) admitUnder(now time.Time, key domain.LimitKey) (woken []domain.Execution, again bool) {
	row := d.limit(key)
	if row == nil {
		return nil, false
	}
	l := d.loadLimit(row)
	if l.Unsettled(now) {
		for _, id := range d.living() {
			if e := d.find(id); e.OccupiesInstance() && (key.Executor == 0 || key.Executor == e.Executor) {
				l.Adopt(id)
			}
		}
	}
	l.Queue = slices.Clone(row.queue[:min(len(row.queue), int(min(l.Free(), run.AdmitBatch)))])
	var ids []domain.ExecutionID
	for _, p := range l.Queue {
		l.Waiting[p.ID] = p
		ids = append(ids, p.ID)
	}
	b := d.load(run.Request{Kind: run.Admit, IDs: ids}, nil)
	moved, absent, err := b.Admit(l)
	must(err)
	for _, id := range absent {
		l.Dequeue(id)
	}
	b.save()
	row.save(l)
	for _, m := range moved {
		woken = append(woken, m.E)
	}
	if row.max == 0 && len(row.queue) == 0 {
		d.removeLimit(row)
	}
	return woken, len(l.Leave) > 0
}
