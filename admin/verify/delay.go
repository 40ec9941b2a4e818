package verify

// judgeDelays judges the jobs with a fixed delay, whose fire times are known
// only from the ends of their runs: each row comes Every after the end of the
// one before it, neither sooner nor, without a reason, later.
func (c *checker) judgeDelays() {
	for _, j := range c.order {
		if !j.delayed() {
			continue
		}
		ch := chain{c, j}
		var before *Row
		for _, i := range j.rows {
			row := &c.h.Rows[i]
			if !row.scheduled() {
				continue
			}
			if before != nil {
				ch.step(before, row)
			}
			before = row
		}
		if before != nil {
			ch.end(before)
		}
	}
}

// chain has the fire times of a job with a fixed delay.
type chain struct {
	c *checker
	j *job
}

// step judges one step of the chain, as far as the delay is certain.
func (ch chain) step(before, row *Row) {
	specs := ch.j.policies(before.FinishedAt)
	if len(specs) != 1 || specs[0].Kind != kindFixedDelay || before.FinishedAt == 0 {
		return
	}
	due := before.FinishedAt + specs[0].Every
	switch now := at(ch.j.revisions, row.FireAt); {
	case len(now) != 1 || now[0] == nil || now[0].spec != specs[0]:
		return // edited in between
	case row.FireAt+rounding < due:
		ch.c.find(Early, ch.j.id, row.Key, row.FireAt, "fires %s after the end of the run before it, the delay is %s",
			(row.FireAt - before.FinishedAt).Duration(), specs[0].Every.Duration())
	case len(specs[0].Calendars) == 0 && row.FireAt > due+ch.c.plan.LateAfter && row.FireAt <= ch.c.plan.To && !ch.interrupted(due, row.FireAt):
		ch.c.find(Gap, ch.j.id, row.Key, row.FireAt, "fires %s after the end of the run before it, the delay is %s",
			(row.FireAt - before.FinishedAt).Duration(), specs[0].Every.Duration())
	}
}

// end finds a chain that stopped.
func (ch chain) end(last *Row) {
	specs := ch.j.policies(last.FinishedAt)
	if len(specs) != 1 || specs[0].Kind != kindFixedDelay || last.FinishedAt == 0 {
		return
	}
	due := last.FinishedAt + specs[0].Every
	if len(specs[0].Calendars) == 0 && due+ch.c.plan.LateAfter < ch.c.plan.To && !ch.interrupted(due, ch.c.plan.To) {
		ch.c.find(Missed, ch.j.id, "", due, "nothing follows the run %s, %s after its end", last.Key, specs[0].Every.Duration())
	}
}

// interrupted: a fault, or a time in which the job may not have been enabled.
func (ch chain) interrupted(from, to Time) bool {
	if ch.c.faultAt(from, to) {
		return true
	}
	for i, s := range ch.j.states {
		ends := latest
		if i+1 < len(ch.j.states) {
			ends = ch.j.states[i+1].from
		}
		if ends > from && s.from <= to && (len(s.values) != 1 || s.values[0] != jobEnabled) {
			return true
		}
	}
	return false
}
