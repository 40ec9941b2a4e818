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

// judgeReason judges the reason of a row without a start. One that says "the
// system could not" holds only near a fault.
func (c *checker) judgeReason(j *job, t *target, row *Row) {
	if slices.Contains(live, row.State) {
		return // judged with the results
	}
	problem := ""
	switch row.Reason {
	case "misfire", "misfire_window", "misfire_cap":
		problem = c.judgeMisfire(j, row)
	case "coalesced":
		if problem = c.judgeMisfire(j, row); problem == "" {
			problem = c.judgeCoalesced(j, row)
		}
	case "overlap", "queue_full":
		problem = c.judgeOverlapReason(j, row)
	case "covered":
		problem = c.judgeCovered(j, row)
	case "paused", "deleted":
		problem = c.judgeStopReason(j, row)
	case "no_executor":
		if waited := row.FinishedAt - max(row.FireAt, row.PlannedAt); waited+rounding < j.wait(row.FireAt) {
			problem = "it waited for an instance for " + waited.Duration().String() + " only"
		}
	case "calendar": // also missed, in rows of versions without the state "excluded"
		if !t.excluded && !j.delayed() {
			problem = "no calendar excludes it"
		}
	case "killed", "bad_input", "unknown_handler":
		return // somebody wanted it so
	}
	if t.excluded && row.Reason != "calendar" {
		problem = "a calendar excludes it"
	}
	if problem == "" && c.explainable(row) {
		return
	}
	if problem == "" {
		problem = "no fault was near"
	}
	if t.must {
		c.find(Gap, j.id, row.Key, row.FireAt, "did not run (%s), but %s", explanation(row), problem)
	}
}

// explainable: the reason needs no fault, or a fault was near.
func (c *checker) explainable(row *Row) bool {
	switch row.Reason {
	case "overlap", "queue_full", "covered", "paused", "deleted", "calendar":
		return true
	}
	return c.faultAt(row.FireAt, max(row.FinishedAt, row.PlannedAt, row.FireAt))
}

// judgeMisfire: the fire time had passed by more than the threshold when the
// policy was asked: when the row was written, or when its run was to start.
func (c *checker) judgeMisfire(j *job, row *Row) string {
	asked := max(row.PlannedAt, row.GrantedAt)
	if row.GrantedAt == 0 {
		asked = max(asked, row.FinishedAt)
	}
	if row.PlannedAt != 0 && asked+rounding < row.FireAt+j.threshold(row.FireAt) {
		return "that was decided " + (asked - row.FireAt).Duration().String() + " after its time, below the threshold"
	}
	return ""
}

// judgeCoalesced: a later fire time ran, or was to run, in its place.
func (c *checker) judgeCoalesced(j *job, row *Row) string {
	first, _ := slices.BinarySearchFunc(j.rows, row.FireAt+1, func(i int, t Time) int { return cmp.Compare(c.h.Rows[i].FireAt, t) })
	for _, i := range j.rows[first:] {
		if other := &c.h.Rows[i]; other.scheduled() && other.Reason != row.Reason {
			return ""
		}
	}
	return "no later fire time ran in its place"
}

// judgeMadeUp judges a run in place of fire times that passed.
func (c *checker) judgeMadeUp(j *job, row *Row) {
	problem := c.judgeMisfire(j, row)
	if problem == "" && !c.faultAt(row.FireAt, row.PlannedAt) {
		problem = "no fault was near"
	}
	if problem != "" {
		c.find(Gap, j.id, row.Key, row.FireAt, "ran in place of fire times that passed, but %s", problem)
	}
}

// judgeOverlapReason: another run held the slot when this one was discarded, by a blocking
// strategy that discards for this reason.
func (c *checker) judgeOverlapReason(j *job, row *Row) string {
	discards := func(s *Spec) bool {
		if row.Reason == "queue_full" {
			return s.Blocking == "serial" || s.Blocking == "parallel" && s.Parallelism > 0
		}
		return s.Blocking == "discard_later"
	}
	if !slices.ContainsFunc(j.policies(row.FireAt), discards) {
		return "the job discards nothing"
	}
	when := max(row.FinishedAt, row.FireAt)
	for _, r := range c.before(j, when+rounding) {
		if c.family(r) != row.Key && c.heldUntil(r) >= min(row.FireAt, when) {
			return ""
		}
	}
	for _, i := range j.rows { // a run that never started may hold it too
		other := &c.h.Rows[i]
		if other.Key != row.Key && other.Parent != row.Key && other.OfferedAt != 0 && other.OfferedAt <= when && (other.FinishedAt == 0 || other.FinishedAt >= row.FireAt) {
			return ""
		}
	}
	return "no other run of the job was in progress"
}

// slotLinger is how long after a handler's end its result may be on its way,
// where no row tells.
const slotLinger Time = 1_000_000

// heldUntil is how long a run held its job's slot at the longest: until its
// row ended, which comes after the handler.
func (c *checker) heldUntil(r *Run) Time {
	until := c.aliveUntil(r)
	if row := c.row(c.family(r)); row != nil && row.FinishedAt != 0 {
		return max(until, row.FinishedAt)
	}
	return until + slotLinger
}

// judgeCovered: a later run of the job took its place.
func (c *checker) judgeCovered(j *job, row *Row) string {
	for _, i := range slices.Backward(j.rows) {
		other := &c.h.Rows[i]
		if other.FireAt <= row.FireAt {
			break
		}
		if other.PlannedAt <= row.FinishedAt {
			return ""
		}
	}
	return "no later run of the job was there"
}

