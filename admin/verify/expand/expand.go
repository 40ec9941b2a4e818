package expand

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Spec is a schedule, in the words of a job. Zero times are "not set".
type Spec struct {
	// Kind is none, cron, fixed_rate, once, instants or daily_window. A fixed
	// delay has no times of its own: it goes by its runs.
	Kind                 string
	Expr, Dialect        string // dialect: standard, seconds, quartz; "" or auto goes by shape
	Every                time.Duration
	Anchor, At           time.Time
	Instants             []time.Time
	WindowFrom, WindowTo string
	Zone                 string // "" = UTC
	StartAt, EndAt       time.Time
	Gap, Overlap         string // "" = run_at_gap_end, once
	// Calendars exclude fire times, and Days says by which of their days:
	// "" = not_holidays, workdays, all.
	Calendars []Calendar
	Days      string
}

// Schedule tells fire times in Unix milliseconds. It is safe for concurrent use.
type Schedule struct {
	spec     Spec
	zone     *zone
	cron     *cron
	from, to int64 // milliseconds since midnight of the daily window

	calendarZones []*zone // of spec.Calendars
}

// The last instant that has a four-digit year, in Unix seconds.
const lastSecond = 253402300799

// New checks a spec as far as it is needed to expand it.
func New(spec Spec) (*Schedule, error) {
	z, err := loadZone(spec.Zone)
	if err != nil {
		return nil, err
	}
	s := &Schedule{spec: spec, zone: z}
	if err := s.loadCalendars(); err != nil {
		return nil, err
	}
	switch spec.Kind {
	case "none", "once", "instants":
	case "cron":
		if s.cron, err = parse(spec.Expr, spec.Dialect); err != nil {
			return nil, fmt.Errorf("expression %q: %w", spec.Expr, err)
		}
	case "daily_window":
		if s.from, err = timeOfDay(spec.WindowFrom); err != nil {
			return nil, err
		}
		if s.to, err = timeOfDay(spec.WindowTo); err != nil {
			return nil, err
		}
		if s.to < s.from {
			s.to += daySeconds * 1000
		}
	case "fixed_rate":
	default:
		return nil, fmt.Errorf("%q has no fire times of its own", spec.Kind)
	}
	if (spec.Kind == "fixed_rate" || spec.Kind == "daily_window") && spec.Every < time.Millisecond {
		return nil, fmt.Errorf("an interval of %s", spec.Every)
	}
	return s, nil
}

// timeOfDay reads HH:MM or HH:MM:SS in milliseconds.
func timeOfDay(text string) (int64, error) {
	parts := strings.Split(text+":00", ":")
	if len(parts) < 3 || len(parts) > 4 {
		return 0, fmt.Errorf("%q is no time of day", text)
	}
	d, err := time.ParseDuration(parts[0] + "h" + parts[1] + "m" + parts[2] + "s")
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day", text)
	}
	return d.Milliseconds(), nil
}

// Between lists the fire times in [from, to], in order, without doubles.
func (s *Schedule) Between(from, to int64) []int64 { return slices.Collect(s.Fires(from, to)) }

// Fires goes through the fire times in [from, to], in order, without doubles.
func (s *Schedule) Fires(from, to int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		from, to := max(from, 0), min(to, lastSecond*1000+999)
		if !s.spec.StartAt.IsZero() {
			from = max(from, s.spec.StartAt.UnixMilli())
		}
		if !s.spec.EndAt.IsZero() {
			to = min(to, s.spec.EndAt.UnixMilli())
		}
		if to >= from {
			s.fires(from, to, yield)
		}
	}
}

func (s *Schedule) fires(from, to int64, yield func(int64) bool) {
	switch {
	case s.spec.Kind == "cron" && s.cron.every == 0:
		s.walk(from, to, yield)
	case s.spec.Kind == "cron":
		s.rate(s.cron.every.Milliseconds(), from, to, yield)
	case s.spec.Kind == "fixed_rate":
		s.rate(s.spec.Every.Milliseconds(), from, to, yield)
	case s.spec.Kind == "once":
		s.list([]time.Time{s.spec.At}, from, to, yield)
	case s.spec.Kind == "instants":
		s.list(s.spec.Instants, from, to, yield)
	case s.spec.Kind == "daily_window":
		s.windows(from, to, yield)
	}
}

