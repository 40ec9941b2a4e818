package domain

import "time"

// Passed is what the choice of an instance leaves in the run's row for whoever
// asks later why it was not another one: how many instances were looked at,
// which of them had no room, whether somebody had asked for the chosen one, and
// whether it won against an equal one.
// All else can be told from rows (docs/adr/0037). 0: nothing was left, by a
// version that did not do so.
//
// It has to be one number of a fixed size, so each instance without room sets
// one of passedBits bits, by its id and a seed. The seed is chosen such that no
// instance with room has the bit of one without.
type Passed int64

// The layout, from the lowest bit.
const (
	passedBits  = 54
	countAt     = passedBits
	countMost   = 1<<4 - 1 // this many or more
	seedAt      = countAt + 4
	seeds       = 7 // and 7 says that none of them kept the two kinds apart
	wishedAt    = seedAt + 3
	tiedAt      = wishedAt + 1
	bitsOfFull  = 1<<passedBits - 1
	seedUnclean = seeds
)

// NewPassed notes a choice among looked instances, of which full had no room.
// of returns the id of each; it is asked only where one was full.
func NewPassed(looked int, full func(i int) bool, of func(i int) InstanceID) Passed {
	p := Passed(min(looked, countMost)) << countAt
	anyFull := false
	for i := 0; i < looked && !anyFull; i++ {
		anyFull = full(i)
	}
	if !anyFull {
		return p
	}
	for seed := range Passed(seeds) {
		if bits, clean := spreadFull(looked, full, of, int(seed)); clean {
			return p | seed<<seedAt | bits
		}
	}
	bits, _ := spreadFull(looked, full, of, seedUnclean)
	return p | seedUnclean<<seedAt | bits
}

// spreadFull sets the bits of the full ones; clean says that no other one has
// any of them.
func spreadFull(looked int, full func(int) bool, of func(int) InstanceID, seed int) (bits Passed, clean bool) {
	var free Passed
	for i := range looked {
		if full(i) {
			bits |= passedBit(of(i), seed)
		} else {
			free |= passedBit(of(i), seed)
		}
	}
	return bits, bits&free == 0
}

// PassedBy makes the Passed of many choices among the same instances, while they
// fill up. A choice costs as much as there are seeds, not instances.
type PassedBy struct {
	ids   []InstanceID
	full  int
	sides [seeds + 1]passedSides // none before the first is full
}

// passedSides are the bits of the full ones, and how many with room have each.
type passedSides struct {
	full, free Passed
	room       [passedBits]int32
}

// NewPassedBy starts with instances that all have room.
func NewPassedBy(ids []InstanceID) PassedBy { return PassedBy{ids: ids} }

// Fill notes that one of the instances, which had room, has none any more.
func (p *PassedBy) Fill(id InstanceID) {
	for seed := range p.sides {
		s := &p.sides[seed]
		if p.full == 0 {
			for _, id := range p.ids {
				s.room[passedPlace(id, seed)]++
				s.free |= passedBit(id, seed)
			}
		}
		at := passedPlace(id, seed)
		s.full |= 1 << at
		if s.room[at]--; s.room[at] == 0 {
			s.free &^= 1 << at
		}
	}
	p.full++
}

// Passed is what a choice leaves now.
func (p *PassedBy) Passed() Passed {
	out := Passed(min(len(p.ids), countMost)) << countAt
	if p.full == 0 {
		return out
	}
	seed := 0
	for seed < seeds && p.sides[seed].full&p.sides[seed].free != 0 {
		seed++
	}
	return out | Passed(seed)<<seedAt | p.sides[seed].full
}

// passedBit is the bit of an instance (SplitMix64's finalizer).
func passedBit(id InstanceID, seed int) Passed { return 1 << passedPlace(id, seed) }

func passedPlace(id InstanceID, seed int) int {
	x := uint64(id) + uint64(seed+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) % passedBits)
}

// AsWished notes that somebody had asked for the chosen one.
func (p Passed) AsWished() Passed { return p | 1<<wishedAt }

// AsTied notes that another one with room was as good by the strategy's first
// measure.
func (p Passed) AsTied() Passed { return p | 1<<tiedAt }

