package schedule

import "time"

// Mark says what is special about a fire time because clocks change. The
// values are stable.
type Mark string

// The marks.
const (
	MarkNone       Mark = ""            // an ordinary time
	MarkGapEnd     Mark = "gap_end"     // stands for a time that does not exist on this day
	MarkFirstPass  Mark = "first_pass"  // the clock will show this time once more
	MarkSecondPass Mark = "second_pass" // the clock has shown this time before
)

// Occurrence is one line of a preview.
type Occurrence struct {
	At    time.Time // the fire time, in the schedule's zone
	RunAt time.Time // At plus jitter: when the run starts
	Mark  Mark
	// Excluded says why a calendar keeps it from running; nil: it runs.
	Excluded *Exclusion
}

// Preview returns up to n coming runs after the given instant, with what a
// person should see about each. Among them stand the fire times that calendars
// exclude, but not more than n of them: what is excluded beyond is left out.
func (s *Schedule) Preview(after time.Time, n int) []Occurrence {
	var list []Occurrence
	for runs, excluded := 0, 0; runs < n; {
		next := s.Next
		if excluded == n {
			next = s.NextRun
		}
		at, ok := next(after)
		if !ok {
			break
		}
		if e, out := s.Excluded(at); out {
			list = append(list, Occurrence{At: at, RunAt: at, Mark: s.mark(at), Excluded: &e})
			excluded++
		} else {
			list = append(list, Occurrence{At: at, RunAt: s.RunAt(at), Mark: s.mark(at)})
			runs++
		}
		after = at
	}
	return list
}

// mark compares the fire with the clock around it.
func (s *Schedule) mark(at time.Time) Mark {
	u := at.Unix()
	p := periodAt(u, s.loc)
	shown := u + p.offset
	if r, ok := s.rule.(cronRule); ok && u == p.start && p.offset > p.before {
		if w, ok := r.cron.nextWall(shown); !ok || w != shown {
			return MarkGapEnd // the expression does not name this time itself
		}
	}
	if p.offset < p.before && shown < p.start+p.before {
		return MarkSecondPass
	}
	if p.hasEnd && p.end-u < maxShift {
		if after := periodAt(p.end, s.loc); after.offset < p.offset && shown >= p.end+after.offset {
			return MarkFirstPass
		}
	}
	return MarkNone
}
