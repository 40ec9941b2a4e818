package api

import (
	"cmp"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/schedule"
)

// ScheduleWrite is a schedule as it is given.
type ScheduleWrite struct {
	Kind         string                    `json:"kind" enum:"cron,fixed_rate,fixed_delay,once,instants,daily_window,none" doc:"What decides when it fires; none: only who asks"`
	Expr         string                    `json:"expr,omitempty" maxLength:"1024" doc:"For cron"`
	Dialect      string                    `json:"dialect,omitempty" enum:"auto,standard,seconds,quartz" doc:"For cron; default auto, which is resolved and stored"`
	Every        string                    `json:"every,omitempty" doc:"For fixed_rate, fixed_delay (after the end of the run before) and daily_window; at least 100ms"`
	Anchor       *string                   `json:"anchor,omitempty" format:"date-time" doc:"For fixed_rate: where it counts from, default startAt or now. For fixed_delay: the first fire, if it is still to come"`
	At           *string                   `json:"at,omitempty" format:"date-time" doc:"For once"`
	After        string                    `json:"after,omitempty" writeOnly:"true" doc:"For once, instead of at: this long from now"`
	Instants     []string                  `json:"instants,omitempty" maxItems:"10000" doc:"For instants: RFC 3339, in any order"`
	WindowFrom   string                    `json:"windowFrom,omitempty" maxLength:"8" doc:"For daily_window: first fire of each day, HH:MM or HH:MM:SS"`
	WindowTo     string                    `json:"windowTo,omitempty" maxLength:"8" doc:"For daily_window: no fire later; before windowFrom it is on the next day"`
	Zone         string                    `json:"zone,omitempty" maxLength:"64" doc:"IANA name; default UTC"`
	StartAt      *string                   `json:"startAt,omitempty" format:"date-time" doc:"No fire before"`
	EndAt        *string                   `json:"endAt,omitempty" format:"date-time" doc:"No fire after"`
	DSTGap       string                    `json:"dstGap,omitempty" enum:"run_at_gap_end,skip" doc:"For cron and daily_window: a time that the clock jumps over; default run_at_gap_end. Without effect where the hour field has every hour: that goes by elapsed time"`
	DSTOverlap   string                    `json:"dstOverlap,omitempty" enum:"once,both" doc:"For cron: a time that comes twice; default once. Without effect where the hour field has every hour, or the minute field steps through the whole hour (*, */15, 5/20): these go by elapsed time, and fire both times"`
	Jitter       string                    `json:"jitter,omitempty" doc:"Start each run up to this long after its fire time, the same on every node; default 0s"`
	Calendars    []calendar.CalendarChoice `json:"calendars,omitempty" maxItems:"8" doc:"Calendars whose days and windows keep it from firing; a fire time that they exclude gets a row with its reason"`
	CalendarDays string                    `json:"calendarDays,omitempty" enum:"not_holidays,workdays,all" doc:"Which days the calendars leave: not_holidays (default), workdays (neither holiday nor weekend, but make-up days), all (only blackouts count)"`
	Text         *web.Bilingual            `json:"text,omitempty" readOnly:"true" doc:"Written by the server; taken back so that what was read can be written"`
}

// MisfireWrite has defaults: skip, 5s; for all 1h and 100 runs.
type MisfireWrite struct {
	Policy    string `json:"policy,omitempty" enum:"skip,once_now,all" doc:"skip: none of them runs; once_now: one run for all of them; all: each of them runs, within window and maxRuns; default skip"`
	Threshold string `json:"threshold,omitempty" doc:"How late a fire time still counts as on time; default 5s"`
	Window    string `json:"window,omitempty" doc:"For all: older fire times are not made up; default 1h"`
	MaxRuns   int    `json:"maxRuns,omitempty" minimum:"0" maximum:"10000" doc:"For all: the newest so many are made up; default 100"`
}

func (w *MisfireWrite) read(r *reader) domain.Misfire {
	out := domain.Misfire{Policy: domain.MisfireSkip, Threshold: domain.DefaultMisfireThreshold}
	if w == nil {
		return out
	}
	out.Policy = cmp.Or(domain.MisfirePolicy(w.Policy), domain.MisfireSkip)
	out.Threshold = r.Duration("body.misfire.threshold", w.Threshold, domain.DefaultMisfireThreshold)
	window, runs := time.Duration(0), 0 // CheckSpec refuses them with another policy
	if out.Policy == domain.MisfireAll {
		window, runs = domain.DefaultMisfireWindow, domain.DefaultMisfireMaxRuns
	}
	out.Window, out.MaxRuns = r.Duration("body.misfire.window", w.Window, window), cmp.Or(w.MaxRuns, runs)
	return out
}

