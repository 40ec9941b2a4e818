package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/schedule"
)

// ScheduleWrite is a schedule as it is given.
type ScheduleWrite struct {
	Kind         string           `json:"kind" enum:"cron,fixed_rate,fixed_delay,once,instants,daily_window,none"`
	Expr         string           `json:"expr,omitempty" maxLength:"1024" doc:"For cron"`
	Dialect      string           `json:"dialect,omitempty" enum:"auto,standard,seconds,quartz" doc:"For cron; default auto, which is resolved and stored"`
	Every        string           `json:"every,omitempty" doc:"For fixed_rate, fixed_delay (after the end of the run before) and daily_window; at least 100ms"`
	Anchor       *string          `json:"anchor,omitempty" format:"date-time" doc:"For fixed_rate: where it counts from, default startAt or now. For fixed_delay: the first fire, if it is still to come"`
	At           *string          `json:"at,omitempty" format:"date-time" doc:"For once"`
	After        string           `json:"after,omitempty" writeOnly:"true" doc:"For once, instead of at: this long from now"`
	Instants     []string         `json:"instants,omitempty" maxItems:"10000" doc:"For instants: RFC 3339, in any order"`
	WindowFrom   string           `json:"windowFrom,omitempty" maxLength:"8" doc:"For daily_window: first fire of each day, HH:MM or HH:MM:SS"`
	WindowTo     string           `json:"windowTo,omitempty" maxLength:"8" doc:"For daily_window: no fire later; before windowFrom it is on the next day"`
	Zone         string           `json:"zone,omitempty" maxLength:"64" doc:"IANA name; default UTC"`
	StartAt      *string          `json:"startAt,omitempty" format:"date-time" doc:"No fire before"`
	EndAt        *string          `json:"endAt,omitempty" format:"date-time" doc:"No fire after"`
	DSTGap       string           `json:"dstGap,omitempty" enum:"run_at_gap_end,skip" doc:"For cron and daily_window: a time that the clock jumps over; default run_at_gap_end"`
	DSTOverlap   string           `json:"dstOverlap,omitempty" enum:"once,both" doc:"For cron: a time that comes twice; default once"`
	Jitter       string           `json:"jitter,omitempty" doc:"Start each run up to this long after its fire time, the same on every node; default 0s"`
	Calendars    []CalendarChoice `json:"calendars,omitempty" maxItems:"8" doc:"Calendars whose days and windows keep it from firing; a fire time that they exclude gets a row with its reason"`
	CalendarDays string           `json:"calendarDays,omitempty" enum:"not_holidays,workdays,all" doc:"Which days the calendars leave: not_holidays (default), workdays (neither holiday nor weekend, but make-up days), all (only blackouts count)"`
	Text         *Bilingual       `json:"text,omitempty" readOnly:"true"`
}

// MisfireWrite has defaults: skip, 5s; for all 1h and 100 runs.
type MisfireWrite struct {
	Policy    string `json:"policy,omitempty" enum:"skip,once_now,all"`
	Threshold string `json:"threshold,omitempty" doc:"How late a fire time still counts as on time; default 5s"`
	Window    string `json:"window,omitempty" doc:"For all: older fire times are not made up; default 1h"`
	MaxRuns   int    `json:"maxRuns,omitempty" minimum:"0" maximum:"10000" doc:"For all: the newest so many are made up; default 100"`
}