// rate is anchor + n·every.
func (s *Schedule) rate(every, from, to int64, yield func(int64) bool) {
	anchor := int64(0)
	if !s.spec.Anchor.IsZero() {
		anchor = s.spec.Anchor.UnixMilli()
	} else if !s.spec.StartAt.IsZero() {
		anchor = s.spec.StartAt.UnixMilli()
	}
	first := anchor
	if from > anchor {
		first = from + ((anchor-from)%every+every)%every
	}
	for at := first; at <= to; at += every {
		if !yield(at) {
			return
		}
	}
}

func (s *Schedule) list(times []time.Time, from, to int64, yield func(int64) bool) {
	var all []int64
	for _, t := range times {
		if ms := t.UnixMilli(); ms >= from && ms <= to {
			all = append(all, ms)
		}
	}
	slices.Sort(all)
	for _, ms := range slices.Compact(all) {
		if !yield(ms) {
			return
		}
	}
}

// lookBack is how far the past matters to a wall time, in seconds: a zone has
// never repeated or left out more than a day.
const lookBack = 2 * daySeconds

// walk lays the rule's wall seconds over the zone's stretches.
func (s *Schedule) walk(from, to int64, yield func(int64) bool) {
	first, last := (from+999)/1000, to/1000
	stretches := s.zone.straight(first-lookBack, last)
	for i, now := range stretches {
		begin, end := max(now.from, first), min(now.to, last+1)
		if begin >= end {
			continue
		}
		atEnd := i > 0 && begin == now.from && s.inGap(stretches[i-1], now)
		if atEnd && !yield(begin*1000) {
			return
		}
		more := s.cron.walls(begin+now.offset, end+now.offset, func(wall int64) bool {
			at := wall - now.offset
			if atEnd && at == begin || s.shown(stretches[:i], now, wall) {
				return true
			}
			return yield(at * 1000)
		})
		if !more {
			return
		}
	}
}

// inGap: fixed times lie in the gap between two stretches, and run at its end.
func (s *Schedule) inGap(before, now stretch) bool {
	if s.cron.hourly || s.spec.Gap == "skip" {
		return false
	}
	found := false
	s.cron.walls(now.from+before.offset, now.from+now.offset, func(int64) bool {
		found = true
		return false
	})
	return found
}

// shown: the clock has shown this wall time before, and once is enough.
func (s *Schedule) shown(earlier []stretch, now stretch, wall int64) bool {
	if s.cron.repeats || s.spec.Overlap == "both" {
		return false
	}
	for i := len(earlier) - 1; i >= 0 && earlier[i].to > now.from-lookBack; i-- {
		if at := wall - earlier[i].offset; at >= earlier[i].from && at < earlier[i].to {
			return true
		}
	}
	return false
}

// windows goes through the days' windows; those of two days can run into each
// other, hence the sort.
func (s *Schedule) windows(from, to int64, yield func(int64) bool) {
	first, last := from/1000-2*lookBack, to/1000+2*lookBack
	stretches := s.zone.straight(first, last)
	var all []int64
	begin := floorDiv(from/1000, daySeconds) - 3
	for day := begin; day <= floorDiv(to/1000, daySeconds)+2; day++ {
		all = s.window(all, stretches, day*daySeconds*1000, from, to)
	}
	slices.Sort(all)
	for _, at := range slices.Compact(all) {
		if !yield(at) {
			return
		}
	}
}

// window adds one day's fires: from the first instant whose wall time has
// reached the opening, every interval, to the last one whose wall time is not
// past the closing. midnight is in wall milliseconds.
func (s *Schedule) window(all []int64, stretches []stretch, midnight, from, to int64) []int64 {
	opens, closes := midnight+s.from, midnight+s.to
	open, close, opened := int64(0), int64(-1), false
	for _, now := range stretches {
		firstMilli, lastMilli, offset := now.from*1000, now.to*1000-1, now.offset*1000
		if !opened && lastMilli+offset >= opens {
			open, opened = max(firstMilli, opens-offset), true
		}
		if firstMilli+offset <= closes {
			close = min(lastMilli, closes-offset)
		}
	}
	if close < open { // all of it lies in a gap
		if s.spec.Gap != "skip" && open >= from && open <= to {
			all = append(all, open)
		}
		return all
	}
	every := s.spec.Every.Milliseconds()
	at := open
	if from > open {
		at += (from - open + every - 1) / every * every
	}
	for ; at <= min(close, to); at += every {
		all = append(all, at)
	}
	return all
}