// judgeStopReason: a pause or a delete was asked for before the row ended.
func (c *checker) judgeStopReason(j *job, row *Row) string {
	for _, stop := range j.stops {
		if stop.Invoke <= row.FinishedAt+c.slack(row.FinishedAt) {
			return ""
		}
	}
	return "nobody had asked for it"
}

// judgeResults compares the rows' ends with the handlers'.
func (c *checker) judgeResults() {
	for _, j := range c.order {
		for _, i := range j.rows {
			row := &c.h.Rows[i]
			if row.Shards > 0 && !row.part() {
				c.judgeFamily(j, row)
			} else if runs := c.keys[row.Key]; len(runs) > 0 {
				c.judgeResult(j, row, runs)
			} else if row.State == "succeeded" {
				c.find(FalseResult, j.id, row.Key, row.FireAt, "the row says succeeded, and no handler was started")
			}
			if slices.Contains(live, row.State) {
				c.judgeLive(j, row)
			}
		}
	}
}

// judgeResult judges one row that has starts.
func (c *checker) judgeResult(j *job, row *Row, runs []int) {
	last := &c.runs[runs[0]] // the start with the highest fence
	for _, i := range runs {
		if c.runs[i].Fence > last.Fence {
			last = &c.runs[i]
		}
	}
	ended := last.End != 0
	switch {
	case row.State == "missed" || row.State == "discarded" || row.State == "excluded" ||
		row.State == "cancelled" && row.Attempt == 0 && (row.Reason == "paused" || row.Reason == "deleted"):
		c.find(FalseResult, j.id, row.Key, last.Start, "the row says %s, and a handler was started", explanation(row))
	case row.State == "succeeded" && last.Fence != row.Fence:
		c.find(Fence, j.id, row.Key, last.Start, "the row succeeded under fence %d, the handler ran under %d", row.Fence, last.Fence)
	case row.State == "succeeded" && !c.allEnded(runs, row.Fence):
		c.find(FalseResult, j.id, row.Key, last.Start, "the row says succeeded, and the handler never ended")
	case row.State == "succeeded" && last.Failed:
		c.find(FalseResult, j.id, row.Key, last.Start, "the row says succeeded, and the handler returned an error")
	case row.State == "failed" && row.Reason == "handler_failed" && ended && !last.Failed:
		c.find(FalseResult, j.id, row.Key, last.Start, "the row says failed, and the handler returned no error")
	case ended && !last.Failed && !last.Cancelled:
		c.judgeLost(j, row, last)
	}
	c.judgeHoles(j, row, runs)
}

// allEnded: every share of the run under the fence has its end.
func (c *checker) allEnded(runs []int, fence int64) bool {
	return !slices.ContainsFunc(runs, func(i int) bool { return c.runs[i].Fence == fence && c.runs[i].End == 0 })
}

// reportTime is how long the result of a handler may be on its way to the
// executor's journal, in which it survives.
const reportTime = time.Second

// judgeLost finds a handler that ended well while its row says something else.
func (c *checker) judgeLost(j *job, row *Row, r *Run) {
	switch row.State {
	case "succeeded", "cancelled", "timed_out":
		return // the end and the cancel crossed
	case "due", "offered", "running", "cancelling", "retry_wait":
		if row.Fence > r.Fence {
			return // given away again, as the job allows; its end is not here yet
		}
		return // judged as unfinished
	}
	if row.Fence > r.Fence && j.retriesLost(r.FireAt) {
		return
	}
	if c.killedAt(r) {
		c.report.Unknowable++
		return
	}
	c.find(LostResult, j.id, row.Key, r.End, "the handler ended well at %s, and the row says %s", stamp(r.End), explanation(row))
}

// killedAt: the run's own process was killed just when the handler ended, so
// that the result may never have reached its journal.
func (c *checker) killedAt(r *Run) bool {
	return slices.ContainsFunc(c.faults, func(f Fault) bool {
		near := f.Start >= r.End-Span(reportTime) && f.Start <= r.End+Span(reportTime)
		return near && f.Kind == FaultKill && (f.Target == r.Node || f.Target == r.Boot)
	})
}

// judgeHoles finds attempts that the row counted and no witness saw.
func (c *checker) judgeHoles(j *job, row *Row, runs []int) {
	seen := map[int]bool{}
	for _, i := range runs {
		seen[c.runs[i].Attempt] = true
	}
	for n := 1; n <= row.Attempt; n++ {
		if !seen[n] && !c.faultAt(row.FireAt, max(row.FinishedAt, row.FireAt)) {
			c.find(Gap, j.id, row.Key, row.FireAt, "attempt %d of %d was never started, and no fault was near", n, row.Attempt)
		}
	}
}

// judgeLive judges a row that has not ended when the history does: it may
// still be on its way, wait for another run, or be stuck.
func (c *checker) judgeLive(j *job, row *Row) {
	if row.FireAt > c.plan.To {
		return
	}
	if age := c.end - row.FireAt; age > j.wait(row.FireAt)+c.plan.Settle {
		c.find(Unfinished, j.id, row.Key, row.FireAt, "the row is still %s, %s after its time", row.State, age.Duration())
		return
	}
	c.report.Need("end of the execution "+row.Key+" ("+row.State+")", 1, 0)
}