func (w *MisfireWrite) read(r *reader) domain.Misfire {
	out := domain.Misfire{Policy: domain.MisfireSkip, Threshold: domain.DefaultMisfireThreshold}
	if w == nil {
		return out
	}
	out.Policy = orDefault(domain.MisfirePolicy(w.Policy), domain.MisfireSkip)
	out.Threshold = r.duration("body.misfire.threshold", w.Threshold, domain.DefaultMisfireThreshold)
	if out.Policy != domain.MisfireAll {
		const advice = "needs the policy all; leave it out for %s"
		if w.MaxRuns != 0 {
			r.fail("body.misfire.maxRuns", w.MaxRuns, advice, out.Policy)
		}
		if w.Window != "" {
			r.fail("body.misfire.window", w.Window, advice, out.Policy)
		}
	} else {
		out.Window = r.duration("body.misfire.window", w.Window, domain.DefaultMisfireWindow)
		if out.MaxRuns = w.MaxRuns; out.MaxRuns == 0 {
			out.MaxRuns = domain.DefaultMisfireMaxRuns
		}
	}
	return out
}

// misfireOf shows the window and the cap only where they mean something.
func misfireOf(m domain.Misfire) Misfire {
	threshold := m.Threshold
	if threshold <= 0 {
		threshold = domain.DefaultMisfireThreshold
	}
	out := Misfire{Policy: string(m.Policy), Threshold: durationText(threshold)}
	if m.Policy == domain.MisfireAll {
		window := m.Window
		if window <= 0 {
			window = domain.DefaultMisfireWindow
		}
		if out.MaxRuns = m.MaxRuns; out.MaxRuns <= 0 {
			out.MaxRuns = domain.DefaultMisfireMaxRuns
		}
		out.Window = durationText(window)
	}
	return out
}

// read takes over the fields of the schedule's kind. now is where a fixed rate
// counts from, unless an anchor or the beginning of its validity says else.
func (w *ScheduleWrite) read(r *reader, location string, now time.Time) domain.ScheduleSpec {
	s := domain.ScheduleSpec{
		Kind: domain.ScheduleKind(w.Kind), Zone: orDefault(w.Zone, "UTC"),
		StartAt: r.instant(location+".startAt", w.StartAt), EndAt: r.instant(location+".endAt", w.EndAt),
		JitterMax: r.duration(location+".jitter", w.Jitter, 0),
	}
	w.leftovers(r, location)
	if len(w.Calendars) > 0 {
		s.Days = orDefault(w.CalendarDays, string(schedule.DaysNotHolidays))
	}
	switch s.Kind {
	case domain.ScheduleCron:
		s.Expr, s.Dialect = w.Expr, orDefault(w.Dialect, "auto")
		s.Gap, s.Overlap = w.DSTGap, w.DSTOverlap
	case domain.ScheduleFixedRate:
		s.Every = r.duration(location+".every", w.Every, 0)
		if s.Anchor = r.instant(location+".anchor", w.Anchor); s.Anchor.IsZero() {
			s.Anchor = s.StartAt
		}
		if s.Anchor.IsZero() {
			s.Anchor = now.Truncate(time.Second).UTC()
		}
	case domain.ScheduleFixedDelay:
		s.Every = r.duration(location+".every", w.Every, 0)
		s.Anchor = r.instant(location+".anchor", w.Anchor)
	case domain.ScheduleOnce:
		s.At = w.once(r, location, now)
	case domain.ScheduleInstants:
		for i := range w.Instants {
			s.Instants = append(s.Instants, r.instant(fmt.Sprintf("%s.instants[%d]", location, i), &w.Instants[i]))
		}
	case domain.ScheduleDailyWindow:
		s.Every = r.duration(location+".every", w.Every, 0)
		s.WindowFrom, s.WindowTo, s.Gap = w.WindowFrom, w.WindowTo, w.DSTGap
	}
	if paced := s.Kind == domain.ScheduleFixedRate || s.Kind == domain.ScheduleDailyWindow; paced && s.Every > 0 && s.JitterMax > s.Every {
		r.fail(location+".jitter", w.Jitter, "is longer than every, so that runs would overtake each other; at most %s", durationText(s.Every))
	}
	return s
}

