package verify

import (
	"cmp"
	"slices"
)

// idle is a row without a start. Its reason says why.
type idle struct {
	c   *checker
	j   *job
	row *Row
}

// judge judges the reason of the row of a target. One that says "the system could
// not" holds only near a fault.
func (n idle) judge(t *target) {
	if slices.Contains(live, n.row.State) {
		return // judged with the results
	}
	problem := ""
	switch n.row.Reason {
	case "misfire", "misfire_window", "misfire_cap":
		problem = misfireProblem(n.j, n.row)
	case "coalesced":
		if problem = misfireProblem(n.j, n.row); problem == "" {
			problem = n.coalesced()
		}
	case "overlap", "queue_full":
		problem = n.overlap()
	case "covered":
		problem = n.covered()
	case "paused", "deleted":
		problem = n.stopped()
	case "no_executor":
		if waited := n.row.FinishedAt - max(n.row.FireAt, n.row.PlannedAt); waited+rounding < n.j.wait(n.row.FireAt) {
			problem = "it waited for an instance for " + waited.Duration().String() + " only"
		}
	case "calendar": // also missed, in rows of versions without the state "excluded"
		if !t.excluded && !n.j.delayed() {
			problem = "no calendar excludes it"
		}
	case "killed", "bad_input", "unknown_handler":
		return // somebody wanted it so
	}
	if t.excluded && n.row.Reason != "calendar" {
		problem = "a calendar excludes it"
	}
	if problem == "" && n.explainable() {
		return
	}
	if problem == "" {
		problem = "no fault was near"
	}
	if t.must {
		n.c.find(Gap, n.j.id, n.row.Key, n.row.FireAt, "did not run (%s), but %s", explanation(n.row), problem)
	}
}

// explainable: the reason needs no fault, or a fault was near.
func (n idle) explainable() bool {
	return slices.Contains([]string{"overlap", "queue_full", "covered", "paused", "deleted", "calendar"}, n.row.Reason) ||
		n.c.faultAt(n.row.FireAt, max(n.row.FinishedAt, n.row.PlannedAt, n.row.FireAt))
}

// coalesced: a later fire time ran, or was to run, in its place.
func (n idle) coalesced() string {
	first, _ := slices.BinarySearchFunc(n.j.rows, n.row.FireAt+1, func(i int, t Time) int { return cmp.Compare(n.c.h.Rows[i].FireAt, t) })
	for _, i := range n.j.rows[first:] {
		if other := &n.c.h.Rows[i]; other.scheduled() && other.Reason != n.row.Reason {
			return ""
		}
	}
	return "no later fire time ran in its place"
}

// overlap: another run held the slot when this one was discarded, by a blocking
// strategy that discards for this reason.
func (n idle) overlap() string {
	discards := func(s *Spec) bool {
		if n.row.Reason == "queue_full" {
			return s.Blocking == "serial" || s.Blocking == "parallel" && s.Parallelism > 0
		}
		return s.Blocking == "discard_later"
	}
	if !slices.ContainsFunc(n.j.policies(n.row.FireAt), discards) {
		return "the job discards nothing"
	}
	when := max(n.row.FinishedAt, n.row.FireAt)
	for _, r := range n.c.before(n.j, when+rounding) {
		if n.c.family(r) != n.row.Key && n.c.heldUntil(r) >= min(n.row.FireAt, when) {
			return ""
		}
	}
	for _, i := range n.j.rows { // a run that never started may hold it too
		other := &n.c.h.Rows[i]
		if other.Key != n.row.Key && other.Parent != n.row.Key && other.OfferedAt != 0 && other.OfferedAt <= when && (other.FinishedAt == 0 || other.FinishedAt >= n.row.FireAt) {
			return ""
		}
	}
	return "no other run of the job was in progress"
}

// covered: a later run of the job took its place.
func (n idle) covered() string {
	for _, i := range slices.Backward(n.j.rows) {
		other := &n.c.h.Rows[i]
		if other.FireAt <= n.row.FireAt {
			break
		}
		if other.PlannedAt <= n.row.FinishedAt {
			return ""
		}
	}
	return "no later run of the job was there"
}

// stopped: a pause or a delete was asked for before the row ended.
func (n idle) stopped() string {
	if slices.ContainsFunc(n.j.stops, func(stop Call) bool { return stop.Invoke <= n.row.FinishedAt+n.c.slack(n.row.FinishedAt) }) {
		return ""
	}
	return "nobody had asked for it"
}

// misfireProblem is empty if the fire time had passed by more than the threshold when
// the policy was asked: when the row was written, or when its run was to start.
func misfireProblem(j *job, row *Row) string {
	asked := max(row.PlannedAt, row.GrantedAt)
	if row.GrantedAt == 0 {
		asked = max(asked, row.FinishedAt)
	}
	if row.PlannedAt != 0 && asked+rounding < row.FireAt+j.threshold(row.FireAt) {
		return "that was decided " + (asked - row.FireAt).Duration().String() + " after its time, below the threshold"
	}
	return ""
}

// judgeMadeUp judges a run in place of fire times that passed.
func (c *checker) judgeMadeUp(j *job, row *Row) {
	problem := misfireProblem(j, row)
	if problem == "" && !c.faultAt(row.FireAt, row.PlannedAt) {
		problem = "no fault was near"
	}
	if problem != "" {
		c.find(Gap, j.id, row.Key, row.FireAt, "ran in place of fire times that passed, but %s", problem)
	}
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
