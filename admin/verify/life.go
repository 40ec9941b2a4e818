package verify

import "time"

// Life is what a job's calls say about it, for a judge that has rows and no
// witnesses (package ledger).
type Life struct {
	j *job
}

// Target is a fire time that should, or may, have come to something.
type Target struct {
	Fire Time
	// Must: it is certain that the job was enabled and had this schedule.
	Must bool
}

// NewLife reads a job's calls, which are in the order of their invoke and not
// empty.
func NewLife(job string, calls []Call) *Life {
	return &Life{buildJob(job, calls, 0, func(Time) Time { return rounding })}
}

// Unreadable is why its schedule cannot be expanded, or "".
func (l *Life) Unreadable() string { return l.j.unreadable }

// Delayed tells that its fire times follow from the ends of its runs.
func (l *Life) Delayed() bool { return l.j.delayed() }

// Targets lists the fire times of [from, to], in order.
func (l *Life) Targets(from, to Time) []Target {
	l.j.targets = nil
	l.j.expand(from, to, from, to)
	list := make([]Target, 0, len(l.j.targets))
	for _, t := range l.j.targets {
		if t.shard == 0 {
			list = append(list, Target{t.fire, t.must})
		}
	}
	return list
}

// Jitter is the longest delay after a fire time that any revision allows.
func (l *Life) Jitter() Time {
	longest := Time(0)
	for _, r := range l.j.all {
		longest = max(longest, r.spec.JitterMax)
	}
	return longest
}

// Threshold is the longest misfire threshold of any revision.
func (l *Life) Threshold() Time {
	longest := Time(0)
	for _, r := range l.j.all {
		longest = max(longest, orDefault(r.spec.Threshold, Span(5*time.Second)))
	}
	return longest
}

// Single tells that no revision allows two runs at once.
func (l *Life) Single() bool {
	for _, r := range l.j.all {
		if r.spec.Blocking == "parallel" && r.spec.Parallelism != 1 {
			return false
		}
	}
	return true
}

// Stops tells whether it was ever paused or deleted.
func (l *Life) Stops() bool { return len(l.j.stops) > 0 }

// Stopped tells whether the job was certainly paused, or certainly deleted, all
// the time from one instant to another.
func (l *Life) Stopped(from, to Time) (paused, deleted bool) {
	state, certain := throughout(l.j.states, from, to)
	return certain && state == jobPaused, certain && state == jobDeleted
}
