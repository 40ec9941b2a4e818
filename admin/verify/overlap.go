package verify

import (
	"cmp"
	"slices"
)

// judgeOverlap goes through the lives of each job in the order of their starts and
// compares those that are left with the limit.
func (c *checker) judgeOverlap() {
	for _, j := range c.order {
		var open []life
		for _, l := range c.lives(j) {
			limit := j.limit(l.from)
			open = slices.DeleteFunc(open, func(o life) bool { return o.to <= l.from })
			open = append(open, l)
			if limit == 0 || len(open) <= limit {
				continue
			}
			longest := slices.MaxFunc(open[:len(open)-1], func(a, b life) int { return cmp.Compare(a.to, b.to) })
			c.find(Overlap, j.id, l.key, l.from, "%d runs at once, %d allowed; %s was alive for another %s",
				len(open), limit, longest.key, (longest.to - l.from).Duration())
		}
	}
}

// life is the time in which one execution's handlers certainly lived.
type life struct {
	key      string
	from, to Time
}

// lives lists a job's executions, by start. Attempts of one key, and the parts
// of one parent, are one life each, unless they do not touch.
func (c *checker) lives(j *job) []life {
	last := map[string]int{}
	var list []life
	for _, i := range j.runs {
		r := &c.runs[i]
		l := life{c.family(r), r.Start, c.slotUntil(r) - c.tolerance(r)}
		if k, seen := last[l.key]; seen && list[k].to >= l.from {
			list[k].to = max(list[k].to, l.to)
			continue
		}
		last[l.key] = len(list)
		list = append(list, l)
	}
	return list
}

// givenUp are the states of rows whose handlers may go on.
var givenUp = []string{"lost", "timed_out", "cancelled", "failed"}

// slotUntil is how long a run certainly held its slot: while its handler
// lived, but not longer than until its row gave up on it.
func (c *checker) slotUntil(r *Run) Time {
	until := c.aliveUntil(r)
	if row := c.row(r.Key); row != nil && row.FinishedAt != 0 && slices.Contains(givenUp, row.State) {
		return min(until, row.FinishedAt)
	}
	return until
}
