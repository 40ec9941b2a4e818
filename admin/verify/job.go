package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/verify/expand"
)

// jobState is what a job is at an instant.
type jobState uint8

const (
	jobAbsent jobState = iota // not made yet
	jobEnabled
	jobPaused
	jobDeleted
)

// revision is one version of a job's schedule and policies.
type revision struct {
	spec *Spec
	// schedule is nil when the times are not known in advance: fixed delays,
	// and what cannot be read.
	schedule *expand.Schedule
}

// job is everything the history says about one job.
type job struct {
	id, tenant string
	states     []span[jobState]
	revisions  []span[*revision] // nil before the first
	all        []*revision
	// unreadable is why a revision cannot be expanded, or "".
	unreadable string

	targets []target // by fire time, then shard
	runs    []int    // indexes into the runs, by start
	rows    []int    // indexes into the rows, by fire time
	// asked counts the trigger calls: acked ones, and those without an answer.
	asked, perhaps []Call
	stops          []Call // pauses and deletes that were not refused

	// What the labelled join found, to compare with the blind matching: targets
	// without their start, and starts without a target of their own.
	missed, extra int
}

// target is one start that should, or may, have happened.
type target struct {
	fire  Time
	shard int
	// must: it is certain that the job was enabled and had this schedule.
	must   bool
	jitter Time // the longest delay after fire that is on time
	// excluded: it is a must for which a calendar demands a row and no run.
	excluded bool
}

// buildJob makes the registers out of the calls, which are in the order of
// their invoke. slack widens each call's interval by what the clocks differ.
func buildJob(id string, calls []Call, limit Time, slack func(Time) Time) *job {
	j := &job{id: id, tenant: calls[0].Tenant}
	var states []write[jobState]
	var revisions []write[*revision]
	for _, c := range calls {
		if c.Refused {
			continue
		}
		from, to, certain := c.Invoke-slack(c.Invoke), c.Ack+slack(c.Ack), c.Ack != 0
		if !certain {
			to = c.Invoke + limit
		}
		if c.Spec != nil {
			r := j.revision(c.Spec)
			revisions = append(revisions, write[*revision]{r, from, to, certain})
		}
		if state, ok := c.state(); ok {
			states = append(states, write[jobState]{state, from, to, certain})
		}
		j.note(c)
	}
	j.states, j.revisions = possible(jobAbsent, states), possible(nil, revisions)
	return j
}

// state is what a call makes of the job; false when it leaves it as it is.
func (c Call) state() (jobState, bool) {
	switch c.Op {
	case OpCreate:
		if c.Paused {
			return jobPaused, true
		}
		return jobEnabled, true
	case OpPause:
		return jobPaused, true
	case OpResume:
		return jobEnabled, true
	case OpDelete:
		return jobDeleted, true
	}
	return 0, false
}

// note keeps the calls that are looked at one by one.
func (j *job) note(c Call) {
	switch {
	case c.Op == OpPause || c.Op == OpDelete:
		j.stops = append(j.stops, c)
	case c.Op == OpTrigger && c.Ack != 0:
		j.asked = append(j.asked, c)
	case c.Op == OpTrigger:
		j.perhaps = append(j.perhaps, c)
	}
}

// revision compiles a spec.
func (j *job) revision(s *Spec) *revision {
	r := &revision{spec: s}
	j.all = append(j.all, r)
	if s.Kind == kindFixedDelay {
		return r
	}
	schedule, err := expand.New(s.expand())
	if err != nil {
		j.unreadable = err.Error()
		return r
	}
	r.schedule = schedule
	return r
}

const kindFixedDelay = "fixed_delay"

// expand turns a spec into the expander's.
func (s *Spec) expand() expand.Spec {
	e := expand.Spec{
		Kind: s.Kind, Expr: s.Expr, Dialect: s.Dialect, Every: s.Every.Duration(), Anchor: s.Anchor.Std(), At: s.At.Std(),
		WindowFrom: s.WindowFrom, WindowTo: s.WindowTo, Zone: s.Zone, StartAt: s.StartAt.Std(), EndAt: s.EndAt.Std(),
		Gap: s.Gap, Overlap: s.Overlap, Days: s.Days,
	}
	for _, c := range s.Calendars {
		calendar := expand.Calendar{Zone: c.Zone, Weekend: c.Weekend, Holidays: c.Holidays, MakeUpDays: c.MakeUpDays}
		for _, b := range c.Blackouts {
			calendar.Blackouts = append(calendar.Blackouts, expand.Blackout{From: b.From.Std(), To: b.To.Std()})
		}
		e.Calendars = append(e.Calendars, calendar)
	}
	for _, at := range s.Instants {
		e.Instants = append(e.Instants, at.Std())
	}
	return e
}

