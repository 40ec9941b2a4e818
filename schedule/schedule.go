package schedule

import (
	"hash/fnv"
	"slices"
	"time"
)

// Schedule answers when a checked Spec fires. It is immutable and safe for
// concurrent use. Fire times are in the schedule's zone and strictly
// increasing.
type Schedule struct {
	kind       Kind
	loc        *time.Location
	start, end int64 // validity in Unix milliseconds, both included; start is -1 when open
	dst        DST
	cron       *Cron // KindCron only
	rule       rule  // nil: never fires
	jitter     int64 // milliseconds
	seed       string
	calendars  []*Calendar
	days       DayRule
}

// rule is what a kind adds: the first fire strictly after an instant, in any
// location, without regard to validity.
type rule interface {
	next(after time.Time) (time.Time, bool)
}

// Kind is the kind of schedule.
func (s *Schedule) Kind() Kind { return s.kind }

// Zone is the zone in which fire times are returned.
func (s *Schedule) Zone() *time.Location { return s.loc }

// Cron is the parsed expression of KindCron, with its resolved dialect and its
// warnings; nil for other kinds.
func (s *Schedule) Cron() *Cron { return s.cron }

// AwaitsFinish reports that the next fire is not known before the running one
// has finished: KindFixedDelay. Next of the finish is the one after it.
func (s *Schedule) AwaitsFinish() bool { return s.kind == KindFixedDelay }

// Next returns the first fire time strictly after the given instant, and false
// when there is none. Calendars do not count here: what they exclude is a fire
// time too, and gets its row. NextRun leaves it out. For KindFixedDelay it takes after as the last finish.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	if s.rule == nil {
		return time.Time{}, false
	}
	if s.start >= 0 && !s.AwaitsFinish() {
		// The last millisecond before the start makes the start itself possible.
		if before := time.UnixMilli(s.start - 1); after.Before(before) {
			after = before
		}
	}
	next, ok := s.rule.next(after)
	if ok && s.start >= 0 && next.UnixMilli() < s.start {
		next = time.UnixMilli(s.start) // a fixed delay that would end before the validity
	}
	if !ok || next.UnixMilli() > s.end {
		return time.Time{}, false
	}
	return next.In(s.loc), true
}

// NextN returns up to n fire times after the given instant; fewer when the
// schedule ends. For KindFixedDelay they are what would come if runs took no time.
func (s *Schedule) NextN(after time.Time, n int) []time.Time {
	var list []time.Time
	for range n {
		next, ok := s.Next(after)
		if !ok {
			break
		}
		list = append(list, next)
		after = next
	}
	return list
}

// Prev returns the last fire time that is not after the given instant, and
// false when there is none. KindFixedDelay has none: it goes by its runs.
func (s *Schedule) Prev(at time.Time) (time.Time, bool) {
	ms, ok := afterMilli(at)
	if !ok {
		ms = lastInstant
	}
	if s.AwaitsFinish() {
		return time.Time{}, false
	}
	until := func(after int64) (time.Time, bool) {
		f, ok := s.Next(time.UnixMilli(after))
		return f, ok && f.UnixMilli() <= ms
	}
	// Double the way back until a fire lies in it. -1 comes before every fire.
	low := ms - 1000
	for back := int64(1000); low > -1; low, back = ms-back, back*2 {
		if _, ok := until(low); ok {
			break
		}
	}
	last, ok := until(max(low, -1))
	// Then halve what is left between the last fire found and the end.
	for high := ms; ok && last.UnixMilli()+1 < high; {
		if _, more := until(last.UnixMilli()); !more {
			break
		}
		middle := (last.UnixMilli() + high) / 2
		if f, later := until(middle); later {
			last = f
		} else {
			high = middle
		}
	}
	return last, ok
}

// RunAt returns the instant at which the run of a fire is to start: the fire
// time plus its jitter. The jitter depends on JitterSeed and the fire time
// only, so every node at any time gets the same; it is spread evenly over 0 to
// JitterMax in whole milliseconds. It must not change between releases: runs
// that were planned keep their time.
func (s *Schedule) RunAt(fire time.Time) time.Time { return RunAt(s.seed, s.JitterMax(), fire) }

// RunAt is Schedule.RunAt for a jitter and its seed alone.
func RunAt(seed string, jitterMax time.Duration, fire time.Time) time.Time {
	jitter := jitterMax.Milliseconds()
	if jitter <= 0 {
		return fire
	}
	h := fnv.New64a()
	h.Write([]byte(seed))
	ms := uint64(fire.UnixMilli())
	for shift := 0; shift < 64; shift += 8 {
		h.Write([]byte{byte(ms >> shift)})
	}
	// FNV leaves neighbouring inputs close together; multiply and fold spreads them.
	x := h.Sum64()
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	return fire.Add(time.Duration(x%uint64(jitter+1)) * time.Millisecond)
}

// JitterMax is the longest delay that RunAt adds.
func (s *Schedule) JitterMax() time.Duration { return time.Duration(s.jitter) * time.Millisecond }

// cronRule binds an expression to its zone and policy.
type cronRule struct {
	cron *Cron
	loc  *time.Location
	dst  DST
}

func (r cronRule) next(after time.Time) (time.Time, bool) { return r.cron.NextIn(after, r.loc, r.dst) }

// delay is a fixed delay; the anchor, if still to come, is the first fire.
type delay rate

func (d delay) next(finish time.Time) (time.Time, bool) {
	after, ok := afterMilli(finish)
	if !ok {
		return time.Time{}, false
	}
	if after < d.anchor {
		return inRange(d.anchor)
	}
	if finish.Nanosecond()%int(time.Millisecond) != 0 {
		after++ // never early
	}
	return inRange(after + d.every)
}

// instants are sorted Unix milliseconds without doubles.
type instants []int64

func (list instants) next(t time.Time) (time.Time, bool) {
	after, ok := afterMilli(t)
	if !ok {
		return time.Time{}, false
	}
	i, _ := slices.BinarySearch(list, after+1)
	if i == len(list) {
		return time.Time{}, false
	}
	return time.UnixMilli(list[i]), true
}
