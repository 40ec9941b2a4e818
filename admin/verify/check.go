package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNoPlan: without a plan nobody can tell whether a history is evidence.
var ErrNoPlan = errors.New("the history has no plan record: it says which fire times are judged, and how much evidence there has to be")

// Check judges a history. It does not change it.
func Check(h *History) (*Report, error) {
	if h.Plan == nil {
		return nil, ErrNoPlan
	}
	c := newChecker(h)
	c.buildJobs()
	c.expand()
	c.judgeLabels()
	c.judgeResults()
	c.judgeOverlap()
	c.judgeBlind()
	c.judgeDelays()
	c.sum()
	return c.report, nil
}

// checker holds one history while it is judged.
type checker struct {
	h      *History
	plan   Plan // with its defaults
	report *Report

	runs    []Run // by start, on the reference clock
	faults  []Fault
	windows []interval        // the faults, merged
	clocks  map[string][]Node // measurements by node and time
	end     Time              // the last instant that the history knows of

	jobs  map[string]*job
	order []*job         // by id
	rows  map[string]int // by key
	keys  map[string][]int
	boots map[string]Time // when a boot last showed itself

	outside, inside []time.Duration // lateness
	starts          []start         // first starts, for the faults
	ahead           Time            // what the database's clock is off when all is well
}

// start is the first start of a target.
type start struct {
	due, at Time
}

func newChecker(h *History) *checker {
	p := *h.Plan
	p.LateAfter = orDefault(p.LateAfter, Span(time.Second))
	p.Settle = orDefault(p.Settle, Span(30*time.Second))
	p.CallLimit = orDefault(p.CallLimit, Span(time.Minute))
	c := &checker{
		h: h, plan: p, report: NewReport(), faults: slices.Clone(h.Faults),
		clocks: map[string][]Node{}, jobs: map[string]*job{}, rows: map[string]int{}, keys: map[string][]int{},
		boots: map[string]Time{},
	}
	c.report.Name, c.report.From, c.report.To = p.Name, p.From.Std(), p.To.Std()
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return cmp.Compare(a.Start, b.Start) })
	for _, n := range h.Nodes {
		c.clocks[n.Node] = append(c.clocks[n.Node], n)
	}
	for _, list := range c.clocks {
		slices.SortStableFunc(list, func(a, b Node) int { return cmp.Compare(a.At, b.At) })
	}
	c.joinFaults()
	c.alignRuns()
	c.findEnd()
	c.ahead = c.calm()
	return c
}

// clock tells how far a node's clock was off, by the measurement next to an
// instant.
func (c *checker) clock(node string, at Time) (offset, bound Time) {
	list := c.clocks[node]
	if len(list) == 0 {
		return 0, 0
	}
	i, _ := slices.BinarySearchFunc(list, at, func(n Node, t Time) int { return cmp.Compare(n.At, t) })
	if i == len(list) || i > 0 && at-list[i-1].At < list[i].At-at {
		i--
	}
	return list[i].Offset, list[i].Error
}

// rounding is what two clocks differ by when both are right: the database
// counts milliseconds.
const rounding Time = 1000

// tolerance is how much a run's times may be wrong.
func (c *checker) tolerance(r *Run) Time {
	_, bound := c.clock(r.Node, r.Start)
	return bound + rounding
}

// alignRuns puts all runs on the reference clock, in the order of their start.
func (c *checker) alignRuns() {
	c.runs = slices.Clone(c.h.Runs)
	for i := range c.runs {
		r := &c.runs[i]
		offset, _ := c.clock(r.Node, r.Start)
		r.Start -= offset
		if r.End != 0 {
			r.End -= offset
		}
		c.boots[r.Boot] = max(c.boots[r.Boot], r.Start, r.End)
	}
	slices.SortFunc(c.runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Shard, b.Shard))
	})
	for i := range c.runs {
		c.keys[c.runs[i].Key] = append(c.keys[c.runs[i].Key], i)
	}
}

// findEnd finds the last instant that anything knows of.
func (c *checker) findEnd() {
	end := c.plan.To
	for i := range c.runs {
		end = max(end, c.runs[i].Start, c.runs[i].End)
	}
	for i := range c.h.Rows {
		r := &c.h.Rows[i]
		end = max(end, r.PlannedAt, r.OfferedAt, r.GrantedAt, r.FinishedAt)
	}
	for _, call := range c.h.Calls {
		end = max(end, call.Invoke, call.Ack)
	}
	c.end = end
}

// slack is how far the database's clock, by which the admin plans, was off.
func (c *checker) slack(at Time) Time {
	slack := rounding
	for name, list := range c.clocks {
		if list[0].Role == "database" {
			offset, bound := c.clock(name, at)
			slack = max(slack, max(offset, -offset)+bound+rounding)
		}
	}
	return slack
}

// calm is the least that the database's clock was ever off: what it is off
// when nobody steps it.
func (c *checker) calm() Time {
	least := latest
	for _, list := range c.clocks {
		for _, n := range list {
			if n.Role == "database" {
				least = min(least, max(n.Offset, -n.Offset)+n.Error)
			}
		}
	}
	if least == latest {
		return 0
	}
	return least
}

