package calendar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/schedule"
)

// Calendar is a list of days and windows that keep schedules from firing.
type Calendar struct {
	ID      string `json:"id" doc:"Id of the calendar, a decimal string"`
	Version int64  `json:"version" doc:"Number of the newest version, from 1"`
	CalendarSpec
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When the calendar was made"`
	UpdatedAt string `json:"updatedAt" format:"date-time" doc:"When the newest version was written"`
	CreatedBy string `json:"createdBy" doc:"Who made the calendar"`
	UpdatedBy string `json:"updatedBy" doc:"Who wrote the newest version"`
}

// CalendarSpec is what a version of a calendar holds.
type CalendarSpec struct {
	Name        string        `json:"name" minLength:"1" maxLength:"128" doc:"Its name, unique in the tenant"`
	Description string        `json:"description,omitempty" maxLength:"4096" doc:"What it is for, for people"`
	Zone        string        `json:"zone,omitempty" maxLength:"64" doc:"Zone whose days are meant; default: that of the schedule"`
	Weekend     []string      `json:"weekend,omitempty" maxItems:"7" enum:"MON,TUE,WED,THU,FRI,SAT,SUN" doc:"Weekdays without work; default SAT and SUN"`
	Holidays    []CalendarDay `json:"holidays,omitempty" maxItems:"5000" doc:"Days on which jobs that use it do not fire"`
	MakeUpDays  []CalendarDay `json:"makeUpDays,omitempty" maxItems:"5000" doc:"Working days although weekend"`
	Blackouts   []Blackout    `json:"blackouts,omitempty" maxItems:"1000" doc:"Windows in which nothing fires"`
}

// CalendarDay is a date with what people call it.
type CalendarDay struct {
	Date string `json:"date" maxLength:"10" example:"2026-10-01" doc:"The day, YYYY-MM-DD in the calendar's zone"`
	Name string `json:"name,omitempty" maxLength:"200" doc:"What day it is, for people"`
}

// Blackout is a window: from ≤ fire < to.
type Blackout struct {
	From string `json:"from" format:"date-time" doc:"Begin of the window, included"`
	To   string `json:"to" format:"date-time" doc:"End of the window, not included"`
	Name string `json:"name,omitempty" maxLength:"200" doc:"What it is for; empty: not said"`
}

// CalendarVersion is one version of a calendar.
type CalendarVersion struct {
	Version   int64        `json:"version" doc:"Number of the version, from 1"`
	CreatedAt string       `json:"createdAt" format:"date-time" doc:"When it was written"`
	CreatedBy string       `json:"createdBy" doc:"Who wrote it"`
	Spec      CalendarSpec `json:"spec" doc:"The contents of the calendar in this version"`
}

// CalendarSummary is a calendar in lists, without its days.
type CalendarSummary struct {
	ID          string `json:"id" doc:"Id of the calendar, a decimal string"`
	Name        string `json:"name" doc:"Its name"`
	Description string `json:"description" doc:"What it is for, for people"`
	Zone        string `json:"zone" doc:"IANA name of the zone of its days"`
	Version     int64  `json:"version" doc:"Number of the newest version, from 1"`
	Holidays    int    `json:"holidays" doc:"How many holidays it has"`
	MakeUpDays  int    `json:"makeUpDays" doc:"How many working days on weekends it has"`
	Blackouts   int    `json:"blackouts" doc:"How many windows without fires it has"`
	UpdatedAt   string `json:"updatedAt" format:"date-time" doc:"When the newest version was written"`
	UpdatedBy   string `json:"updatedBy" doc:"Who wrote the newest version"`
}

var weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

func calendarOf(c domain.Calendar) Calendar {
	return Calendar{
		ID: c.ID.String(), Version: c.Version, CalendarSpec: calendarSpecOf(&c.Spec),
		CreatedAt: web.Instant(c.CreatedAt), UpdatedAt: web.Instant(c.UpdatedAt), CreatedBy: c.CreatedBy, UpdatedBy: c.UpdatedBy,
	}
}

func calendarSpecOf(s *domain.CalendarSpec) CalendarSpec {
	out := CalendarSpec{Name: s.Name, Description: s.Description, Zone: s.Zone}
	for _, w := range s.Weekend {
		out.Weekend = append(out.Weekend, weekdayNames[w])
	}
	for _, d := range s.Holidays {
		out.Holidays = append(out.Holidays, CalendarDay(d))
	}
	for _, d := range s.MakeUpDays {
		out.MakeUpDays = append(out.MakeUpDays, CalendarDay(d))
	}
	for _, b := range s.Blackouts {
		out.Blackouts = append(out.Blackouts, Blackout{web.Instant(b.From), web.Instant(b.To), b.Name})
	}
	return out
}

func summaryOf(c *domain.Calendar) CalendarSummary {
	return CalendarSummary{
		ID: c.ID.String(), Name: c.Spec.Name, Description: c.Spec.Description, Zone: c.Spec.Zone, Version: c.Version,
		Holidays: len(c.Spec.Holidays), MakeUpDays: len(c.Spec.MakeUpDays), Blackouts: len(c.Spec.Blackouts),
		UpdatedAt: web.Instant(c.UpdatedAt), UpdatedBy: c.UpdatedBy,
	}
}

