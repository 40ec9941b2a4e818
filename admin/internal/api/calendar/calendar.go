package calendar

import (
	"context"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

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
