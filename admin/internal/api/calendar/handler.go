package calendar

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/ical"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/schedule"
)

type importCalendarInput = web.Edited[ImportCalendar]

// ImportCalendar is an iCalendar file and what to make of it.
type ImportCalendar struct {
	ICal    string `json:"ical" minLength:"1" doc:"The file's text (RFC 5545); recurring events (RRULE, RDATE, EXDATE) are written out for ten years, at most 1000 times each; changed occurrences (RECURRENCE-ID) are refused"`
	As      string `json:"as,omitempty" enum:"auto,holidays,make_up_days,blackouts" doc:"What its events are; auto (the default): as Apple's holiday calendars mark them, else holidays"`
	Replace bool   `json:"replace,omitempty" doc:"Remove what the calendar has of that kind; default: add to it"`
}

func (a *api) register(s *web.Server) {
	a.documents = document.Register(s, a.docs)
	web.Register(s, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calendars/{id}/jobs", ID: "list-calendar-jobs", Tag: "calendars",
		Summary:     "The jobs that use a calendar",
		Description: "By name. Those whose newest revision uses it.",
	}, func(ctx context.Context, id auth.Identity, in *struct {
		web.ShortPage
		document.OneInput
	}) (*web.PageOutput[web.Ref], error) {
		c, err := a.docs.Find(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		rows, err := a.deps.Store.ListCalendarJobs(ctx, id.Tenant, domain.CalendarID(c.ID), web.MaxListed)
		return web.ListPage(rows, err, func(j *store.JobRef) web.Ref { return web.Ref{ID: j.ID.String(), Name: j.Name} }, in.ShortPage, "calendar-jobs")
	})
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/calendars/{id}/import", ID: "import-calendar", Computes: true, Tag: "calendars", Answer: a.documents.Answer(),
		Summary: "Take days or windows from an iCalendar file", Description: "Makes a new version, as an edit does. A file that is not understood whole is refused with its line.",
		Errors: []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, a.importCalendar)
}

func (a *api) importCalendar(ctx context.Context, id auth.Identity, in *importCalendarInput) (*document.Output, error) {
	return a.documents.Edit(ctx, id, in.ID, in.IfMatch, func(row *resource.Row) (resource.Write, error) {
		c, err := resource.Read[domain.CalendarSpec](row)
		if err != nil {
			return resource.Write{}, err
		}
		zone, err := schedule.LoadZone(cmp.Or(c.Spec.Zone, "UTC"))
		if err != nil {
			return resource.Write{}, domain.Invalid("body.ical", "the calendar's zone is gone: %s", err)
		}
		events, err := ical.Parse(in.Body.ICal, zone, a.deps.Now())
		var wrong *ical.Error
		if errors.As(err, &wrong) {
			return resource.Write{}, domain.Invalid("body.ical", "%s", wrong.Error())
		}
		var r web.Reader
		in.Body.merge(&r, &c.Spec, events)
		if err := r.Err(); err != nil {
			return resource.Write{}, err
		}
		spec, err := json.Marshal(c.Spec)
		return resource.Write{Name: row.Name, Labels: row.Labels, Spec: spec}, err
	})
}

// merge adds events to a calendar, or puts them in the place of what it has.
func (w *ImportCalendar) merge(r *web.Reader, spec *domain.CalendarSpec, events []ical.Event) {
	as := cmp.Or(w.As, "auto")
	if w.Replace {
		switch as {
		case "blackouts":
			spec.Blackouts = nil
		case "make_up_days":
			spec.MakeUpDays = nil
		case "auto":
			spec.Holidays, spec.MakeUpDays = nil, nil
		default:
			spec.Holidays = nil
		}
	}
	holidays, makeUps := dayList{days: spec.Holidays}, dayList{days: spec.MakeUpDays}
	for _, e := range events {
		name := e.Summary
		if runes := []rune(name); len(runes) > 60 {
			name = string(runes[:60])
		}
		switch {
		case as == "blackouts":
			if !e.From.Before(e.To) {
				r.Fail("body.ical", nil, "line %d: the event has no length", e.Line)
				return
			}
			spec.Blackouts = append(spec.Blackouts, domain.Blackout{From: e.From, To: e.To, Name: name})
		case !e.AllDay:
			r.Fail("body.ical", nil, "line %d: the event is no whole day; import such a file as blackouts", e.Line)
			return
		case as == "make_up_days" || as == "auto" && e.Special == ical.SpecialWorkday:
			makeUps.add(e.Dates(), name)
		default:
			holidays.add(e.Dates(), name)
		}
		// Not at the end: a file of some kilobytes can name millions of days.
		if len(holidays.days)+len(makeUps.days) > schedule.MaxCalendarDays {
			r.Fail("body.ical", nil, "line %d: with this event the calendar has more than %d days", e.Line, schedule.MaxCalendarDays)
			return
		}
	}
	spec.Holidays, spec.MakeUpDays = holidays.days, makeUps.days
}

// dayList has each date once.
type dayList struct {
	days []domain.CalendarDay
	seen map[string]bool
}

func (l *dayList) add(dates []string, name string) {
	if l.seen == nil {
		l.seen = map[string]bool{}
		for _, d := range l.days {
			l.seen[d.Date] = true
		}
	}
	for _, date := range dates {
		if !l.seen[date] {
			l.seen[date] = true
			l.days = append(l.days, domain.CalendarDay{Date: date, Name: name})
		}
	}
}
