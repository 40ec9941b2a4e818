package verify

import (
	"cmp"
	"slices"
)

// A fire that was cut into shards has a row, and one for each of its parts. The
// handlers ran as the parts: each shard is a target of the fire time by itself,
// and all of them hold the one slot of their parent.

// part: the row is a shard or a hook of another one.
func (r *Row) part() bool { return r.Part != "" }

// ofSchedule: the row is a shard of a fire of the schedule.
func (c *checker) ofSchedule(r *Row) bool {
	if r.Part != "shard" {
		return false
	}
	parent := c.row(r.Parent)
	return parent != nil && parent.scheduled()
}

// family names what holds the slot for a run: its parent, or itself.
func (c *checker) family(r *Run) string {
	if row := c.row(r.Key); row != nil && row.part() {
		return row.Parent
	}
	return r.Key
}

// firstStart is the first start of a row or of its parts; nil: there is none.
func (c *checker) firstStart(key string) *Run {
	runs := slices.Clone(c.keys[key])
	for _, i := range c.parts[key] {
		runs = append(runs, c.keys[c.h.Rows[i].Key]...)
	}
	if len(runs) == 0 {
		return nil
	}
	return &c.runs[slices.Min(runs)] // they are in the order of their start
}

// spread gives each fire of a job as many targets as its row says that it has
// shards.
func (c *checker) spread(j *job) {
	shards := map[Time]int{}
	for _, i := range j.rows {
		if row := &c.h.Rows[i]; row.scheduled() && row.Shards > 0 {
			shards[row.FireAt] = row.Shards
		}
	}
	if len(shards) == 0 {
		return
	}
	j.targets = slices.DeleteFunc(j.targets, func(t target) bool { n, cut := shards[t.fire]; return cut && t.shard >= n })
	var more []target
	for _, t := range j.targets {
		if n, cut := shards[t.fire]; cut && t.shard == 0 {
			for shard := 1; shard < n; shard++ {
				if _, there := j.find(t.fire, shard); !there {
					other := t
					other.shard = shard
					more = append(more, other)
				}
			}
		}
	}
	j.targets = append(j.targets, more...)
	slices.SortFunc(j.targets, func(a, b target) int { return cmp.Or(cmp.Compare(a.fire, b.fire), cmp.Compare(a.shard, b.shard)) })
}

// shardRow is the row that accounts for a shard of a fire; nil: the fire was cut
// into shards, and this one is not among them, or the fire has no row.
func (c *checker) shardRow(fire *Row, shard int) *Row {
	if fire == nil || fire.Shards == 0 {
		return fire
	}
	for _, i := range c.parts[fire.Key] {
		if row := &c.h.Rows[i]; row.Part == "shard" && row.Shard == shard {
			return row
		}
	}
	return nil
}

// hookEnd is when the hook before a run's shards had ended; 0: there is none.
func (c *checker) hookEnd(r *Run) Time {
	row := c.row(r.Key)
	if row == nil || row.Part != "shard" {
		return 0
	}
	for _, i := range c.parts[row.Parent] {
		if hook := &c.h.Rows[i]; hook.Part == "before" {
			return hook.FinishedAt
		}
	}
	return 0
}

// judgeFamily compares a fire that was cut into shards with them: each is there
// once, and the fire says what they say.
func (c *checker) judgeFamily(j *job, row *Row) {
	seen, succeeded, alive := map[int]bool{}, 0, 0
	for _, i := range c.parts[row.Key] {
		part := &c.h.Rows[i]
		if slices.Contains(live, part.State) {
			alive++
		}
		if part.Part != "shard" {
			continue
		}
		if seen[part.Shard] {
			c.find(Double, j.id, part.Key, row.FireAt, "a second row of shard %d of %s", part.Shard, row.Key)
		}
		seen[part.Shard] = true
		if part.State == "succeeded" {
			succeeded++
		}
	}
	if !row.Picked {
		for shard := range row.Shards {
			if !seen[shard] {
				c.find(Missed, j.id, row.Key, row.FireAt, "no row of shard %d of %d", shard, row.Shards)
			}
		}
	}
	switch ended := !slices.Contains(live, row.State); {
	case ended && alive > 0:
		c.find(FalseResult, j.id, row.Key, row.FireAt, "the row says %s, and %d of its parts have not ended", row.State, alive)
	case row.State == "succeeded" && succeeded < len(seen):
		c.find(FalseResult, j.id, row.Key, row.FireAt, "the row says succeeded, and %d of its %d shards did not", len(seen)-succeeded, len(seen))
	case row.Reason == "shards_failed" && succeeded == len(seen) && row.State == "failed":
		c.find(FalseResult, j.id, row.Key, row.FireAt, "the row says that shards failed, and all of them succeeded")
	}
}