// misfireOf shows the window and the cap only where they mean something.
func misfireOf(m domain.Misfire) Misfire {
	threshold := m.Threshold
	if threshold <= 0 {
		threshold = domain.DefaultMisfireThreshold
	}
	out := Misfire{Policy: string(m.Policy), Threshold: domain.DurationText(threshold)}
	if m.Policy == domain.MisfireAll {
		window := m.Window
		if window <= 0 {
			window = domain.DefaultMisfireWindow
		}
		if out.MaxRuns = m.MaxRuns; out.MaxRuns <= 0 {
			out.MaxRuns = domain.DefaultMisfireMaxRuns
		}
		out.Window = domain.DurationText(window)
	}
	return out
}

// read takes over what is given, and refuses what contradicts itself. now is
// where a fixed rate counts from, unless an anchor or the beginning of its
// validity says else.
func (w *ScheduleWrite) read(r *reader, location string, now time.Time) domain.ScheduleSpec {
	wrong := len(r.Fields)
	s := domain.ScheduleSpec{
		Kind: domain.ScheduleKind(w.Kind), Expr: w.Expr, Every: r.Duration(location+".every", w.Every, 0),
		Anchor: r.Instant(location+".anchor", w.Anchor), At: w.once(r, location, now),
		WindowFrom: w.WindowFrom, WindowTo: w.WindowTo, Zone: cmp.Or(w.Zone, "UTC"),
		StartAt: r.Instant(location+".startAt", w.StartAt), EndAt: r.Instant(location+".endAt", w.EndAt),
		Gap: w.DSTGap, Overlap: w.DSTOverlap, JitterMax: r.Duration(location+".jitter", w.Jitter, 0),
	}
	for i := range w.Instants {
		s.Instants = append(s.Instants, r.Instant(fmt.Sprintf("%s.instants[%d]", location, i), &w.Instants[i]))
	}
	if len(w.Calendars) > 0 {
		s.Days = cmp.Or(w.CalendarDays, string(schedule.DaysNotHolidays))
	} else if w.CalendarDays != "" {
		r.Fail(location+".calendarDays", w.CalendarDays, "needs calendars; leave it out where there are none")
	}
	switch s.Kind {
	case domain.ScheduleCron:
		s.Dialect = cmp.Or(w.Dialect, "auto")
	case domain.ScheduleFixedRate:
		if s.Anchor.IsZero() {
			s.Anchor = s.StartAt
		}
		if s.Anchor.IsZero() {
			s.Anchor = now.Truncate(time.Second).UTC()
		}
	}
	if len(r.Fields) == wrong { // the rules speak of values that could be read
		r.Fields = append(r.Fields, domain.CheckSchedule(location, &s)...)
	}
	return s
}

// once reads at or, for a schedule of kind once, after.
func (w *ScheduleWrite) once(r *reader, location string, now time.Time) time.Time {
	wrong := len(r.Fields)
	at := r.Instant(location+".at", w.At)
	if w.Kind != string(domain.ScheduleOnce) {
		if w.After != "" {
			r.Fail(location+".after", w.After, "is for schedules of kind once; leave it out for %s", w.Kind)
		}
		return at
	}
	after := r.Duration(location+".after", w.After, 0)
	switch {
	case len(r.Fields) > wrong:
	case w.After == "" && at.IsZero():
		r.Fail(location+".at", nil, "is needed for a schedule of kind once")
	case w.After != "" && !at.IsZero():
		r.Fail(location+".after", w.After, "at and after exclude each other")
	case w.After != "" && (after < 0 || after > maxRunDelay):
		r.Fail(location+".after", w.After, "must be from 0s to ten years (87672h)")
	case w.After != "":
		at = now.Add(after).UTC().Truncate(time.Millisecond)
	}
	return at
}

// scheduleOf is the schedule as it is read, with what was left out filled in.
func scheduleOf(s domain.ScheduleSpec) Schedule {
	out := Schedule{
		Kind: string(s.Kind), Zone: cmp.Or(s.Zone, "UTC"), StartAt: web.InstantOrNull(s.StartAt), EndAt: web.InstantOrNull(s.EndAt),
	}
	// What is stored was checked once; should it not compile any more, there
	// are no words for it.
	if plan := compile(&reader{}, "", &s, ""); plan != nil {
		text := textOf(plan)
		out.Text = &text
	}
	out.Calendars, out.CalendarDays = calendar.Refs(s.Calendars), s.Days
	if s.JitterMax > 0 {
		out.Jitter = domain.DurationText(s.JitterMax)
	}
	switch s.Kind {
	case domain.ScheduleCron:
		out.Expr, out.Dialect = s.Expr, s.Dialect
		out.DSTGap, out.DSTOverlap = s.Gap, s.Overlap
	case domain.ScheduleFixedRate, domain.ScheduleFixedDelay:
		out.Every, out.Anchor = domain.DurationText(s.Every), web.InstantOrNull(s.Anchor)
	case domain.ScheduleOnce:
		out.At = web.InstantOrNull(s.At)
	case domain.ScheduleInstants:
		for _, at := range s.Instants {
			out.Instants = append(out.Instants, web.Instant(at))
		}
	case domain.ScheduleDailyWindow:
		out.Every, out.WindowFrom, out.WindowTo, out.DSTGap = domain.DurationText(s.Every), s.WindowFrom, s.WindowTo, s.Gap
	}
	return out
}
