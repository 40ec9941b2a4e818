package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // so that a container without a tz database has one
)

// Compile checks a Spec and makes the Schedule that answers for it. The error
// is always a *SpecError which lists every wrong field.
func Compile(spec Spec) (*Schedule, error) {
	c := &compiler{spec: spec}
	s := c.compile()
	if len(c.problems) > 0 {
		return nil, &SpecError{Fields: c.problems}
	}
	return s, nil
}

// compiler collects problems while a Spec is read.
type compiler struct {
	spec     Spec
	problems []*FieldError
}

// fail notes a problem.
func (c *compiler) fail(field SpecField, format string, args ...any) {
	c.problems = append(c.problems, &FieldError{Field: field, Msg: fmt.Sprintf(format, args...)})
}

func (c *compiler) compile() *Schedule {
	s := &Schedule{
		kind:  c.spec.Kind,
		loc:   c.zone(),
		start: -1,
		end:   lastInstant,
		dst:   c.spec.DST,
	}
	s.rule = c.rule(s)
	if at, ok := c.instant(SpecStartAt, c.spec.StartAt); ok {
		s.start = at
	}
	if at, ok := c.instant(SpecEndAt, c.spec.EndAt); ok {
		s.end = at
		if at < s.start {
			c.fail(SpecEndAt, "is before startAt")
		}
	}
	if !(DST{Gap: s.dst.Gap}).Valid() {
		c.fail(SpecGap, "%q is no policy; use %s or %s", s.dst.Gap, GapRunAtEnd, GapSkip)
	}
	if !(DST{Overlap: s.dst.Overlap}).Valid() {
		c.fail(SpecOverlap, "%q is no policy; use %s or %s", s.dst.Overlap, OverlapOnce, OverlapBoth)
	}
	if j := c.spec.JitterMax; j < 0 || j > MaxJitter || j%time.Millisecond != 0 {
		c.fail(SpecJitterMax, "%s must be whole milliseconds from 0 to %s", j, MaxJitter)
	}
	if len(c.spec.Calendars) > MaxCalendars {
		c.fail(SpecCalendars, "has %d entries, it may have %d", len(c.spec.Calendars), MaxCalendars)
	}
	if !c.spec.Days.Valid() {
		c.fail(SpecDays, "%q is no rule; use %s, %s or %s", c.spec.Days, DaysNotHolidays, DaysWorkdays, DaysAll)
	}
	s.calendars, s.days = c.spec.Calendars, c.spec.Days
	s.jitter, s.seed = c.spec.JitterMax.Milliseconds(), c.spec.JitterSeed
	return s
}

// rule makes the part that belongs to the kind; nil when it never fires or a
// problem was noted.
func (c *compiler) rule(s *Schedule) rule {
	switch c.spec.Kind {
	case KindNone:
		return nil
	case KindCron:
		return c.cron(s)
	case KindFixedRate:
		return c.rate(c.spec.Every)
	case KindFixedDelay:
		return delay(c.rate(c.spec.Every))
	case KindOnce:
		at, ok := c.instant(SpecAt, c.spec.At)
		if !ok && c.spec.At.IsZero() {
			c.fail(SpecAt, "is required")
		}
		return instants{at}
	case KindInstants:
		return c.instants()
	case KindDailyWindow:
		return c.window(s)
	}
	c.fail(SpecKind, "%q is no kind of schedule", c.spec.Kind)
	return nil
}

// cron parses the expression; "@every" becomes a fixed rate.
func (c *compiler) cron(s *Schedule) rule {
	parsed, err := Parse(c.spec.Expr, c.spec.Dialect)
	var pe *ParseError
	if errors.As(err, &pe) {
		field := SpecExpr
		if pe.Code == CodeDialect {
			field = SpecDialect
		}
		c.problems = append(c.problems, &FieldError{Field: field, Msg: pe.Msg, Err: pe})
		return nil
	}
	s.cron = parsed
	if parsed.every > 0 {
		return c.rate(parsed.every)
	}
	return cronRule{parsed, s.loc, s.dst}
}

