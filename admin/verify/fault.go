package verify

import (
	"cmp"
	"slices"
)

// sumFaults tells what each fault did to what was due while it lasted, and
// until its effects had to be over.
func (o *overall) sumFaults() {
	slices.SortFunc(o.starts, func(a, b start) int { return cmp.Compare(a.due, b.due) })
	for _, f := range o.faults {
		r := FaultReport{ID: f.ID, Kind: f.Kind, Target: f.Target, Start: f.Start.Std(), End: f.End.Std()}
		first, _ := slices.BinarySearchFunc(o.starts, f.Start, func(s start, t Time) int { return cmp.Compare(s.due, t) })
		for _, s := range o.starts[first:] {
			if s.due > f.end()+o.plan.Settle {
				break
			}
			r.Due++
			late := max(s.at-s.due, 0)
			r.MaxLate = max(r.MaxLate, late.Duration())
			if late > o.plan.LateAfter {
				r.Late++
				r.Recovery = max(r.Recovery, (s.at - f.end()).Duration())
			}
		}
		o.report.Faults = append(o.report.Faults, r)
	}
}
