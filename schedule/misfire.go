package schedule

import "time"

// MisfirePolicy says what becomes of fire times that passed unnoticed: nobody
// could plan them, because all nodes were down or the database was away. The
// values are stable.
type MisfirePolicy string

// The policies; Due has the exact rules. "" means MisfireSkip.
const (
	MisfireSkip    MisfirePolicy = "skip"     // they are missed
	MisfireOnceNow MisfirePolicy = "once_now" // one run stands for all of them
	MisfireAll     MisfirePolicy = "all"      // each runs now, if it is not older than a window
)

// Valid reports whether p is one of the policies, "" included.
func (p MisfirePolicy) Valid() bool {
	return p == "" || p == MisfireSkip || p == MisfireOnceNow || p == MisfireAll
}

// Defaults of DueParams.
const (
	DefaultThreshold = 5 * time.Second
	DefaultWindow    = time.Hour
	DefaultMaxRuns   = 100
	DefaultMaxFires  = 100
)

// Decision says what is to be done about one fire time. The values are stable.
type Decision string

// The decisions.
const (
	DecisionRun       Decision = "run"       // write a run that starts at RunAt
	DecisionMissed    Decision = "missed"    // write a row that says why it will not run
	DecisionCoalesced Decision = "coalesced" // write a row that names the run which stands for it
	DecisionExcluded  Decision = "excluded"  // write a row that names the calendar's reason
)

// Cause says why a run exists, in the words of the glossary.
type Cause string

// The causes which a schedule has.
const (
	CauseSchedule Cause = "schedule" // its time came
	CauseMisfire  Cause = "misfire"  // its time had passed, and the policy runs it now
)

// Reason says why a fire time will not run. The values are stable.
type Reason string

// The reasons.
const (
	ReasonMisfire   Reason = "misfire"        // beyond the threshold, and the policy skips
	ReasonTooOld    Reason = "misfire_window" // older than the window of MisfireAll
	ReasonTooMany   Reason = "misfire_cap"    // beyond what MisfireAll makes up
	ReasonCoalesced Reason = "coalesced"      // a later fire time stands for it
	ReasonCalendar  Reason = "calendar"       // a calendar excludes it
)

// DueParams ask Due.
type DueParams struct {
	// Next is the next fire time that the trigger holds. It is trusted: after
	// an edit of the schedule it need not be one of its fire times. Zero means
	// that the trigger waits for nothing.
	Next time.Time

	// Now is the present, by the clock that rules (the database's).
	Now time.Time

	// Horizon is the look-ahead: fires up to Now+Horizon are planned. 0 plans
	// only what has come; negative counts as 0.
	Horizon time.Duration

	// Policy is for late fires; "" means MisfireSkip.
	Policy MisfirePolicy

	// Threshold is the lateness up to which a fire still counts as on time.
	// 0 means DefaultThreshold; negative means none at all.
	Threshold time.Duration

	// Window is the age up to which MisfireAll runs a late fire. 0 means
	// DefaultWindow; negative means no limit.
	Window time.Duration

	// MaxRuns bounds the late fires that MisfireAll runs: the newest ones. 0
	// means DefaultMaxRuns; negative means no limit.
	MaxRuns int

	// Max bounds the fires of one answer; 0 and less mean DefaultMaxFires.
	Max int
}

// PlannedFire is one fire time and what to do about it.
type PlannedFire struct {
	At       time.Time // the fire time: identity of the run, never changed by jitter or lateness
	Decision Decision
	Cause    Cause     // DecisionRun only
	RunAt    time.Time // DecisionRun only: At plus jitter; Now for CauseMisfire. May be past by up to the threshold
	Reason   Reason    // why not; empty for DecisionRun
	Into     time.Time // DecisionCoalesced only: the fire time that stands for it
	Excluded Exclusion // DecisionExcluded only
}

// Plan is the answer of Due.
type Plan struct {
	Fires []PlannedFire // in order of their time; often empty
	Next  time.Time     // the trigger's new next fire; zero when there is none

	// More: Max was reached, and Next is to be planned too. Ask again with it.
	More bool
	// Done: the schedule never fires again.
	Done bool
	// AwaitsFinish: Next is not known before the run has finished; set it with
	// Schedule.Next of the finish then. Only KindFixedDelay.
	AwaitsFinish bool
}

// Due decides about every fire time from p.Next to p.Now+p.Horizon, in order,
// at most p.Max of them. It leaves none out: each one is to become a row.
//
// A fire is late when Now is beyond its time by more than Threshold; for a
// schedule with jitter, beyond the end of its jitter. What is not late runs, by
// CauseSchedule, at its own (jittered) time, also when that is still to come
// or has just passed. Late fires go by the policy:
//
//   - MisfireSkip: missed, ReasonMisfire.
//   - MisfireOnceNow: if a later fire has come by Now too, coalesced into the
//     last one that has. Otherwise it is that last one, and runs now by
//     CauseMisfire. So at most one run makes up for any number of late fires,
//     and none is added when a fire that is on time stands for them.
//   - MisfireAll: runs now by CauseMisfire, if its lateness is within Window
//     and it is among the MaxRuns newest that are late; older ones are missed,
//     ReasonTooOld or ReasonTooMany. The caller decides by its blocking
//     strategy whether they run together.
//
// A fire that a calendar excludes is none of these, late or not: it is
// excluded, and no other fire is coalesced into it.
//
// When p.Max cuts the answer, Plan.More is set, and a further call goes on at
// Plan.Next; the calls together decide as one would, as far as Now has not
// moved on.
//
// A fixed delay has one fire at a time. After a run Plan.AwaitsFinish is set;
// after a missed one the next is Every from Now, and after an excluded one it
// is the end of the exclusion.
func Due(s *Schedule, p DueParams) Plan {
	d := newDecider(s, p)
	var plan Plan
	next := p.Next
	for !next.IsZero() && !next.After(d.until) {
		if len(plan.Fires) == d.max {
			plan.More = true
			break
		}
		fire, following := d.decide(next)
		plan.Fires = append(plan.Fires, fire)
		next = following
	}
	plan.Next = next
	if next.IsZero() {
		// Without a fire now or before, a fixed delay waits for a run too.
		plan.AwaitsFinish = s.AwaitsFinish() && (len(plan.Fires) == 0 || plan.Fires[len(plan.Fires)-1].Decision == DecisionRun)
		plan.Done = !plan.AwaitsFinish
	}
	return plan
}

