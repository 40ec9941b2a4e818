package verify

import (
	"cmp"
	"container/heap"
	"slices"
)

// The blind matching: what runs say about themselves is not believed, only
// that they are of this job and when they started. In the order of time each
// takes the open target with the earliest deadline; that covers as many
// targets as any assignment can, because the targets are intervals and the
// runs are points. It is done twice: with the musts alone, which tells how many
// of them cannot have run, and with all targets, which tells how many runs
// cannot have had a reason. One assignment can be best in both ways
// (Mendelsohn and Dulmage, 1958), so the two numbers hold together.

// window is a target as an interval.
type window struct {
	opens, closes Time
	must          bool
}

// judgeBlind compares, for each job, what was found without labels with what
// was found by them: labels that lie find less.
func (c *checker) judgeBlind() {
	reach := c.reach()
	for _, j := range c.order {
		if j.delayed() || j.unreadable != "" {
			continue
		}
		points := c.points(j)
		windows := c.windowsOf(j, reach)
		musts := slices.DeleteFunc(slices.Clone(windows), func(w window) bool { return !w.must })
		missed := len(musts) - match(points, musts)
		extra := len(points) - match(points, windows)
		if missed > j.missed || extra > j.extra {
			c.find(Disagreement, j.id, "", c.plan.From,
				"by the clock alone %d targets cannot have run and %d starts have no target; by their labels %d and %d",
				missed, extra, j.missed, j.extra)
		}
	}
}

// reach is how long after its time a start may belong to a target: a second
// more than the latest one by labels.
func (c *checker) reach() Time {
	reach := c.plan.LateAfter + 1_000_000
	for _, j := range c.order {
		for _, i := range j.runs {
			r := &c.runs[i]
			if _, ok := j.find(r.FireAt, r.Shard); ok {
				reach = max(reach, r.Start-r.FireAt+1_000_000)
			}
		}
	}
	return reach
}

// points are the starts, without those that are further attempts of a run that
// has its first.
func (c *checker) points(j *job) []Time {
	type share struct {
		key   string
		shard int
	}
	first := map[share]bool{}
	var list []Time
	for _, i := range j.runs {
		r := &c.runs[i]
		s := share{r.Key, r.Shard}
		if r.Attempt > 1 && first[s] {
			continue
		}
		first[s] = true
		list = append(list, r.Start+c.tolerance(r))
	}
	return list
}

// windowsOf are the targets, and the runs that were asked for.
func (c *checker) windowsOf(j *job, reach Time) []window {
	fires := map[Time]*Row{}
	for _, i := range j.rows {
		if row := &c.h.Rows[i]; row.scheduled() {
			fires[row.FireAt] = row
		}
	}
	var list []window
	for _, t := range j.targets {
		row := c.shardRow(fires[t.fire], t.shard)
		idle := row != nil && row.State != "succeeded" && len(c.keys[row.Key]) == 0 // it tells of no start
		list = append(list, window{t.fire, t.fire + t.jitter + reach + rounding, t.must && !idle})
	}
	for _, call := range j.asked {
		must := call.Key != "" && (c.row(call.Key) == nil || len(c.keys[call.Key]) > 0)
		list = append(list, window{call.Invoke, c.end + reach, must})
	}
	for _, call := range j.perhaps {
		list = append(list, window{call.Invoke, c.end + reach, false})
	}
	for _, i := range j.rows { // children, backfills, runs again: asked for elsewhere
		row := &c.h.Rows[i]
		asked := row.Cause == "manual" || row.Cause == "api"
		if row.part() && !c.ofSchedule(row) || !row.part() && !row.scheduled() && !asked {
			list = append(list, window{min(row.PlannedAt, row.FireAt), c.end + reach, false})
		}
	}
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.opens, b.opens) })
	return list
}

// match counts how many of the points, which are in order, find a window of
// their own; the windows are in the order in which they open.
func match(points []Time, windows []window) int {
	var open deadlines
	matched, next := 0, 0
	for _, p := range points {
		for next < len(windows) && windows[next].opens <= p {
			heap.Push(&open, windows[next].closes)
			next++
		}
		for len(open) > 0 && open[0] < p {
			heap.Pop(&open)
		}
		if len(open) > 0 {
			heap.Pop(&open)
			matched++
		}
	}
	return matched
}

// deadlines is a heap, earliest first.
type deadlines []Time

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i] < d[j] }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(Time)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
