package schedule

import "time"

// What a schedule says of nights on which clocks change is only worth a word
// where it makes a difference: in a zone that changes its clocks by a rule, for
// fire times that a change can meet.

// The years whose changes are looked at: no table of past changes reaches them,
// and in twelve of them a change falls on every date that its rule can name.
const dstFrom, dstYears = 2040, 12

// dstMatters reports whether some gap, and some overlap, of the zone changes
// when the rule fires, by the schedule's policy.
func (s *Schedule) dstMatters() (gap, overlap bool) {
	at := time.Date(dstFrom, 1, 1, 0, 0, 0, 0, time.UTC).In(s.loc)
	last := at.AddDate(dstYears, 0, 0)
	for range 4 * dstYears {
		_, end := at.ZoneBounds()
		if end.IsZero() || end.After(last) {
			break
		}
		before := end.Add(-time.Millisecond)
		gap = gap || differs(s.rule, before, DST{Gap: GapRunAtEnd}, DST{Gap: GapSkip})
		overlap = overlap || differs(s.rule, before, DST{Overlap: OverlapOnce}, DST{Overlap: OverlapBoth})
		at = end
	}
	return gap, overlap
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

func (s *Schedule) dstEN() (text string) {
	gap, overlap := s.dstMatters()
	if gap {
		text = ", at the end of the gap when clocks go forward over a fire time"
		if s.dst.Gap == GapSkip {
			text = ", not when clocks go forward over a fire time"
		}
	}
	if overlap && s.dst.Overlap == OverlapBoth {
		return text + ", both times when clocks go back over it"
	} else if overlap {
		return text + ", once when clocks go back over it"
	}
	return text
}

func (s *Schedule) dstZH() (text string) {
	gap, overlap := s.dstMatters()
	if gap {
		text = "，时钟拨快跳过触发时刻时在跳过的时段结束时触发"
		if s.dst.Gap == GapSkip {
			text = "，时钟拨快跳过触发时刻时不触发"
		}
	}
	if overlap && s.dst.Overlap == OverlapBoth {
		return text + "，时钟拨慢使其重复时触发两次"
	} else if overlap {
		return text + "，时钟拨慢使其重复时只触发一次"
	}
	return text
}