// read checks a calendar; what is wrong is collected in r.
func (w *CalendarSpec) read(r *web.Reader) domain.CalendarSpec {
	s := domain.CalendarSpec{
		Name: r.Name("body.name", w.Name, domain.MaxNameLength), Description: strings.TrimSpace(w.Description), Zone: w.Zone,
	}
	for _, name := range w.Weekend {
		s.Weekend = append(s.Weekend, time.Weekday(slices.Index(weekdayNames, name)))
	}
	s.Holidays = readDays(r, "body.holidays", w.Holidays)
	s.MakeUpDays = readDays(r, "body.makeUpDays", w.MakeUpDays)
	for i, b := range w.Blackouts {
		at := fmt.Sprintf("body.blackouts[%d]", i)
		s.Blackouts = append(s.Blackouts, domain.Blackout{
			From: r.Instant(at+".from", &b.From), To: r.Instant(at+".to", &b.To), Name: line(r, at+".name", b.Name),
		})
	}
	if len(r.Fields) > 0 {
		return s
	}
	if err := r.Add(domain.CheckCalendar(&s)); err != nil {
		r.Fail("body", nil, "%s", err.Error())
	}
	calendarFault(r, &s)
	return s
}

// calendarFault asks the engine.
func calendarFault(r *web.Reader, s *domain.CalendarSpec) {
	_, err := timing.CompileCalendar(s)
	var wrong *schedule.CalendarError
	if errors.As(err, &wrong) {
		at := "body." + wrong.Field
		if wrong.Index >= 0 {
			at = fmt.Sprintf("%s[%d]", at, wrong.Index)
		}
		r.Fail(at, nil, "%s", wrong.Msg)
	}
}

func readDays(r *web.Reader, location string, days []CalendarDay) []domain.CalendarDay {
	var out []domain.CalendarDay
	for i, d := range days {
		out = append(out, domain.CalendarDay{Date: d.Date, Name: line(r, fmt.Sprintf("%s[%d].name", location, i), d.Name)})
	}
	return out
}

// line reads a text that people see in one line; it may be empty.
func line(r *web.Reader, location, text string) string {
	text = strings.TrimSpace(text)
	if domain.HasControl(text) {
		r.Fail(location, nil, "must not contain control characters or line breaks")
	}
	return text
}

// findCalendar finds one of the tenant by the id in the path.
func (a *api) findCalendar(ctx context.Context, tenant domain.TenantID, text string) (domain.Calendar, error) {
	return web.ByID(ctx, tenant, text, a.deps.Store.FindCalendar)
}

// CalendarChoice names a calendar by id or by name.
type CalendarChoice struct {
	ID      string `json:"id,omitempty" doc:"Either this"`
	Name    string `json:"name,omitempty" doc:"Or this; ignored beside an id"`
	Version int64  `json:"version,omitempty" readOnly:"true" doc:"Written by the server; taken back so that what was read can be written"`
}

// CalendarRef is a calendar in a schedule.
type CalendarRef struct {
	ID      string `json:"id" doc:"Id of the calendar, a decimal string"`
	Name    string `json:"name" doc:"Its name"`
	Version int64  `json:"version" doc:"The version that this revision is planned with"`
}

// Choose finds the calendars of a schedule, at their current versions.
func Choose(ctx context.Context, from store.Calendars, tenant domain.TenantID, r *web.Reader, location string, choices []CalendarChoice) ([]domain.CalendarUse, error) {
	var out []domain.CalendarUse
	for i, choice := range choices {
		at := fmt.Sprintf("%s.calendars[%d]", location, i)
		var c domain.Calendar
		var err error
		switch {
		case choice.ID != "":
			c, err = web.ByID(ctx, tenant, choice.ID, from.FindCalendar)
		case choice.Name != "":
			c, err = from.FindCalendarByName(ctx, tenant, choice.Name)
		default:
			r.Fail(at, nil, "needs an id or a name")
			continue
		}
		switch {
		case domain.Is(err, domain.CodeNotFound):
			r.Fail(at, choice.ID+choice.Name, "there is no such calendar")
		case err != nil:
			return nil, err
		case slices.ContainsFunc(out, func(u domain.CalendarUse) bool { return u.ID == c.ID }):
			r.Fail(at, c.Spec.Name, "is named twice")
		default:
			out = append(out, domain.CalendarUse{ID: c.ID, Version: c.Version, Content: &c.Spec})
		}
	}
	return out, nil
}

// Refs names the calendars of a schedule.
func Refs(uses []domain.CalendarUse) []CalendarRef {
	var out []CalendarRef
	for _, u := range uses {
		ref := CalendarRef{ID: u.ID.String(), Version: u.Version}
		if u.Content != nil {
			ref.Name = u.Content.Name
		}
		out = append(out, ref)
	}
	return out
}

type calendarOutput = web.Versioned[Calendar]

func calendarAnswer(c domain.Calendar) *calendarOutput {
	return &calendarOutput{ETag: web.ETag(c.Version), Body: calendarOf(c)}
}

// calendarErrors are the statuses of operations that write.
var calendarErrors = []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired}
