package schedule

import "time"

// What a schedule says of nights on which clocks change is only worth a word
// where it makes a difference: in a zone that changes its clocks by a rule, for
// fire times that a change can meet.

// The years whose changes are looked at: no table of past changes reaches them,
// and in twelve of them a change falls on every date that its rule can name.
const dstFrom, dstYears = 2040, 12

// dstMet reports whether some gap, and some overlap, of the zone changes
// when the rule fires, by the schedule's policy or by elapsed time.
func (s *Schedule) dstMet() (m dstMatters) {
	fixed := s.rule
	if r, ok := s.rule.(cronRule); ok && r.cron.repeats {
		// An overlap meets the rule where it would meet one of fixed times.
		m.elapsed, m.hourly = true, r.cron.hourly
		times := *r.cron
		times.repeats = false
		r.cron = &times
		fixed = r
	}
	at := time.Date(dstFrom, 1, 1, 0, 0, 0, 0, time.UTC).In(s.loc)
	last := at.AddDate(dstYears, 0, 0)
	for range 4 * dstYears {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(last) {
			break
		}
		before := end.Add(-time.Millisecond)
		m.gap = m.gap || differs(s.rule, before, DST{Gap: GapRunAtEnd}, DST{Gap: GapSkip})
		m.overlap = m.overlap || differs(fixed, before, DST{Overlap: OverlapOnce}, DST{Overlap: OverlapBoth})
		at = end
	}
	return m
}

// dstMatters says which changes of the clock meet a fire time.
type dstMatters struct {
	gap, overlap bool
	// elapsed: the rule goes by elapsed time in an overlap; hourly: in a gap, too.
	elapsed, hourly bool
}

func differs(r rule, after time.Time, a, b DST) bool {
	with := func(dst DST) rule {
		switch r := r.(type) {
		case cronRule:
			r.dst = dst
			return r
		case window:
			r.gap = dst.Gap
			return r
		}
		return r
	}
	x, _ := with(a).next(after)
	y, _ := with(b).next(after)
	return !x.Equal(y)
}

// dstWords are what a text says of clock changes, each with what stands before it.
type dstWords struct{ runAtEnd, skip, once, both, elapsed, hourly string }

var (
	dstEN = dstWords{
		runAtEnd: ", at the end of the gap when clocks go forward over a fire time", skip: ", not when clocks go forward over a fire time",
		once: ", once when clocks go back over it", both: ", both times when clocks go back over it",
		elapsed: ", both times when clocks go back over it: minutes that step through the hour go by elapsed time then, and dstOverlap has no effect",
		hourly:  ", by elapsed time when clocks change: dstGap and dstOverlap have no effect",
	}
	dstZH = dstWords{
		runAtEnd: "，时钟拨快跳过触发时刻时在跳过的时段结束时触发", skip: "，时钟拨快跳过触发时刻时不触发",
		once: "，时钟拨慢使其重复时只触发一次", both: "，时钟拨慢使其重复时触发两次",
		elapsed: "，时钟拨慢使其重复时触发两次：分钟字段按步长贯穿整个小时，此时按实际经过的时间触发，dstOverlap 不起作用",
		hourly:  "，时钟变更时按实际经过的时间触发：dstGap 和 dstOverlap 不起作用",
	}
)

// dstText is what the schedule's policy says of the changes that matter to it.
func (s *Schedule) dstText(w dstWords, m dstMatters) (text string) {
	switch {
	case m.gap && s.dst.Gap == GapSkip:
		text = w.skip
	case m.gap:
		text = w.runAtEnd
	}
	switch {
	case m.overlap && m.hourly:
		text += w.hourly
	case m.overlap && m.elapsed:
		text += w.elapsed
	case m.overlap && s.dst.Overlap == OverlapBoth:
		text += w.both
	case m.overlap:
		text += w.once
	}
	return text
}
