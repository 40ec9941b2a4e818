package calendar

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/ical"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/schedule"
)

type writeCalendarInput = web.Edited[CalendarSpec]

type importCalendarInput = web.Edited[ImportCalendar]

// ImportCalendar is an iCalendar file and what to make of it.
type ImportCalendar struct {
	ICal    string `json:"ical" minLength:"1" doc:"The file's text (RFC 5545); recurring events (RRULE, RDATE, EXDATE) are written out for ten years, at most 1000 times each; changed occurrences (RECURRENCE-ID) are refused"`
	As      string `json:"as,omitempty" enum:"auto,holidays,make_up_days,blackouts" doc:"What its events are; auto (the default): as Apple's holiday calendars mark them, else holidays"`
	Replace bool   `json:"replace,omitempty" doc:"Remove what the calendar has of that kind; default: add to it"`
}

func (a *api) registerCalendars() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calendars", ID: "list-calendars", Large: true, Tag: "calendars", Summary: "List calendars",
		Description: "By name, without their days and windows.",
	}, a.listCalendars)
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/calendars", ID: "create-calendar", Computes: true, Tag: "calendars", Summary: "Create a calendar",
		Description: "Jobs name it in their schedule; none does at first.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *struct{ Body CalendarSpec }) (*calendarOutput, error) {
		var r web.Reader
		spec := in.Body.read(&r)
		if err := r.Err(); err != nil {
			return nil, err
		}
		c, err := a.deps.Store.CreateCalendar(ctx, domain.Calendar{
			ID: domain.CalendarID(a.deps.NewID()), TenantID: id.Tenant, Spec: spec, CreatedBy: id.Actor(),
		})
		if err != nil {
			return nil, err
		}
		a.deps.Log.Info("calendar created", "tenant_id", id.Tenant, "calendar_id", c.ID, "calendar", c.Spec.Name, "by", id.Actor())
		return calendarAnswer(c), nil
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calendars/{id}", ID: "get-calendar", Large: true, Tag: "calendars", Summary: "One calendar",
		Description: "The newest version, whole. The ETag is the version, for update-calendar.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*calendarOutput, error) {
		c, err := a.findCalendar(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		return calendarAnswer(c), nil
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/calendars/{id}", ID: "update-calendar", Computes: true, Tag: "calendars", Summary: "Replace a calendar's contents",
		Description: "Makes a new version, and a new revision of every job that uses it: fires planned ahead are taken back and planned anew.",
		Errors:      calendarErrors,
	}, func(ctx context.Context, id auth.Identity, in *writeCalendarInput) (*calendarOutput, error) {
		var r web.Reader
		spec := in.Body.read(&r)
		return a.writeCalendar(ctx, id, in.ID, in.IfMatch, &r, func(domain.CalendarSpec) domain.CalendarSpec { return spec })
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/calendars/{id}", ID: "delete-calendar", Tag: "calendars", Summary: "Delete a calendar",
		Description: "Refused while jobs use it.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		cid, err := domain.ParseID[domain.CalendarID](in.ID)
		if err != nil {
			return nil, err
		}
		return nil, a.deps.Store.DeleteCalendar(ctx, id.Tenant, cid, id.Actor())
	})
	a.registerCalendarParts()
}

