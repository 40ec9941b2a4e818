package verify

// judgeDelays judges the jobs with a fixed delay, whose fire times are known
// only from the ends of their runs: each row comes Every after the end of the
// one before it, neither sooner nor, without a reason, later.
func (c *checker) judgeDelays() {
	for _, j := range c.order {
		if !j.delayed() {
			continue
		}
		var before *Row
		for _, i := range j.rows {
			row := &c.h.Rows[i]
			if !row.scheduled() {
				continue
			}
			if before != nil {
				c.judgeDelay(j, before, row)
			}
			before = row
		}
		if before != nil {
			c.judgeChainEnd(j, before)
		}
	}
}

// judgeDelay judges one step of the chain, as far as the delay is certain.
func (c *checker) judgeDelay(j *job, before, row *Row) {
	specs := j.policies(before.FinishedAt)
	if len(specs) != 1 || specs[0].Kind != kindFixedDelay || before.FinishedAt == 0 {
		return
	}
	due := before.FinishedAt + specs[0].Every
	switch now := at(j.revisions, row.FireAt); {
	case len(now) != 1 || now[0] == nil || now[0].spec != specs[0]:
		return // edited in between
	case row.FireAt+rounding < due:
		c.find(Early, j.id, row.Key, row.FireAt, "fires %s after the end of the run before it, the delay is %s",
			(row.FireAt - before.FinishedAt).Duration(), specs[0].Every.Duration())
	case len(specs[0].Calendars) == 0 && row.FireAt > due+c.plan.LateAfter && row.FireAt <= c.plan.To && !c.interrupted(j, due, row.FireAt):
		c.find(Gap, j.id, row.Key, row.FireAt, "fires %s after the end of the run before it, the delay is %s",
			(row.FireAt - before.FinishedAt).Duration(), specs[0].Every.Duration())
	}
}

// judgeChainEnd finds a chain that stopped.
func (c *checker) judgeChainEnd(j *job, last *Row) {
	specs := j.policies(last.FinishedAt)
	if len(specs) != 1 || specs[0].Kind != kindFixedDelay || last.FinishedAt == 0 {
		return
	}
	due := last.FinishedAt + specs[0].Every
	if len(specs[0].Calendars) == 0 && due+c.plan.LateAfter < c.plan.To && !c.interrupted(j, due, c.plan.To) {
		c.find(Missed, j.id, "", due, "nothing follows the run %s, %s after its end", last.Key, specs[0].Every.Duration())
	}
}

// interrupted: a fault, or a time in which the job may not have been enabled.
func (c *checker) interrupted(j *job, from, to Time) bool {
	if c.faultAt(from, to) {
		return true
	}
	for i, s := range j.states {
		ends := latest
		if i+1 < len(j.states) {
			ends = j.states[i+1].from
		}
		if ends > from && s.from <= to && (len(s.values) != 1 || s.values[0] != jobEnabled) {
			return true
		}
	}
	return false
}
