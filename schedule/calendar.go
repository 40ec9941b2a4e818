package schedule

import (
	"fmt"
	"slices"
	"time"
)

// DayRule says which days a schedule's calendars leave to it. The values are
// stable.
type DayRule string

// The rules. Blackout windows count under all of them.
const (
	// DaysNotHolidays leaves out holidays. The default.
	DaysNotHolidays DayRule = "not_holidays"
	// DaysWorkdays leaves out holidays and days of the weekend, but not a
	// make-up day, whatever weekday it is.
	DaysWorkdays DayRule = "workdays"
	// DaysAll leaves out none.
	DaysAll DayRule = "all"
)

// Valid reports whether r is one of the rules, "" (DaysNotHolidays) included.
func (r DayRule) Valid() bool {
	return r == "" || r == DaysNotHolidays || r == DaysWorkdays || r == DaysAll
}

// Limits of a CalendarSpec.
const (
	MaxCalendarDays = 5000
	MaxBlackouts    = 1000
	MaxCalendars    = 8 // of one schedule
)

// Blackout is a window in which nothing fires: From ≤ fire < To.
type Blackout struct{ From, To time.Time }

// CalendarSpec describes a calendar. Days are dates as "2006-01-02".
type CalendarSpec struct {
	// Zone is the IANA name of the zone whose days are meant; "" = the
	// schedule's own.
	Zone string
	// Weekend are the weekdays without work; nil = Saturday and Sunday.
	Weekend    []time.Weekday
	Holidays   []string
	MakeUpDays []string // working days although weekend or holiday
	Blackouts  []Blackout
}

// CalendarError says what is wrong with one part of a CalendarSpec.
type CalendarError struct {
	Field string // "zone", "weekend", "holidays", "makeUpDays", "blackouts"
	Index int    // of the entry; -1 = the field as a whole
	Msg   string
}

// Error gives "field[index]: message".
func (e *CalendarError) Error() string {
	if e.Index < 0 {
		return e.Field + ": " + e.Msg
	}
	return fmt.Sprintf("%s[%d]: %s", e.Field, e.Index, e.Msg)
}

// Calendar is a checked CalendarSpec. It is immutable and safe for concurrent
// use.
type Calendar struct {
	loc       *time.Location // nil = the schedule's
	weekend   [7]bool
	days      map[int64]bool // date → it is a make-up day, else a holiday
	blackouts []Blackout     // in order, apart from each other
}

// CompileCalendar checks a CalendarSpec. The error is a *CalendarError.
func CompileCalendar(spec CalendarSpec) (*Calendar, error) {
	c := &Calendar{days: make(map[int64]bool, len(spec.Holidays)+len(spec.MakeUpDays))}
	if spec.Zone != "" {
		loc, err := LoadZone(spec.Zone)
		if err != nil {
			return nil, &CalendarError{"zone", -1, err.Error()}
		}
		c.loc = loc
	}
	if spec.Weekend == nil {
		spec.Weekend = []time.Weekday{time.Saturday, time.Sunday}
	}
	for i, w := range spec.Weekend {
		if w < time.Sunday || w > time.Saturday {
			return nil, &CalendarError{"weekend", i, fmt.Sprintf("%d is no weekday", w)}
		}
		c.weekend[w] = true
	}
	if len(spec.Holidays)+len(spec.MakeUpDays) > MaxCalendarDays {
		return nil, &CalendarError{"holidays", -1, fmt.Sprintf("a calendar has at most %d days", MaxCalendarDays)}
	}
	if err := c.addDays("holidays", spec.Holidays, false); err != nil {
		return nil, err
	}
	if err := c.addDays("makeUpDays", spec.MakeUpDays, true); err != nil {
		return nil, err
	}
	return c, c.addBlackouts(spec.Blackouts)
}

func (c *Calendar) addDays(field string, list []string, makeUp bool) error {
	for i, text := range list {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil || at.Year() < minYear {
			return &CalendarError{field, i, fmt.Sprintf("%q is no date such as 2026-10-01", text)}
		}
		day := at.Unix() / 86400
		if was, ok := c.days[day]; ok && was != makeUp {
			return &CalendarError{field, i, text + " is a holiday and a make-up day"}
		}
		c.days[day] = makeUp
	}
	return nil
}

func (c *Calendar) addBlackouts(list []Blackout) error {
	if len(list) > MaxBlackouts {
		return &CalendarError{"blackouts", -1, fmt.Sprintf("a calendar has at most %d", MaxBlackouts)}
	}
	list = slices.Clone(list)
	for i, b := range list {
		switch {
		case b.From.Unix() < 0 || b.To.Unix() > lastInstant/1000:
			return &CalendarError{"blackouts", i, fmt.Sprintf("must lie between the years %d and %d", minYear, lastYear)}
		case !b.From.Before(b.To):
			return &CalendarError{"blackouts", i, "ends before it begins"}
		}
	}
	slices.SortFunc(list, func(a, b Blackout) int { return a.From.Compare(b.From) })
	for _, b := range list {
		if n := len(c.blackouts); n > 0 && !b.From.After(c.blackouts[n-1].To) {
			if b.To.After(c.blackouts[n-1].To) {
				c.blackouts[n-1].To = b.To
			}
			continue
		}
		c.blackouts = append(c.blackouts, b)
	}
	return nil
}