// buildJobs groups calls, runs and rows by job.
func (c *checker) buildJobs() {
	calls := map[string][]Call{}
	for _, call := range c.h.Calls {
		calls[call.Job] = append(calls[call.Job], call)
	}
	for id, list := range calls {
		slices.SortStableFunc(list, func(a, b Call) int { return cmp.Compare(a.Invoke, b.Invoke) })
		j := buildJob(id, list, c.plan.CallLimit, c.slack)
		c.jobs[id], c.order = j, append(c.order, j)
		if j.unreadable != "" {
			c.report.Need("readable schedule of job "+id+" ("+j.unreadable+")", 1, 0)
		}
		if len(j.all) == 0 {
			c.report.Need("create call of job "+id, 1, 0)
		}
	}
	slices.SortFunc(c.order, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	for i := range c.runs {
		if j := c.jobs[c.runs[i].Job]; j != nil {
			j.runs = append(j.runs, i)
		}
	}
	for i := range c.h.Rows {
		r := &c.h.Rows[i]
		if first, seen := c.rows[r.Key]; seen {
			c.find(Double, r.Job, r.Key, r.FireAt, "two rows have this key, of the fire times %s and %s", stamp(c.h.Rows[first].FireAt), stamp(r.FireAt))
			continue
		}
		c.rows[r.Key] = i
		if j := c.jobs[r.Job]; j != nil {
			j.rows = append(j.rows, i)
		} else {
			c.find(Phantom, r.Job, r.Key, r.FireAt, "a row of a job that nobody made")
		}
	}
	for _, j := range c.order {
		slices.SortStableFunc(j.rows, func(a, b int) int { return cmp.Compare(c.h.Rows[a].FireAt, c.h.Rows[b].FireAt) })
	}
	c.report.Jobs, c.report.Runs, c.report.Rows = len(c.order), len(c.runs), len(c.h.Rows)
}

// expand makes the targets. Those outside of the plan's window are possible
// only, so that what runs at its edges has something to belong to.
func (c *checker) expand() {
	for _, j := range c.order {
		if len(j.revisions) < 2 {
			continue
		}
		if j.delayed() {
			j.adopt(c.h.Rows, c.plan.From, c.plan.To)
		}
		j.expand(j.revisions[1].from, c.end, c.plan.From, c.plan.To)
		if len(c.h.Rows) == 0 {
			j.excuse(c.plan.LateAfter)
		}
		for _, t := range j.targets {
			switch {
			case t.must:
				c.report.Expected++
			case t.fire >= c.plan.From && t.fire <= c.plan.To:
				c.report.Possible++
			}
		}
	}
}

// excuse makes targets possible only that need not start and are explained by
// a row, in a history without rows: those that a calendar excludes, and those
// right before a pause or a delete.
func (j *job) excuse(within Time) {
	for i := range j.targets {
		t := &j.targets[i]
		t.must = t.must && !t.excluded
		for _, stop := range j.stops {
			if stop.Invoke >= t.fire && stop.Invoke <= t.fire+t.jitter+within {
				t.must = false
			}
		}
	}
}

// row finds a run's row.
func (c *checker) row(key string) *Row {
	if i, ok := c.rows[key]; ok {
		return &c.h.Rows[i]
	}
	return nil
}

// scheduled: the run exists because of the schedule.
func (r *Row) scheduled() bool { return r.Cause == "schedule" || r.Cause == "misfire" }

// find adds a violation.
func (c *checker) find(kind Kind, job, key string, at Time, format string, args ...any) {
	c.report.Find(Finding{Kind: kind, Job: job, Key: key, At: at.Std(), Detail: fmt.Sprintf(format, args...)})
}

// stamp writes an instant for people.
func stamp(t Time) string { return t.Std().Format("2006-01-02T15:04:05.000000Z") }

// interval is a time, both ends included.
type interval struct{ from, to Time }

// joinFaults merges the faults, each with what it leaves behind.
func (c *checker) joinFaults() {
	for _, f := range c.faults {
		to := f.end() + c.plan.Settle
		if n := len(c.windows); n > 0 && f.Start <= c.windows[n-1].to {
			c.windows[n-1].to = max(c.windows[n-1].to, to)
		} else {
			c.windows = append(c.windows, interval{f.Start, to})
		}
	}
}

// faultAt tells whether a fault, with what it leaves behind, meets [from, to].
func (c *checker) faultAt(from, to Time) bool {
	i, found := slices.BinarySearchFunc(c.windows, to, func(w interval, t Time) int { return cmp.Compare(w.from, t) })
	return found || i > 0 && c.windows[i-1].to >= from
}

// end of a fault; one without an end goes on for ever.
func (f *Fault) end() Time {
	if f.End == 0 {
		return latest
	}
	return f.End
}

// sum fills what is counted over all.
func (c *checker) sum() {
	r := c.report
	r.Outside, r.Inside = statsOf(c.outside), statsOf(c.inside)
	c.sumFaults()
	c.need()
	r.Accounted = r.Ran
	for _, n := range r.Explained {
		r.Accounted += n
	}
	if c.h.Torn > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d files end in half a line: their writers were killed", c.h.Torn))
	}
	if len(c.h.Rows) == 0 {
		r.Notes = append(r.Notes, "the history has no execution rows: results and reasons are not judged")
	}
	r.Sort()
}

// need compares with the plan.
func (c *checker) need() {
	c.report.Need("runs", max(c.plan.MinRuns, 1), len(c.runs))
	seen := 0
	for _, f := range c.faults {
		if f.End != 0 {
			seen++
		}
	}
	c.report.Need("faults", c.plan.MinFaults, seen)
	nodes := map[string]bool{}
	for name := range c.clocks {
		nodes[name] = true
	}
	for i := range c.h.Rows {
		nodes[c.h.Rows[i].Node] = true
	}
	for i := range c.runs {
		nodes[c.runs[i].Node] = true
	}
	delete(nodes, "")
	c.report.Need("nodes", c.plan.MinNodes, len(nodes))
	c.report.Need("expected fire times", 1, c.report.Expected) // a history that demands nothing proves nothing
}