// decider is one question with its defaults filled in.
type decider struct {
	s          *Schedule
	now, until time.Time
	policy     MisfirePolicy
	lateBefore time.Time // a fire before this instant is late
	oldBefore  time.Time // a late fire before this instant is too old; zero: none is
	max        int
	last       time.Time // the last fire that has come, once it was needed
	maxRuns    int       // of MisfireAll; 0: no limit
	manyBefore time.Time // a late fire before this instant is one too many, once it was needed
	next       time.Time // the first fire that is asked about
}

func newDecider(s *Schedule, p DueParams) *decider {
	switch {
	case p.Threshold == 0:
		p.Threshold = DefaultThreshold
	case p.Threshold < 0:
		p.Threshold = 0
	}
	if p.Window == 0 {
		p.Window = DefaultWindow
	}
	if p.Max <= 0 {
		p.Max = DefaultMaxFires
	}
	end := p.Now.Add(-s.JitterMax())
	d := &decider{
		s: s, now: p.Now, until: p.Now.Add(max(p.Horizon, 0)), policy: p.Policy,
		lateBefore: end.Add(-p.Threshold), max: p.Max, maxRuns: max(p.MaxRuns, 0), next: p.Next,
	}
	if p.MaxRuns == 0 {
		d.maxRuns = DefaultMaxRuns
	}
	if p.Window > 0 {
		d.oldBefore = end.Add(-p.Window)
	}
	return d
}

// decide judges one fire and finds the next one, zero when there is none.
func (d *decider) decide(at time.Time) (PlannedFire, time.Time) {
	var following time.Time
	if !d.s.AwaitsFinish() {
		following, _ = d.s.Next(at)
	}
	fire := d.judge(at)
	if d.s.AwaitsFinish() {
		switch fire.Decision {
		case DecisionRun:
		case DecisionExcluded:
			following, _ = d.s.afterExclusion(at)
		default:
			following, _ = d.s.Next(d.now) // no run will finish: count from now
		}
	}
	return fire, following
}

// judge applies the policy.
func (d *decider) judge(at time.Time) PlannedFire {
	if e, ok := d.s.Excluded(at); ok {
		return PlannedFire{At: at, Decision: DecisionExcluded, Reason: ReasonCalendar, Excluded: e}
	}
	if !at.Before(d.lateBefore) {
		return PlannedFire{At: at, Decision: DecisionRun, Cause: CauseSchedule, RunAt: d.s.RunAt(at)}
	}
	switch d.policy {
	case MisfireOnceNow:
		if last := d.lastCome(); last.After(at) {
			return PlannedFire{At: at, Decision: DecisionCoalesced, Reason: ReasonCoalesced, Into: last}
		}
	case MisfireAll:
		if at.Before(d.oldBefore) {
			return PlannedFire{At: at, Decision: DecisionMissed, Reason: ReasonTooOld}
		}
		if d.maxRuns > 0 && at.Before(d.tooMany()) {
			return PlannedFire{At: at, Decision: DecisionMissed, Reason: ReasonTooMany}
		}
	default:
		return PlannedFire{At: at, Decision: DecisionMissed, Reason: ReasonMisfire}
	}
	return PlannedFire{At: at, Decision: DecisionRun, Cause: CauseMisfire, RunAt: d.now}
}

// lastCome is the last fire time up to now that is not excluded.
func (d *decider) lastCome() time.Time {
	if d.last.IsZero() {
		d.last, _ = d.s.prevRun(d.now)
	}
	return d.last
}

// tooMany is the first of the late fires that MisfireAll runs.
func (d *decider) tooMany() time.Time {
	if d.manyBefore.IsZero() {
		floor := d.next
		if floor.Before(d.oldBefore) {
			floor = d.oldBefore
		}
		d.manyBefore = d.s.nthLast(d.lateBefore, d.maxRuns, floor)
	}
	return d.manyBefore
}

// nthLast returns the n-th last fire before an instant, and floor when there
// are fewer since floor. It looks back twice as far until it has seen enough.
func (s *Schedule) nthLast(before time.Time, n int, floor time.Time) time.Time {
	ring := make([]time.Time, n)
	for back := time.Second; ; back *= 2 {
		from, all := before.Add(-back), false
		if !from.After(floor) {
			from, all = floor.Add(-time.Millisecond), true
		}
		seen := 0
		for at, ok := s.NextRun(from); ok && at.Before(before); at, ok = s.NextRun(at) {
			ring[seen%n] = at
			seen++
		}
		if seen >= n {
			return ring[seen%n]
		}
		if all {
			return floor
		}
	}
}