// ExclusionKind says by what a calendar excludes an instant. The values are stable.
type ExclusionKind string

// The kinds.
const (
	ExcludedHoliday  ExclusionKind = "holiday"
	ExcludedWeekend  ExclusionKind = "weekend"
	ExcludedBlackout ExclusionKind = "blackout"
)

// Exclusion is a stretch of time in which a calendar lets nothing fire:
// From ≤ fire < To.
type Exclusion struct {
	Kind     ExclusionKind
	Calendar int    // index in Spec.Calendars
	Date     string // of a holiday or weekend
	From, To time.Time
}

// Excludes reports whether the calendar excludes a fire at one instant of a
// schedule; loc is the schedule's zone. Exclusion.Calendar is 0.
func (c *Calendar) Excludes(at time.Time, loc *time.Location, rule DayRule) (Exclusion, bool) {
	i, _ := slices.BinarySearchFunc(c.blackouts, at, func(b Blackout, t time.Time) int {
		if b.To.After(t) {
			return 1
		}
		return -1
	})
	if i < len(c.blackouts) && !at.Before(c.blackouts[i].From) {
		return Exclusion{Kind: ExcludedBlackout, From: c.blackouts[i].From, To: c.blackouts[i].To}, true
	}
	if rule == DaysAll {
		return Exclusion{}, false
	}
	if c.loc != nil {
		loc = c.loc
	}
	local := at.In(loc)
	year, month, day := local.Date()
	makeUp, marked := c.days[time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()/86400]
	e := Exclusion{Kind: ExcludedHoliday}
	if !marked {
		if rule != DaysWorkdays || !c.weekend[local.Weekday()] {
			return Exclusion{}, false
		}
		e.Kind = ExcludedWeekend
	} else if makeUp {
		return Exclusion{}, false
	}
	e.Date = local.Format(time.DateOnly)
	e.From, e.To = dayBounds(at, year, month, day, loc)
	return e, true
}

// dayBounds are the first instant of a date and the first one after it, of the
// stretch of time around at in which the zone shows that date. A date may be
// missing, and midnight may be in a gap or come twice, so the zone's periods are
// walked: wall times alone do not say where a day ends.
func dayBounds(at time.Time, year int, month time.Month, day int, loc *time.Location) (from, to time.Time) {
	midnight := wall(year, month, day, 0, 0, 0)
	shown := func(u int64) bool {
		y, m, d := time.Unix(u, 0).In(loc).Date()
		return y == year && m == month && d == day
	}
	begins := at.Unix()
	for {
		p := periodAt(begins, loc)
		if u := midnight - p.offset; u > p.start {
			begins = u
			break
		}
		if begins = p.start; !shown(p.start - 1) {
			break
		}
		begins = p.start - 1
	}
	ends := at.Unix()
	for {
		p := periodAt(ends, loc)
		if u := midnight + 86400 - p.offset; u < p.end || !p.hasEnd {
			ends = u
			break
		}
		if ends = p.end; !shown(ends) {
			break
		}
	}
	return time.Unix(begins, 0).In(loc), time.Unix(ends, 0).In(loc)
}

// Excluded reports whether a calendar excludes a fire at the given instant.
func (s *Schedule) Excluded(at time.Time) (Exclusion, bool) {
	for i, c := range s.calendars {
		if e, ok := c.Excludes(at, s.loc, s.days); ok {
			e.Calendar = i
			return e, true
		}
	}
	return Exclusion{}, false
}

// maxExclusions bounds how many exclusions in a row NextRun jumps over: about
// 80 years of weekends. A schedule that comes to nothing within them is taken
// for one that never runs.
const maxExclusions = 5000

// NextRun returns the first fire strictly after the given instant that no
// calendar excludes, and false when there is none.
func (s *Schedule) NextRun(after time.Time) (time.Time, bool) {
	for range maxExclusions {
		at, ok := s.Next(after)
		if !ok {
			return time.Time{}, false
		}
		e, excluded := s.Excluded(at)
		switch {
		case !excluded:
			return at, true
		case s.AwaitsFinish():
			return s.afterExclusion(at)
		}
		after = at
		if before := e.To.Add(-time.Millisecond); before.After(at) {
			after = before
		}
	}
	return time.Time{}, false
}

// afterExclusion is when a fixed delay goes on that would fire at an excluded
// instant: when nothing excludes it any more.
func (s *Schedule) afterExclusion(at time.Time) (time.Time, bool) {
	for range maxExclusions {
		e, excluded := s.Excluded(at)
		if !excluded {
			return at, at.UnixMilli() <= s.end
		}
		at = e.To.In(s.loc)
	}
	return time.Time{}, false
}

// prevRun returns the last fire not after the given instant that no calendar
// excludes.
func (s *Schedule) prevRun(at time.Time) (time.Time, bool) {
	for range maxExclusions {
		last, ok := s.Prev(at)
		if !ok {
			return time.Time{}, false
		}
		e, excluded := s.Excluded(last)
		if !excluded {
			return last, true
		}
		at = e.From.Add(-time.Millisecond)
		if !at.Before(last) {
			at = last.Add(-time.Millisecond)
		}
	}
	return time.Time{}, false
}
