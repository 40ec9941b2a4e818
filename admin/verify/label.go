package verify

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// The labelled join: a run says which execution and fire time it is for, and
// is believed. It gives exact lateness, and sees doubles and stale fences; a
// scheduler that labels its runs wrongly is for the blind matching.

// place names a target.
type place struct {
	fire  Time
	shard int
}

// judgeLabels judges each job, and the runs of jobs that nobody made.
func (c *checker) judgeLabels() {
	for i := range c.runs {
		r := &c.runs[i]
		if c.jobs[r.Job] == nil {
			c.find(Phantom, r.Job, r.Key, r.Start, "a run of a job that nobody made")
		}
	}
	for _, j := range c.order {
		c.judgeJob(j)
	}
}

// judgeJob goes through one job's runs, then through its targets.
func (c *checker) judgeJob(j *job) {
	byPlace := map[place][]int{}
	var places []place // in the order of their first start
	asked, parts := map[string]bool{}, map[string]bool{}
	for _, i := range j.runs {
		r := &c.runs[i]
		if !c.belongs(j, r) {
			continue
		}
		if c.isScheduled(j, r) {
			p := place{r.FireAt, r.Shard}
			if byPlace[p] == nil {
				places = append(places, p)
			}
			byPlace[p] = append(byPlace[p], i)
		} else if row := c.row(r.Key); row != nil && row.part() {
			parts[r.Key] = true
			if parent := c.row(row.Parent); parent != nil && !parent.scheduled() {
				asked[parent.Key] = true // its shards ran for it
			}
		} else {
			asked[r.Key] = true
		}
	}
	rows := map[Time]*Row{}
	for _, i := range j.rows {
		c.judgeRow(j, &c.h.Rows[i], rows)
	}
	for _, p := range places {
		c.judgePlace(j, p, byPlace[p])
	}
	for i := range j.targets {
		t := &j.targets[i]
		if len(byPlace[place{t.fire, t.shard}]) == 0 {
			c.judgeIdle(j, t, c.shardRow(rows[t.fire], t.shard))
		} else if t.must {
			c.report.Ran++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		c.judgeAttempts(j, c.keys[key])
	}
	c.judgeAsked(j, asked)
	c.judgeStops(j)
}

// belongs judges what a run says about itself; a foreign run is not looked at
// further.
func (c *checker) belongs(j *job, r *Run) bool {
	row := c.row(r.Key)
	switch {
	case r.Tenant != j.tenant:
		c.find(Phantom, r.Job, r.Key, r.Start, "a run in tenant %s of a job of tenant %s", r.Tenant, j.tenant)
	case row != nil && (row.Job != r.Job || row.Tenant != r.Tenant):
		c.find(Phantom, r.Job, r.Key, r.Start, "the row with this key is of job %s in tenant %s", row.Job, row.Tenant)
	case row == nil && c.hasRows:
		c.find(Phantom, r.Job, r.Key, r.Start, "a start without a row")
	case row != nil && row.FireAt != r.FireAt:
		c.find(Fence, r.Job, r.Key, r.Start, "the run was told the fire time %s, its row has %s", stamp(r.FireAt), stamp(row.FireAt))
		return true
	case r.Fence < 1 || row != nil && r.Fence > row.Fence:
		c.find(Fence, r.Job, r.Key, r.Start, "the run has fence %d, which its row never gave out", r.Fence)
		return true
	default:
		return true
	}
	j.extra++
	return false
}

// isScheduled tells a run of the schedule from one that somebody asked for.
func (c *checker) isScheduled(j *job, r *Run) bool {
	if row := c.row(r.Key); row != nil {
		return row.scheduled() || c.ofSchedule(row)
	}
	named := func(call Call) bool { return call.Key == r.Key }
	if slices.ContainsFunc(j.asked, named) || slices.ContainsFunc(j.perhaps, named) {
		return false
	}
	if _, ok := j.find(r.FireAt, r.Shard); ok || j.delayed() {
		return true
	}
	// Without rows and keys, a run at no fire time is somebody's if one asked.
	return len(j.asked)+len(j.perhaps) == 0
}

// judgeRow notes a scheduled row under its fire time, and judges that it has one.
func (c *checker) judgeRow(j *job, row *Row, rows map[Time]*Row) {
	if row.Tenant != j.tenant {
		c.find(Phantom, j.id, row.Key, row.FireAt, "a row in tenant %s of a job of tenant %s", row.Tenant, j.tenant)
	}
	if !row.scheduled() {
		return
	}
	if other := rows[row.FireAt]; other != nil {
		c.find(Double, j.id, row.Key, row.FireAt, "a second row of this fire time; the other one is %s", other.Key)
		return
	}
	rows[row.FireAt] = row
	if _, ok := j.find(row.FireAt, 0); !ok && !j.delayed() && j.unreadable == "" {
		c.find(Phantom, j.id, row.Key, row.FireAt, "a row of %s, at which the schedule does not fire", stamp(row.FireAt))
	}
}

// judgePlace judges all scheduled starts of one fire time and shard.
func (c *checker) judgePlace(j *job, p place, runs []int) {
	first := &c.runs[runs[0]]
	t, ok := j.find(p.fire, p.shard)
	switch {
	case ok && t.excluded:
		c.find(Phantom, j.id, first.Key, first.Start, "a start for %s, which a calendar excludes", stamp(p.fire))
	case ok:
		c.judgeTime(j, t, first)
	case j.delayed():
		c.judgeTime(j, &target{fire: p.fire, shard: p.shard}, first)
	case j.unreadable == "":
		if c.row(first.Key) == nil { // else its row was judged
			c.find(Phantom, j.id, first.Key, first.Start, "a start for %s, at which the schedule does not fire", stamp(p.fire))
		}
		j.extra++
	}
	for _, i := range runs[1:] {
		r := &c.runs[i]
		if r.Key != first.Key {
			c.find(Double, j.id, r.Key, r.Start, "the fire time %s had started before as %s", stamp(p.fire), first.Key)
			j.extra++
		}
	}
	c.judgeAttempts(j, runs)
}

// judgeTime judges when the first start of a target came.
func (c *checker) judgeTime(j *job, t *target, r *Run) {
	if r.Start < t.fire-c.tolerance(r)-c.ahead {
		j.missed, j.extra = j.missed+1, j.extra+1 // by the clock it cannot be this target's
		c.find(Early, j.id, r.Key, r.Start, "started %s before its fire time %s", (t.fire - r.Start).Duration(), stamp(t.fire))
		return
	}
	if row := c.row(r.Key); row != nil && row.Cause == "misfire" {
		c.judgeMadeUp(j, row)
		return
	}
	due := max(t.fire+t.jitter, c.slotFree(j, r), c.hookEnd(r))
	late := max(r.Start-due, 0)
	if c.faultAt(t.fire, r.Start) {
		c.inside = append(c.inside, late.Duration())
	} else {
		c.outside = append(c.outside, late.Duration())
		if c.plan.MaxLate != 0 && late > c.plan.MaxLate {
			c.find(Late, j.id, r.Key, r.Start, "started %s after it was due at %s, and no fault was near", late.Duration(), stamp(due))
		}
	}
	if c.faultAt(due, due) {
		c.starts = append(c.starts, start{due, r.Start})
	}
	c.report.AddStart(due.Std(), late.Duration())
}

// judgeAttempts judges the starts of each key: one per fence and attempt, the
// fence growing, no repetition of what must not be repeated.
func (c *checker) judgeAttempts(j *job, runs []int) {
	last := map[string]int{}
	free := map[string]int{} // attempts of the key that do not count
	lost := map[string]int{} // those that may have been lost
	for _, i := range runs {
		r := &c.runs[i]
		before, seen := last[r.Key]
		last[r.Key] = i
		if !seen {
			lost[r.Key] = r.Attempt - 1
			continue
		}
		b := &c.runs[before]
		switch {
		case b.Snoozed || b.Stopped && j.retriesLost(b.FireAt):
			free[r.Key]++
		case !b.Failed:
			lost[r.Key]++
		}
		lost[r.Key] += max(0, r.Attempt-b.Attempt-1) // they never started
		switch {
		case r.Fence == b.Fence:
			c.find(Double, j.id, r.Key, r.Start, "fence %d started a second time, %s after the first", r.Fence, (r.Start - b.Start).Duration())
			j.extra++
		case r.Fence < b.Fence:
			c.find(Fence, j.id, r.Key, r.Start, "fence %d started after fence %d had", r.Fence, b.Fence)
		case r.Attempt <= b.Attempt:
			c.find(Double, j.id, r.Key, r.Start, "attempt %d started a second time, under fence %d after %d", r.Attempt, r.Fence, b.Fence)
			j.extra++
		case r.Attempt > j.maxAttempts(r.FireAt)+free[r.Key]+min(lost[r.Key], j.freeLosses(r.FireAt)):
			c.find(Double, j.id, r.Key, r.Start, "attempt %d of a job that allows %d", r.Attempt, j.maxAttempts(r.FireAt))
		default:
			c.judgeRepeat(j, b, r)
		}
	}
}

// judgeRepeat judges that a further attempt was allowed, and whether the one
// before it was still alive.
func (c *checker) judgeRepeat(j *job, before, r *Run) {
	c.report.Repeats++
	retries := j.retriesLost(r.FireAt)
	if !retries && !before.Failed && !before.Cancelled {
		c.find(Double, j.id, r.Key, r.Start, "attempt %d repeats attempt %d, whose outcome was not a failure", r.Attempt, before.Attempt)
		j.extra++
		return
	}
	alive := c.aliveUntil(before) - r.Start
	if alive <= c.tolerance(r) {
		return
	}
	if retries {
		c.report.BothAlive = max(c.report.BothAlive, alive.Duration())
		return
	}
	c.find(Overlap, j.id, r.Key, r.Start, "attempt %d started while attempt %d was alive, for %s", r.Attempt, before.Attempt, alive.Duration())
}

// aliveUntil is the last instant at which a handler certainly lived: its end,
// or, when it never ended, the last sign of its process.
func (c *checker) aliveUntil(r *Run) Time {
	if r.End != 0 {
		return r.End
	}
	return max(r.Start, c.boots[r.Boot])
}

// judgeIdle judges a target without a start.
func (c *checker) judgeIdle(j *job, t *target, row *Row) {
	switch {
	case row != nil && (row.State == "succeeded" || len(c.keys[row.Key]) > 0):
		j.missed++
		if len(c.keys[row.Key]) > 0 { // else it is judged with the results
			c.find(FalseResult, j.id, row.Key, row.FireAt, "no start of share %d counts for it", t.shard)
		}
	case row != nil:
		if t.must {
			c.report.Explained[explanation(row)]++
		}
		idle{c, j, row}.judge(t)
	case t.must:
		c.find(Missed, j.id, "", t.fire, "no start%s for the fire time %s", c.noRow(), stamp(t.fire))
		j.missed++
	}
}

func (c *checker) noRow() string {
	if c.hasRows {
		return " and no row"
	}
	return ""
}

// judgeAsked compares the runs that somebody asked for with the calls. started
// holds those that have a start, by key.
func (c *checker) judgeAsked(j *job, started map[string]bool) {
	c.report.Asked += len(started)
	known, requests := map[string]bool{}, map[string]bool{}
	unnamed := 0 // calls that were answered without a key
	for _, call := range j.asked {
		if call.Request != "" && requests[call.Request] {
			continue // the same request once more
		}
		requests[call.Request] = true
		c.report.Expected++
		if call.Key == "" {
			unnamed++
			continue
		}
		known[call.Key] = true
		c.judgeTrigger(j, call, started[call.Key])
	}
	for _, call := range j.perhaps {
		known[call.Key] = known[call.Key] || call.Key != ""
	}
	var others []string
	for _, key := range slices.Sorted(maps.Keys(started)) {
		c.judgeAttempts(j, c.keys[key])
		if row := c.row(key); !known[key] && (row == nil || row.Cause == "manual" || row.Cause == "api") {
			others = append(others, key)
		}
	}
	c.judgeUnnamed(j, others, unnamed)
}

// judgeTrigger judges one call whose answer named its run.
func (c *checker) judgeTrigger(j *job, call Call, started bool) {
	switch row := c.row(call.Key); {
	case started:
		c.report.Ran++
		c.judgeAnswer(j, call)
	case row == nil:
		c.find(Missed, j.id, call.Key, call.Ack, "no start%s of the run that was asked for", c.noRow())
		j.missed++
	case row.State == "succeeded":
		j.missed++ // judged with the results
	default:
		c.report.Explained[explanation(row)]++
		idle{c, j, row}.judge(&target{fire: row.FireAt, must: true})
	}
}

// judgeAnswer judges when a run started that somebody asked for.
func (c *checker) judgeAnswer(j *job, call Call) {
	r := c.firstStart(call.Key)
	if r.Start < call.Invoke-c.tolerance(r) {
		j.missed, j.extra = j.missed+1, j.extra+1
		c.find(Early, j.id, r.Key, r.Start, "started %s before anybody asked for it", (call.Invoke - r.Start).Duration())
		return
	}
	due := max(call.Ack, c.slotFree(j, r))
	if late := r.Start - due; c.plan.MaxLate != 0 && late > c.plan.MaxLate && !c.faultAt(call.Invoke, r.Start) {
		c.find(Late, j.id, r.Key, r.Start, "started %s after the call was answered, and no fault was near", late.Duration())
	}
}

// judgeUnnamed compares the runs that no answer named with the calls whose
// answer did not come, or named none.
func (c *checker) judgeUnnamed(j *job, others []string, unnamed int) {
	for i, key := range others {
		switch {
		case i < unnamed:
			c.report.Ran++
		case i >= unnamed+len(j.perhaps):
			c.find(Phantom, j.id, key, c.firstStart(key).Start, "a run that nobody asked for")
			j.extra++
		}
	}
	idle := 0
	for _, i := range j.rows {
		if row := &c.h.Rows[i]; (row.Cause == "manual" || row.Cause == "api") && !row.part() && c.firstStart(row.Key) == nil {
			idle++
		}
	}
	for range unnamed - len(others) - idle {
		c.find(Missed, j.id, "", c.plan.To, "no start%s of a run that was asked for", c.noRow())
		j.missed++
	}
}

// stopGrace is how long after the answer to a pause or a delete a start may
// still come (promise P11).
const stopGrace = time.Second

// judgeStops finds starts after a pause or a delete was answered. A pause
// leaves retries and what was asked for; a delete leaves nothing.
func (c *checker) judgeStops(j *job) {
	if len(j.stops) == 0 {
		return
	}
	for _, i := range j.runs {
		r := &c.runs[i]
		state, certain := throughout(j.states, r.Start-Span(stopGrace)-c.tolerance(r), r.Start)
		if !certain || r.Tenant != j.tenant {
			continue
		}
		switch {
		case state == jobDeleted:
			c.find(Phantom, j.id, r.Key, r.Start, "started more than %s after the job was deleted", stopGrace)
		case state == jobPaused && r.Attempt <= 1 && c.isScheduled(j, r):
			c.find(Phantom, j.id, r.Key, r.Start, "started more than %s after the job was paused", stopGrace)
		}
	}
}

// before lists the runs of a job that started last before an instant: more
// than may hold its slots, and not all of a long history.
func (c *checker) before(j *job, t Time) []*Run {
	i, _ := slices.BinarySearchFunc(j.runs, t, func(i int, t Time) int { return cmp.Compare(c.runs[i].Start, t) })
	var list []*Run
	for _, k := range j.runs[max(0, i-4*j.limit(t)-16):i] {
		list = append(list, &c.runs[k])
	}
	return list
}

// slotFree is when a run's job had room for it, as far as runs that started
// before it took it; 0: it had room before.
func (c *checker) slotFree(j *job, r *Run) Time {
	limit := j.limit(r.FireAt)
	if limit == 0 {
		return 0
	}
	held := map[string]Time{} // by family
	for _, before := range c.before(j, r.Start) {
		if family := c.family(before); family != c.family(r) && before.FireAt <= r.FireAt { // those with later fire times wait behind it
			held[family] = max(held[family], c.heldUntil(before))
		}
	}
	if len(held) < limit {
		return 0
	}
	ends := slices.Sorted(maps.Values(held))
	// More than the limit may have been counted; the run itself started when
	// there was room, so no later end held it up.
	return min(ends[len(ends)-limit], r.Start)
}
