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
	o, err := newOverall(h)
	if err != nil {
		return nil, err
	}
	for i := range h.Runs {
		o.seeRun(&h.Runs[i])
	}
	for i := range h.Rows {
		o.seeRow(&h.Rows[i])
	}
	o.judge(h)
	o.sum(h.Torn)
	return o.report, nil
}

// overall is what is known, and counted, of the history as a whole. Jobs are
// judged by themselves, so that a history may be judged in parts.
type overall struct {
	plan    Plan // with its defaults
	report  *Report
	faults  []Fault
	windows []interval        // the faults, merged
	clocks  map[string][]Node // measurements by node and time
	ahead   Time              // what the database's clock is off when all is well

	// What seeRun and seeRow have seen.
	end     Time            // the last instant that the history knows of
	boots   map[string]Time // when a boot last showed itself, on the reference clock
	nodes   map[string]bool
	hasRows bool

	outside, inside []time.Duration // lateness
	starts          []start         // first starts that were due near a fault
}

// checker holds one part of a history while it is judged: some jobs with all
// that belongs to them.
type checker struct {
	*overall
	h    *History
	runs []Run // by start, on the reference clock

	jobs  map[string]*job
	order []*job         // by id
	rows  map[string]int // by key
	keys  map[string][]int
	parts map[string][]int // rows of parts, by their parent's key
}

// start is the first start of a target.
type start struct {
	due, at Time
}

// newOverall reads everything of a history but its runs and rows.
func newOverall(h *History) (*overall, error) {
	if h.Plan == nil {
		return nil, ErrNoPlan
	}
	p := *h.Plan
	p.LateAfter = orDefault(p.LateAfter, Span(time.Second))
	p.Settle = orDefault(p.Settle, Span(30*time.Second))
	p.CallLimit = orDefault(p.CallLimit, Span(time.Minute))
	o := &overall{
		plan: p, report: NewReport(), faults: slices.Clone(h.Faults),
		clocks: map[string][]Node{}, boots: map[string]Time{}, nodes: map[string]bool{}, end: p.To,
	}
	o.report.Name, o.report.From, o.report.To = p.Name, p.From.Std(), p.To.Std()
	slices.SortStableFunc(o.faults, func(a, b Fault) int { return cmp.Compare(a.Start, b.Start) })
	for _, n := range h.Nodes {
		o.clocks[n.Node] = append(o.clocks[n.Node], n)
		o.nodes[n.Node] = true
	}
	for _, list := range o.clocks {
		slices.SortStableFunc(list, func(a, b Node) int { return cmp.Compare(a.At, b.At) })
	}
	for _, call := range h.Calls {
		o.end = max(o.end, call.Invoke, call.Ack)
	}
	o.joinFaults()
	o.ahead = o.calm()
	return o, nil
}

// seeRun and seeRow come before any part is judged.
func (o *overall) seeRun(r *Run) {
	aligned := *r
	o.align(&aligned)
	o.boots[r.Boot] = max(o.boots[r.Boot], aligned.Start, aligned.End)
	o.end = max(o.end, aligned.Start, aligned.End)
	o.nodes[r.Node] = true
}

func (o *overall) seeRow(r *Row) {
	o.end = max(o.end, r.PlannedAt, r.OfferedAt, r.GrantedAt, r.FinishedAt)
	o.nodes[r.Node] = true
	o.hasRows = true
}

// judge judges the jobs of one part.
func (o *overall) judge(part *History) {
	c := &checker{overall: o, h: part, jobs: map[string]*job{}, rows: map[string]int{}, keys: map[string][]int{}, parts: map[string][]int{}}
	c.alignRuns()
	c.buildJobs()
	c.expand()
	c.judgeLabels()
	c.judgeResults()
	c.judgeOverlap()
	c.judgeBlind()
	c.judgeDelays()
}

// clock tells how far a node's clock was off, by the measurement next to an
// instant.
func (o *overall) clock(node string, at Time) (offset, bound Time) {
	list := o.clocks[node]
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
func (o *overall) tolerance(r *Run) Time {
	_, bound := o.clock(r.Node, r.Start)
	return bound + rounding
}

// align puts a run on the reference clock.
func (o *overall) align(r *Run) {
	offset, _ := o.clock(r.Node, r.Start)
	r.Start -= offset
	if r.End != 0 {
		r.End -= offset
	}
}

// alignRuns puts all runs on the reference clock, in the order of their start.
func (c *checker) alignRuns() {
	c.runs = slices.Clone(c.h.Runs)
	for i := range c.runs {
		c.align(&c.runs[i])
	}
	slices.SortFunc(c.runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Fence, b.Fence), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Shard, b.Shard))
	})
	for i := range c.runs {
		c.keys[c.runs[i].Key] = append(c.keys[c.runs[i].Key], i)
	}
}