// leftovers refuses what a schedule of another kind is made of: whoever sent it
// meant it to count.
func (w *ScheduleWrite) leftovers(r *reader, location string) {
	for _, f := range []struct {
		name  string
		given bool
		value any
		kinds []domain.ScheduleKind
	}{
		{"expr", w.Expr != "", w.Expr, []domain.ScheduleKind{domain.ScheduleCron}},
		{"every", w.Every != "", w.Every, []domain.ScheduleKind{domain.ScheduleFixedRate, domain.ScheduleFixedDelay, domain.ScheduleDailyWindow}},
		{"anchor", w.Anchor != nil, nil, []domain.ScheduleKind{domain.ScheduleFixedRate, domain.ScheduleFixedDelay}},
		{"at", w.At != nil, nil, []domain.ScheduleKind{domain.ScheduleOnce}},
		{"after", w.After != "", w.After, []domain.ScheduleKind{domain.ScheduleOnce}},
		{"instants", len(w.Instants) > 0, nil, []domain.ScheduleKind{domain.ScheduleInstants}},
		{"windowFrom", w.WindowFrom != "", w.WindowFrom, []domain.ScheduleKind{domain.ScheduleDailyWindow}},
		{"windowTo", w.WindowTo != "", w.WindowTo, []domain.ScheduleKind{domain.ScheduleDailyWindow}},
	} {
		if f.given && !slices.Contains(f.kinds, domain.ScheduleKind(w.Kind)) {
			r.fail(location+"."+f.name, f.value, "is for schedules of kind %s; leave it out for %s", kindNames(f.kinds), w.Kind)
		}
	}
}

func kindNames(kinds []domain.ScheduleKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return strings.Join(names, ", ")
}

// once reads at or after.
func (w *ScheduleWrite) once(r *reader, location string, now time.Time) time.Time {
	wrong := len(r.fields)
	at := r.instant(location+".at", w.At)
	after := r.duration(location+".after", w.After, 0)
	switch {
	case len(r.fields) > wrong:
	case w.After == "" && at.IsZero():
		r.fail(location+".at", nil, "is needed for a schedule of kind once")
	case w.After != "" && !at.IsZero():
		r.fail(location+".after", w.After, "at and after exclude each other")
	case w.After != "" && (after < 0 || after > maxRunDelay):
		r.fail(location+".after", w.After, "must be from 0s to one year")
	case w.After != "":
		at = now.Add(after).UTC().Truncate(time.Millisecond)
	}
	return at
}

// scheduleOf is the schedule as it is read, with what was left out filled in.
func scheduleOf(s domain.ScheduleSpec) Schedule {
	out := Schedule{
		Kind: string(s.Kind), Zone: orDefault(s.Zone, "UTC"), StartAt: instantOrNull(s.StartAt), EndAt: instantOrNull(s.EndAt),
	}
	// What is stored was checked once; should it not compile any more, there
	// are no words for it.
	if plan := compile(&reader{}, "", &s, ""); plan != nil {
		text := textOf(plan)
		out.Text = &text
	}
	out.Calendars, out.CalendarDays = calendarRefs(s.Calendars), s.Days
	if s.JitterMax > 0 {
		out.Jitter = durationText(s.JitterMax)
	}
	switch s.Kind {
	case domain.ScheduleCron:
		out.Expr, out.Dialect = s.Expr, s.Dialect
		out.DSTGap, out.DSTOverlap = s.Gap, s.Overlap
	case domain.ScheduleFixedRate, domain.ScheduleFixedDelay:
		out.Every, out.Anchor = durationText(s.Every), instantOrNull(s.Anchor)
	case domain.ScheduleOnce:
		out.At = instantOrNull(s.At)
	case domain.ScheduleInstants:
		for _, at := range s.Instants {
			out.Instants = append(out.Instants, instant(at))
		}
	case domain.ScheduleDailyWindow:
		out.Every, out.WindowFrom, out.WindowTo, out.DSTGap = durationText(s.Every), s.WindowFrom, s.WindowTo, s.Gap
	}
	return out
}