// rate reads an interval and the anchor.
func (c *compiler) rate(every time.Duration) rate {
	c.every(every, MaxEvery)
	anchor, ok := c.instant(SpecAnchor, c.spec.Anchor)
	if !ok && !c.spec.StartAt.IsZero() {
		anchor = c.spec.StartAt.UnixMilli() // checked as start_at
	}
	return rate{anchor: anchor, every: every.Milliseconds()}
}

func (c *compiler) every(every, longest time.Duration) {
	if every < MinEvery || every > longest || every%time.Millisecond != 0 {
		c.fail(SpecEvery, "%s must be whole milliseconds from %s to %s", every, MinEvery, longest)
	}
}

// instant reads a time; false when it is zero or wrong.
func (c *compiler) instant(field SpecField, t time.Time) (int64, bool) {
	if t.IsZero() {
		return 0, false
	}
	if t.Unix() < 0 || t.Unix() > lastInstant/1000 {
		c.fail(field, "must lie between the years %d and %d", minYear, lastYear)
		return 0, false
	}
	return t.UnixMilli(), true
}

// instants reads the list.
func (c *compiler) instants() rule {
	if n := len(c.spec.Instants); n == 0 || n > MaxInstants {
		c.fail(SpecInstants, "has %d entries, it may have 1 to %d", n, MaxInstants)
		return nil
	}
	list := make(instants, 0, len(c.spec.Instants))
	for i, t := range c.spec.Instants {
		if t.IsZero() {
			c.fail(SpecInstants, "entry %d is empty", i+1)
			return nil
		}
		at, ok := c.instant(SpecInstants, t)
		if !ok {
			return nil
		}
		list = append(list, at)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// window reads a daily window.
func (c *compiler) window(s *Schedule) rule {
	from, okFrom := clockTime(c.spec.WindowFrom)
	to, okTo := clockTime(c.spec.WindowTo)
	const wrong = "%q is no time of day; write HH:MM or HH:MM:SS"
	if !okFrom || from == 86400 {
		c.fail(SpecWindowFrom, wrong, c.spec.WindowFrom)
	}
	if !okTo {
		c.fail(SpecWindowTo, wrong, c.spec.WindowTo)
	}
	if okFrom && okTo && from%86400 == to {
		c.fail(SpecWindowTo, "is the same as window_from; 00:00 to 24:00 is the whole day")
	}
	c.every(c.spec.Every, 24*time.Hour)
	if to < from {
		to += 86400
	}
	return window{from: from, to: to, every: c.spec.Every.Milliseconds(), loc: s.loc, gap: s.dst.Gap}
}

// clockTime reads HH:MM[:SS] up to 24:00, in seconds.
func clockTime(text string) (int64, bool) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	var value int64
	for i := range 3 {
		n := int64(0)
		if i < len(parts) {
			p := parts[i]
			if len(p) != 2 || p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9' {
				return 0, false
			}
			n = int64(p[0]-'0')*10 + int64(p[1]-'0')
		}
		if i > 0 && n > 59 {
			return 0, false
		}
		value = value*60 + n
	}
	return value, value <= 86400
}

// zones keeps what was loaded: a look-up reads a file. It holds only names that
// exist, so it cannot grow past the tz database.
var zones sync.Map // string to *time.Location

// zone finds the time zone; UTC when it is wrong.
func (c *compiler) zone() *time.Location {
	name := c.spec.Zone
	if name == "" {
		return time.UTC
	}
	loc, err := LoadZone(name)
	if err != nil {
		c.fail(SpecZone, "%s", err)
		return time.UTC
	}
	return loc
}

// LoadZone finds an IANA time zone by name. Unlike time.LoadLocation it
// refuses "" and "Local", which mean another zone on another machine, and the files
// of a tz database that are no zone of a place. The error names a zone that was
// perhaps meant.
func LoadZone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if !noPlace(name) {
		if loc, err := time.LoadLocation(name); err == nil {
			zones.Store(name, loc)
			return loc, nil
		}
	}
	return nil, fmt.Errorf("%q is no time zone; %s", name, ZoneHint(name))
}
