package verify

import (
	"cmp"
	"slices"
	"time"
)

// live are the states from which a run still has to come to an end.
var live = []string{"due", "offered", "running", "cancelling", "retry_wait"}

// explanation is how a row that did not run is counted.
func explanation(row *Row) string {
	if row.Reason == "" {
		return row.State
	}
	return row.State + ": " + row.Reason
}

// judgeResults compares the rows' ends with the handlers'.
func (c *checker) judgeResults() {
	for _, j := range c.order {
		for _, i := range j.rows {
			row := &c.h.Rows[i]
			v := verdict{c, j, row, c.keys[row.Key]}
			if row.Shards > 0 && !row.part() {
				c.judgeFamily(j, row)
			} else if len(v.runs) > 0 {
				v.judge()
			} else if row.State == "succeeded" {
				c.find(FalseResult, j.id, row.Key, row.FireAt, "the row says succeeded, and no handler was started")
			}
			if slices.Contains(live, row.State) {
				v.live()
			}
		}
	}
}

// verdict compares a row with the handlers that ran for it.
type verdict struct {
	c    *checker
	j    *job
	row  *Row
	runs []int // of checker.runs
}

// judge judges a row that has starts.
func (v verdict) judge() {
	// The start with the highest fence.
	last := &v.c.runs[slices.MaxFunc(v.runs, func(a, b int) int { return cmp.Compare(v.c.runs[a].Fence, v.c.runs[b].Fence) })]
	ended := last.End != 0
	switch {
	case v.row.State == "missed" || v.row.State == "discarded" || v.row.State == "excluded" ||
		v.row.State == "cancelled" && v.row.Attempt == 0 && (v.row.Reason == "paused" || v.row.Reason == "deleted"):
		v.c.find(FalseResult, v.j.id, v.row.Key, last.Start, "the row says %s, and a handler was started", explanation(v.row))
	case v.row.State == "succeeded" && last.Fence != v.row.Fence:
		v.c.find(Fence, v.j.id, v.row.Key, last.Start, "the row succeeded under fence %d, the handler ran under %d", v.row.Fence, last.Fence)
	case v.row.State == "succeeded" && !v.allEnded():
		v.c.find(FalseResult, v.j.id, v.row.Key, last.Start, "the row says succeeded, and the handler never ended")
	case v.row.State == "succeeded" && last.Failed:
		v.c.find(FalseResult, v.j.id, v.row.Key, last.Start, "the row says succeeded, and the handler returned an error")
	case v.row.State == "failed" && v.row.Reason == "handler_failed" && ended && !last.Failed:
		v.c.find(FalseResult, v.j.id, v.row.Key, last.Start, "the row says failed, and the handler returned no error")
	case ended && !last.Failed && !last.Cancelled:
		v.lost(last)
	}
	v.holes()
}

// allEnded: every share of the run under the fence of the row has its end.
func (v verdict) allEnded() bool {
	return !slices.ContainsFunc(v.runs, func(i int) bool { return v.c.runs[i].Fence == v.row.Fence && v.c.runs[i].End == 0 })
}

// reportTime is how long the result of a handler may be on its way to the
// executor's journal, in which it survives.
const reportTime = time.Second

// lost finds a handler that ended well while its row says something else.
func (v verdict) lost(r *Run) {
	switch v.row.State {
	case "succeeded", "cancelled", "timed_out":
		return // the end and the cancel crossed
	case "due", "offered", "running", "cancelling", "retry_wait":
		return // judged as unfinished, or given away again: its end is not here yet
	}
	if v.row.Fence > r.Fence && v.j.retriesLost(r.FireAt) {
		return
	}
	if v.c.killedAt(r) {
		v.c.report.Unknowable++
		return
	}
	v.c.find(LostResult, v.j.id, v.row.Key, r.End, "the handler ended well at %s, and the row says %s", stamp(r.End), explanation(v.row))
}

// killedAt: the run's own process was killed just when the handler ended, so
// that the result may never have reached its journal.
func (c *checker) killedAt(r *Run) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool {
		near := f.Start >= r.End-Span(reportTime) && f.Start <= r.End+Span(reportTime)
		return near && f.Kind == FaultKill && (f.Target == r.Node || f.Target == r.Boot)
	})
}

// holes finds attempts that the row counted and no witness saw.
func (v verdict) holes() {
	seen := map[int]bool{}
	for _, i := range v.runs {
		seen[v.c.runs[i].Attempt] = true
	}
	for n := 1; n <= v.row.Attempt; n++ {
		if !seen[n] && !v.c.faultAt(v.row.FireAt, max(v.row.FinishedAt, v.row.FireAt)) {
			v.c.find(Gap, v.j.id, v.row.Key, v.row.FireAt, "attempt %d of %d was never started, and no fault was near", n, v.row.Attempt)
		}
	}
}

// live judges a row that has not ended when the history does: it may
// still be on its way, wait for another run, or be stuck.
func (v verdict) live() {
	if v.row.FireAt > v.c.plan.To {
		return
	}
	if age := v.c.end - v.row.FireAt; age > v.j.wait(v.row.FireAt)+v.c.plan.Settle {
		v.c.find(Unfinished, v.j.id, v.row.Key, v.row.FireAt, "the row is still %s, %s after its time", v.row.State, age.Duration())
		return
	}
	v.c.report.Need("end of the execution "+v.row.Key+" ("+v.row.State+")", 1, 0)
}