func (a *api) registerCalendarParts() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calendars/{id}/versions", ID: "list-calendar-versions", Large: true, Tag: "calendars",
		Summary:     "A calendar's versions, newest first",
		Description: "Each with its whole contents; runs that a calendar excluded name the version that did.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[CalendarVersion], error) {
		c, err := a.findCalendar(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		at, err := web.DecodeCursor(in.Cursor, "calendar-versions")
		if err != nil {
			return nil, err
		}
		page, err := a.deps.Store.ListCalendarVersions(ctx, id.Tenant, c.ID, at.ID, in.Limit)
		return web.StoredPage(page.Items, page.More, err, func(c *domain.Calendar) CalendarVersion {
			return CalendarVersion{Version: c.Version, CreatedAt: web.Instant(c.CreatedAt), CreatedBy: c.CreatedBy, Spec: calendarSpecOf(&c.Spec)}
		}, func(last *domain.Calendar) web.Cursor { return web.Cursor{List: "calendar-versions", ID: last.Version} })
	})
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calendars/{id}/jobs", ID: "list-calendar-jobs", Tag: "calendars",
		Summary:     "The jobs that use a calendar",
		Description: "By name. Those whose newest revision uses it.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[web.Ref], error) {
		c, err := a.findCalendar(ctx, id.Tenant, in.ID)
		if err != nil {
			return nil, err
		}
		rows, err := a.deps.Store.ListCalendarJobs(ctx, id.Tenant, c.ID, web.MaxListed)
		return web.ListPage(rows, err, func(j *store.JobRef) web.Ref { return web.Ref{ID: j.ID.String(), Name: j.Name} }, in.ShortPage, "calendar-jobs")
	})
	web.Register(a.Server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/calendars/{id}/import", ID: "import-calendar", Computes: true, Tag: "calendars",
		Summary: "Take days or windows from an iCalendar file", Description: "Makes a new version, as an edit does. A file that is not understood whole is refused with its line.",
		Errors: calendarErrors,
	}, a.importCalendar)
}

func (a *api) listCalendars(ctx context.Context, id auth.Identity, in *struct{ web.PageParams }) (*web.PageOutput[CalendarSummary], error) {
	at, err := web.DecodeCursor(in.Cursor, "calendars")
	if err != nil {
		return nil, err
	}
	page, err := a.deps.Store.ListCalendars(ctx, store.ListCalendarsParams{Tenant: id.Tenant, After: at.Name, Limit: in.Limit})
	return web.StoredPage(page.Items, page.More, err, summaryOf, func(last *domain.Calendar) web.Cursor {
		return web.Cursor{List: "calendars", Name: last.Spec.Name}
	})
}

// writeCalendar makes a new version of what change makes of the current one.
func (a *api) writeCalendar(ctx context.Context, id auth.Identity, text, match string, r *web.Reader, change func(domain.CalendarSpec) domain.CalendarSpec) (*calendarOutput, error) {
	c, err := a.findCalendar(ctx, id.Tenant, text)
	if err != nil {
		return nil, err
	}
	version, err := web.IfMatch(ctx, match)
	if err != nil {
		return nil, err
	}
	if version == 0 {
		version = c.Version
	}
	spec := change(c.Spec)
	if len(r.Fields) == 0 {
		calendarFault(r, &spec)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	c, err = a.deps.Store.UpdateCalendar(ctx, store.UpdateCalendarParams{
		Tenant: id.Tenant, ID: c.ID, IfVersion: version, Spec: spec, By: id.Actor(),
	})
	if err != nil {
		return nil, err
	}
	a.deps.Log.Info("calendar changed", "tenant_id", id.Tenant, "calendar_id", c.ID, "calendar", c.Spec.Name, "version", c.Version, "by", id.Actor())
	a.deps.FollowCalendar(ctx, c.ID)
	return calendarAnswer(c), nil
}

func (a *api) importCalendar(ctx context.Context, id auth.Identity, in *importCalendarInput) (*calendarOutput, error) {
	var r web.Reader
	return a.writeCalendar(ctx, id, in.ID, in.IfMatch, &r, func(spec domain.CalendarSpec) domain.CalendarSpec {
		zone, err := schedule.LoadZone(cmp.Or(spec.Zone, "UTC"))
		if err != nil {
			r.Fail("body.ical", nil, "the calendar's zone is gone: %s", err)
			return spec
		}
		events, err := ical.Parse(in.Body.ICal, zone, a.deps.Now())
		var wrong *ical.Error
		if errors.As(err, &wrong) {
			r.Fail("body.ical", nil, "%s", wrong.Error())
			return spec
		}
		in.Body.merge(&r, &spec, events)
		return spec
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