// Known reports whether the choice left anything.
func (p Passed) Known() bool { return p != 0 }

// Wished reports whether the chosen instance was asked for.
func (p Passed) Wished() bool { return p>>wishedAt&1 == 1 }

// Tied is what AsTied has noted.
func (p Passed) Tied() bool { return p>>tiedAt&1 == 1 }

// Looked is how many instances were looked at; more is true when there may have
// been more of them.
func (p Passed) Looked() (n int, more bool) {
	n = int(p >> countAt & countMost)
	return n, n == countMost
}

// Full reports whether the instance had no room; sure is false when another one
// of those that may have been looked at has the same bit.
func (p Passed) Full(id InstanceID, among []InstanceID) (full, sure bool) {
	seed := int(p >> seedAt & 7)
	bit := passedBit(id, seed)
	if p&bitsOfFull&bit == 0 {
		return false, true
	}
	n, more := p.Looked()
	if seed != seedUnclean && !more && n == len(among) {
		return true, true // all were looked at, and the seed keeps them apart
	}
	for _, other := range among {
		if other != id && passedBit(other, seed) == bit {
			return true, false
		}
	}
	return true, true
}

// Choice is what rows tell of the choice of an instance for a run.
type Choice struct {
	// Uses are the job's newest runs that had been offered by then, newest
	// first, RoutingWindow at most.
	Uses []Use
	// Running counts what was on each instance of the executor, as the newest
	// rows of the executor and the runs that are alive tell: a run that began
	// before thousands of others, and has ended since, is not in it.
	Running map[InstanceID]int
}

// Use is a run of a job on an instance.
type Use struct {
	Instance  InstanceID
	OfferedAt time.Time
}

// The misfire policy is asked when a fire time is planned, and a second time
// when the run that was planned in time is to start: all nodes may have been
// down since then, or the database away.

// inTimeUntil is until when a run of a schedule counts as in time; ok is false
// for all others, and for what has begun.
func inTimeUntil(e *Execution, spec *JobSpec) (until time.Time, ok bool) {
	if e.Cause != CauseSchedule || e.IsPart() || e.begun() {
		return time.Time{}, false
	}
	threshold := spec.Misfire.Threshold
	if threshold == 0 {
		threshold = DefaultMisfireThreshold
	}
	return e.FireAt.Add(spec.Schedule.JitterMax + max(threshold, 0)), true
}

// Misfired reports whether the fire time of a run that has not started has
// passed by more than the misfire threshold, while nobody looked after the run.
// One that was found to wait within the threshold, for its slot or an instance,
// is bounded by its dispatch timeout instead.
func Misfired(e *Execution, now time.Time, spec *JobSpec) bool {
	until, ok := inTimeUntil(e, spec)
	return ok && now.After(until) && (len(e.Delays) == 0 || e.Delays[0].At.After(until))
}

// WaitedSince notes since when a node knows that the execution waits for an
// instance, where the misfire policy could be asked about it before it starts.
// The zero time notes nothing.
func WaitedSince(e *Execution, since, now time.Time, spec *JobSpec) {
	until, ok := inTimeUntil(e, spec)
	if !ok || len(e.Delays) > 0 || since.IsZero() || since.After(now) || since.After(until) || !now.Add(OfferTTL).After(until) {
		return
	}
	e.Delays = []Delay{{At: since, LastAt: now, Count: 1, Reason: ReasonWaitInstance}}
}

// Lapse does with a misfired execution that is due what the misfire policy
// says: it is missed for the reason, or runs now all the same when there is none.
func Lapse(e *Execution, now time.Time, reason Reason, message string) (fx Effects, ended bool, err error) {
	if reason == "" {
		e.Cause = CauseMisfire
		return fx, false, nil
	}
	fx, err = e.Miss(now, reason, message)
	return fx, true, err
}

// LapseOffered is Lapse for one that is offered: the offer is taken back, and
// the next one ends it. That is no failed send.
func LapseOffered(e *Execution, now time.Time, reason Reason, message string) error {
	if reason == "" {
		e.Cause = CauseMisfire
		return nil
	}
	return Hold(e, now, ReasonMisfire, message)
}