// expand fills the targets of [from, to]. Fire times before mustFrom and after
// mustTo are never a must.
func (j *job) expand(from, to, mustFrom, mustTo Time) {
	for i, r := range j.revisions {
		end := to
		if i+1 < len(j.revisions) {
			end = min(end, j.revisions[i+1].from-1)
		}
		begin := max(from, r.from)
		for _, value := range r.values {
			if value == nil || value.schedule == nil || begin > end {
				continue
			}
			j.expandRevision(value, begin, end, len(r.values) == 1, mustFrom, mustTo)
		}
	}
	slices.SortFunc(j.targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.fire, b.fire), cmp.Compare(a.shard, b.shard), boolInt(b.must)-boolInt(a.must))
	})
	j.targets = slices.CompactFunc(j.targets, func(a, b target) bool { return a.fire == b.fire && a.shard == b.shard })
}

// adopt makes targets of the rows, for a job whose fire times follow from its
// runs.
func (j *job) adopt(rows []Row, mustFrom, mustTo Time) {
	for _, i := range j.rows {
		if row := &rows[i]; row.scheduled() {
			must := row.FireAt >= mustFrom && row.FireAt <= mustTo
			j.targets = append(j.targets, target{fire: row.FireAt, must: must})
		}
	}
}

// expandRevision adds the fire times of one revision in a time in which it is
// possible, or certain.
func (j *job) expandRevision(r *revision, from, to Time, certain bool, mustFrom, mustTo Time) {
	for ms := range r.schedule.Fires(milliUp(from), milliDown(to)) {
		fire := Time(ms * 1000)
		states := at(j.states, fire)
		if !slices.Contains(states, jobEnabled) {
			continue
		}
		must := certain && len(states) == 1 && fire >= mustFrom && fire <= mustTo
		excluded := must && len(r.spec.Calendars) > 0 && r.schedule.Excluded(ms)
		for shard := range max(r.spec.Shards, 1) {
			j.targets = append(j.targets, target{fire, shard, must, r.spec.JitterMax, excluded})
		}
	}
}

func milliUp(t Time) int64 { return -milliDown(-t) }

func milliDown(t Time) int64 {
	ms := int64(t) / 1000
	if t%1000 < 0 {
		ms--
	}
	return ms
}

// find returns the target of a fire time and shard.
func (j *job) find(fire Time, shard int) (*target, bool) {
	i, ok := slices.BinarySearchFunc(j.targets, target{fire: fire, shard: shard}, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.fire, b.fire), cmp.Compare(a.shard, b.shard))
	})
	if !ok {
		return nil, false
	}
	return &j.targets[i], true
}

// delayed: some revision is a fixed delay, whose fire times come from its runs.
func (j *job) delayed() bool {
	return slices.ContainsFunc(j.all, func(r *revision) bool { return r.spec.Kind == kindFixedDelay })
}

// policies lists the specs that may have been in force at an instant.
func (j *job) policies(t Time) []*Spec {
	var list []*Spec
	for _, r := range at(j.revisions, t) {
		if r != nil {
			list = append(list, r.spec)
		}
	}
	return list
}

// limit is how many runs may be in progress at once; 0 = no limit. The widest
// of the policies that may have been in force counts.
func (j *job) limit(t Time) int {
	widest := 1
	for _, s := range j.policies(t) {
		if s.Blocking == "parallel" {
			if s.Parallelism == 0 {
				return 0
			}
			widest = max(widest, s.Parallelism)
		}
	}
	return widest
}

// retriesLost: an attempt whose outcome is unknown may be repeated.
func (j *job) retriesLost(t Time) bool {
	return slices.ContainsFunc(j.policies(t), func(s *Spec) bool {
		return s.OnLost == "retry" || s.OnLost != "fail" && s.Idempotent
	})
}

// freeLosses is how many lost attempts of a run do not count (docs/adr/0039).
func (j *job) freeLosses(t Time) int {
	if j.retriesLost(t) {
		return 3
	}
	return 0
}

// maxAttempts is how often one run may be tried.
func (j *job) maxAttempts(t Time) int {
	most := 1
	for _, s := range j.policies(t) {
		most = max(most, s.MaxAttempts)
	}
	return most
}

// threshold is how late a fire time still counts as on time; the shortest of
// those that may have been in force.
func (j *job) threshold(t Time) Time {
	shortest := Span(time.Hour)
	for _, s := range j.policies(t) {
		shortest = min(shortest, orDefault(s.Threshold, Span(5*time.Second)))
	}
	return shortest
}

// wait is how long a due run waits for an instance before it is missed.
func (j *job) wait(t Time) Time {
	shortest := Span(24 * time.Hour)
	for _, s := range j.policies(t) {
		shortest = min(shortest, orDefault(s.Wait, Span(5*time.Minute)))
	}
	return shortest
}

func orDefault(t, otherwise Time) Time {
	if t == 0 {
		return otherwise
	}
	return t
}