// slack is how far the database's clock, by which the admin plans, was off.
func (o *overall) slack(at Time) Time {
	slack := rounding
	for name, list := range o.clocks {
		if list[0].Role == "database" {
			offset, bound := o.clock(name, at)
			slack = max(slack, max(offset, -offset)+bound+rounding)
		}
	}
	return slack
}

// calm is the least that the database's clock was ever off: what it is off
// when nobody steps it.
func (o *overall) calm() Time {
	least := latest
	for _, list := range o.clocks {
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
		if r.part() {
			c.parts[r.Parent] = append(c.parts[r.Parent], i)
		}
		if j := c.jobs[r.Job]; j != nil {
			j.rows = append(j.rows, i)
		} else {
			c.find(Phantom, r.Job, r.Key, r.FireAt, "a row of a job that nobody made")
		}
	}
	for _, j := range c.order {
		slices.SortStableFunc(j.rows, func(a, b int) int { return cmp.Compare(c.h.Rows[a].FireAt, c.h.Rows[b].FireAt) })
	}
	c.report.Jobs += len(c.order)
	c.report.Runs += len(c.runs)
	c.report.Rows += len(c.h.Rows)
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
		c.spread(j)
		if !c.hasRows {
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

// scheduled: the row is that of a fire time of the schedule.
func (r *Row) scheduled() bool {
	return (r.Cause == "schedule" || r.Cause == "misfire") && !r.part()
}

// find adds a violation.
func (c *checker) find(kind Kind, job, key string, at Time, format string, args ...any) {
	c.report.Find(Finding{Kind: kind, Job: job, Key: key, At: at.Std(), Detail: fmt.Sprintf(format, args...)})
}

// stamp writes an instant for people.
func stamp(t Time) string { return t.Std().Format("2006-01-02T15:04:05.000000Z") }

// interval is a time, both ends included.
type interval struct{ from, to Time }

// joinFaults merges the faults, each with what it leaves behind.
func (o *overall) joinFaults() {
	for _, f := range o.faults {
		to := f.end() + o.plan.Settle
		if n := len(o.windows); n > 0 && f.Start <= o.windows[n-1].to {
			o.windows[n-1].to = max(o.windows[n-1].to, to)
		} else {
			o.windows = append(o.windows, interval{f.Start, to})
		}
	}
}

// faultAt tells whether a fault, with what it leaves behind, meets [from, to].
func (o *overall) faultAt(from, to Time) bool {
	i, found := slices.BinarySearchFunc(o.windows, to, func(w interval, t Time) int { return cmp.Compare(w.from, t) })
	return found || i > 0 && o.windows[i-1].to >= from
}

// end of a fault; one without an end goes on for ever.
func (f *Fault) end() Time {
	if f.End == 0 {
		return latest
	}
	return f.End
}

// sum fills what is counted over all.
func (o *overall) sum(torn int) {
	r := o.report
	r.Outside, r.Inside = statsOf(o.outside), statsOf(o.inside)
	o.sumFaults()
	o.need()
	r.Accounted = r.Ran
	for _, n := range r.Explained {
		r.Accounted += n
	}
	if torn > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d files end in half a line: their writers were killed", torn))
	}
	if !o.hasRows {
		r.Notes = append(r.Notes, "the history has no execution rows: results and reasons are not judged")
	}
	r.Sort()
}

// need compares with the plan.
func (o *overall) need() {
	o.report.Need("runs", max(o.plan.MinRuns, 1), o.report.Runs)
	seen := 0
	for _, f := range o.faults {
		if f.End != 0 {
			seen++
		}
	}
	o.report.Need("faults", o.plan.MinFaults, seen)
	delete(o.nodes, "")
	o.report.Need("nodes", o.plan.MinNodes, len(o.nodes))
	o.report.Need("expected fire times", 1, o.report.Expected) // a history that demands nothing proves nothing
}
