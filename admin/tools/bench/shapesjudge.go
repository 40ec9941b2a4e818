package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/verify"
)

const (
	// oldestLimit bounds carillon_oldest_startable_run_seconds while the database is well.
	oldestLimit = 5 * time.Second
	// fewMayWait is the part of the other flows' runs, in percent, that may start between the
	// fire time of one of few runs and its start.
	fewMayWait = 10
)

// Shape is what a shape of waiting work came to, beside Fires.
type Shape struct {
	// SettledAfter is from the end of load and disturbance until each run had ended.
	SettledAfter Seconds `json:"settledAfterSeconds"`
	// Oldest is the highest value of carillon_oldest_startable_run_seconds while the database
	// was well, and OldestAt its time. OldestUnwell is the highest one of the rest.
	Oldest       Seconds   `json:"oldestStartableSeconds"`
	OldestAt     time.Time `json:"oldestStartableAt,omitzero"`
	OldestUnwell Seconds   `json:"oldestStartableUnwellSeconds"`
	// Outcomes are the runs by state and reason.
	Outcomes map[string]int `json:"outcomes"`
	// Unplanned are fire times without a row.
	Unplanned int `json:"fireTimesWithoutRow"`
	// Untold are runs that were not started and have no reason. Untrue are those with the
	// reason no_executor although slots were free during their whole wait.
	Untold int `json:"missedWithoutReason"`
	Untrue int `json:"missedWithUntrueReason"`
	// Behind are runs of a flow of few that waited for the runs of the others.
	Behind int `json:"fewBehindMany"`
	// Wrong are further findings, in words.
	Wrong []string `json:"wrong,omitempty"`
}

// broken says which parts of the invariant do not hold.
func (s *Shape) broken() error {
	var bad []error
	for _, text := range s.Wrong {
		bad = append(bad, errors.New(text))
	}
	check := func(n int, said string) {
		if n > 0 {
			bad = append(bad, fmt.Errorf("%d %s", n, said))
		}
	}
	if s.Oldest > seconds(oldestLimit) {
		bad = append(bad, fmt.Errorf("a run stood beside a free slot for %.1f s, seen at %s", float64(s.Oldest), s.OldestAt.Format(time.TimeOnly)))
	}
	check(s.Unplanned, "fire times have no row")
	check(s.Untold, "runs were not started and have no reason")
	check(s.Untrue, "runs have the reason no_executor although slots were free")
	check(s.Behind, "runs of few jobs waited for those of many")
	return errors.Join(bad...)
}

// unsound is broken without the counts that an overload or an outage makes.
func (f *Fires) unsound() error {
	sound := *f
	sound.Rows, sound.Missed = sound.Expected, 0
	return sound.broken()
}

// line has the outcomes, the most frequent first.
func (s *Shape) line() string {
	names := slices.SortedFunc(maps.Keys(s.Outcomes), func(a, b string) int { return s.Outcomes[b] - s.Outcomes[a] })
	var said []string
	for _, name := range names {
		said = append(said, fmt.Sprintf("%d %s", s.Outcomes[name], name))
	}
	return fmt.Sprintf("%s; settled after %.0f s; oldest startable %.1f s (%.1f s while unwell)", strings.Join(said, ", "), float64(s.SettledAfter), float64(s.Oldest), float64(s.OldestUnwell))
}

// judgeShape compares rows and witnesses with the fire times that were due and with the
// samples of the metrics.
func (o *observed) judgeShape(want []due, w *watch, s *Shape) (*Fires, *Spread) {
	out := &Fires{}
	s.Outcomes = map[string]int{}
	s.Oldest, s.OldestAt, s.OldestUnwell = w.oldest()
	type fire struct {
		job domain.JobID
		at  int64
	}
	rows := map[fire]bool{}
	timers := map[int64]int{}
	few := map[domain.JobID]bool{}
	for _, d := range want {
		for _, id := range d.jobs {
			few[id] = d.few
		}
	}
	var late []float64
	var many []verify.Time // starts of the other flows
	known := make(map[domain.ExecutionID]bool, len(o.rows))
	for _, r := range o.rows {
		known[r.ID] = true
		starts := o.starts[r.ID]
		s.Outcomes[strings.TrimSpace(r.State.String()+" "+string(r.Reason))]++
		out.Doubled += max(0, len(starts)-1)
		if r.State == domain.Succeeded && len(starts) == 0 && r.Shards == 0 {
			out.Unproven++
		}
		if _, ours := few[r.Job]; r.Parent == 0 && ours {
			rows[fire{r.Job, r.FireAt.UnixMilli()}] = true
		} else if r.Parent == 0 {
			timers[r.FireAt.UnixMilli()]++
		}
		if neverRan := r.State == domain.Missed || r.State == domain.Discarded || r.State == domain.Excluded; neverRan && r.Reason == "" {
			s.Untold++
		}
		if r.State == domain.Missed {
			out.Missed++
			if r.Reason == domain.ReasonNoExecutor && w.freeThroughout(later(r.NotBefore, r.PlannedAt), r.FinishedAt) {
				s.Untrue++
			}
		}
		if len(starts) == 0 {
			continue
		}
		out.Started++
		if starts[0] < verify.At(r.FireAt) {
			out.Early++
		}
		late = append(late, float64(starts[0]-verify.At(r.FireAt))/1000)
		if !few[r.Job] {
			many = append(many, starts[0])
		}
	}
	for id := range o.starts {
		if !known[id] {
			out.Foreign++
		}
	}
	for _, d := range want {
		if d.timers {
			out.Expected += d.times
			out.Rows += min(d.times, timers[d.from.UnixMilli()])
			continue
		}
		out.Expected += len(d.jobs) * d.times
		for _, id := range d.jobs {
			for i := range d.times {
				if rows[fire{id, d.from.Add(time.Duration(i) * d.every).UnixMilli()}] {
					out.Rows++
				}
			}
		}
	}
	s.Unplanned = out.Expected - out.Rows
	s.Behind = o.behind(few, many)
	return out, spreadOf(late)
}

// behind counts the runs of few jobs that many other runs overtook.
func (o *observed) behind(few map[domain.JobID]bool, many []verify.Time) (n int) {
	slices.Sort(many)
	for _, r := range o.rows {
		starts := o.starts[r.ID]
		if !few[r.Job] || len(starts) == 0 {
			continue
		}
		from, _ := slices.BinarySearch(many, verify.At(r.FireAt))
		to, _ := slices.BinarySearch(many, starts[0])
		if (to-from)*100 > len(many)*fewMayWait {
			n++
		}
	}
	return n
}
