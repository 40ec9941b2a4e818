package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// calendarBody is the body of a calendar.
func calendarBody(name string, spec map[string]any) map[string]any {
	return map[string]any{"name": name, "spec": spec}
}

// calendarAnswer is a calendar as the API shows it.
type calendarAnswer struct {
	document.Answer
	Spec domain.CalendarSpec `json:"spec"`
}

func chinaDays() map[string]any { return calendarBody("cn", chinaSpec()) }

func chinaSpec() map[string]any {
	return map[string]any{
		"description": "State Council", "zone": "Asia/Shanghai", "weekend": []any{"SAT", "SUN"},
		"holidays":   []any{map[string]any{"date": "2026-10-01", "name": "国庆节"}, map[string]any{"date": "2026-10-02"}},
		"makeUpDays": []any{map[string]any{"date": "2026-10-10", "name": "补班"}},
		"blackouts":  []any{map[string]any{"from": "2026-10-09T00:00:00Z", "to": "2026-10-09T12:00:00Z", "name": "freeze"}},
	}
}

func TestCalendarLifecycle(t *testing.T) {
	var followed []domain.CalendarID
	w := newWorld(t, func(d *Deps) {
		d.FollowCalendar = func(_ context.Context, id domain.CalendarID) { followed = append(followed, id) }
	})
	created := w.call("acme/editor", "POST", "/calendars", chinaDays()).is(201)
	require.Equal(t, `"1"`, created.header.Get("ETag"))
	c := into[calendarAnswer](created)
	require.Equal(t, chinaSpec(), into[map[string]any](created)["spec"])
	w.call("acme/editor", "POST", "/calendars", chinaDays()).problem(409, "conflict")
	w.call("acme/viewer", "POST", "/calendars", chinaDays()).problem(403, "permission_denied")

	path := "/calendars/" + c.ID
	changed := chinaDays()
	changed["spec"].(map[string]any)["holidays"] = []any{map[string]any{"date": "2027-10-01"}}
	w.call("acme/editor", "PUT", path, changed).problem(428, "validation_failed")
	w.call("acme/editor", "PUT", path, changed, header{"If-Match": `"7"`}).problem(412, "revision_mismatch")
	require.Empty(t, followed)
	second := into[calendarAnswer](w.call("acme/editor", "PUT", path, changed, header{"If-Match": `"1"`}).is(200))
	require.Equal(t, int64(2), second.Version)
	require.Equal(t, []domain.CalendarID{mustID[domain.CalendarID](t, c.ID)}, followed, "the jobs that use it are planned anew")

	versions := into[web.Page[calendarAnswer]](w.call("acme/viewer", "GET", path+"/versions", nil).is(200))
	require.Len(t, versions.Items, 2)
	require.Equal(t, "2026-10-01", versions.Items[1].Spec.Holidays[0].Date)
	first := into[calendarAnswer](w.call("acme/viewer", "GET", path+"/versions/1", nil).is(200))
	require.Equal(t, versions.Items[1], first)
	w.call("acme/viewer", "GET", path+"/versions/3", nil).problem(404, "not_found")
	w.call("acme/viewer", "GET", path+"/versions/9223372036854775807", nil).problem(404, "not_found")
	list := into[web.Page[calendarAnswer]](w.call("acme/viewer", "GET", "/calendars", nil).is(200))
	require.Len(t, list.Items, 1)
	require.Equal(t, map[string]any{"holidays": 1.0, "makeUpDays": 1.0, "blackouts": 1.0}, list.Items[0].Status)
	require.Empty(t, list.Items[0].Spec.Holidays, "lists have no days")
	require.Equal(t, c.ID, into[calendarAnswer](w.call("acme/viewer", "GET", "/calendars/cn", nil).is(200)).ID, "by name")
	w.call("acme/editor", "DELETE", path, nil).is(204)
	w.call("acme/viewer", "GET", path, nil).problem(404, "not_found")
	gone := into[web.Page[document.DeletedDocument]](w.call("acme/viewer", "GET", "/deleted-calendars", nil).is(200))
	require.Equal(t, []any{1, c.ID, "cn"}, []any{len(gone.Items), gone.Items[0].ID, gone.Items[0].Name})
	w.call("acme/viewer", "POST", path+"/restore", nil).problem(403, "permission_denied")
	back := into[calendarAnswer](w.call("acme/editor", "POST", path+"/restore", nil).is(200))
	require.Equal(t, []any{int64(3), "2027-10-01"}, []any{back.Version, back.Spec.Holidays[0].Date})
}

func TestCalendarPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"c", "a", "b"} {
		w.call("acme/editor", "POST", "/calendars", calendarBody(name, map[string]any{})).is(201)
	}
	first := into[web.Page[calendarAnswer]](w.call("acme/viewer", "GET", "/calendars?limit=2", nil).is(200))
	require.Equal(t, "b", first.Items[1].Name)
	rest := into[web.Page[calendarAnswer]](w.call("acme/viewer", "GET", "/calendars?limit=2&cursor="+*first.NextCursor, nil).is(200))
	require.Equal(t, "c", rest.Items[0].Name)
	require.Nil(t, rest.NextCursor)
}

func TestJobsWithCalendars(t *testing.T) {
	w := newWorld(t)
	e := w.executor("acme", "shop")
	c := into[calendarAnswer](w.call("acme/editor", "POST", "/calendars", chinaDays()).is(201))
	daily := map[string]any{
		"kind": "cron", "expr": "0 10 * * *", "zone": "Asia/Shanghai",
		"calendars": []any{map[string]any{"name": "cn"}}, "calendarDays": "workdays",
	}
	job := w.job("acme", "daily", e, with("schedule", daily))
	require.Equal(t, []calendar.CalendarRef{{ID: c.ID, Name: "cn", Version: 1}}, job.Schedule.Calendars)
	require.Equal(t, "workdays", job.Schedule.CalendarDays)

	fires := into[NextFires](w.call("acme/viewer", "GET", "/jobs/"+job.ID+"/next-fires?n=4&from=2026-09-30T00:00:00Z", nil).is(200))
	var days []string
	for _, f := range fires.Fires {
		text := f.Zoned[5:10]
		if f.Excluded != "" {
			text = "-" + text
		}
		days = append(days, text)
	}
	// Four that run, and the first four that do not: two holidays, a weekend.
	require.Equal(t, []string{"09-30", "-10-01", "-10-02", "-10-03", "-10-04", "10-05", "10-06", "10-07"}, days)
	require.Contains(t, fires.Fires[1].Excluded, "国庆节")
	require.Equal(t, &Exclusion{
		Calendar: calendar.CalendarRef{ID: c.ID, Name: "cn", Version: 1}, Kind: "holiday", Date: "2026-10-01", Name: "国庆节",
	}, fires.Fires[1].Exclusion)
	require.Equal(t, "weekend", fires.Fires[3].Exclusion.Kind)
	require.Nil(t, fires.Fires[0].Exclusion)
	preview := into[Preview](w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": daily, "n": 4, "from": "2026-09-30T00:00:00Z"}).is(200))
	require.Equal(t, fires.Fires, preview.Fires)

	jobs := into[web.Page[web.Ref]](w.call("acme/viewer", "GET", "/calendars/"+c.ID+"/jobs", nil).is(200))
	require.Equal(t, []web.Ref{{ID: job.ID, Name: "daily"}}, jobs.Items)
	w.call("acme/editor", "DELETE", "/calendars/"+c.ID, nil).problem(409, "conflict")

	sundays := map[string]any{"kind": "cron", "expr": "0 10 * * SUN", "calendars": []any{map[string]any{"id": c.ID}}, "calendarDays": "workdays"}
	never := into[Preview](w.call("acme/viewer", "POST", "/schedules/preview", map[string]any{"schedule": sundays}).is(200))
	require.True(t, never.NeverFires)
	require.True(t, w.job("acme", "sundays", e, with("schedule", sundays)).NeverFires)

	for name, choice := range map[string]any{
		"unknown": map[string]any{"name": "none"}, "nothing": map[string]any{}, "twice": nil,
	} {
		list := []any{choice}
		where := "body.schedule.calendars[0]"
		if name == "twice" {
			list, where = []any{map[string]any{"name": "cn"}, map[string]any{"id": c.ID}}, "body.schedule.calendars[1]"
		}
		p := w.call("acme/editor", "POST", "/jobs", jobBody(name, e, with("schedule", map[string]any{"kind": "none", "calendars": list}))).problem(422, "validation_failed")
		require.Equal(t, where, p.Errors[0].Location)
	}
	w.call("beta/editor", "POST", "/jobs", jobBody("foreign", w.executor("beta", "shop"),
		with("schedule", map[string]any{"kind": "none", "calendars": []any{map[string]any{"id": c.ID}}}))).problem(422, "validation_failed")
}

func TestCalendarMistakes(t *testing.T) {
	w := newWorld(t)
	for at, change := range map[string]map[string]any{
		"body.spec.zone":              {"zone": "Mars/Base"},
		"body.spec.holidays[1]":       {"holidays": []any{map[string]any{"date": "2026-01-01"}, map[string]any{"date": "2026-02-30"}}},
		"body.spec.makeUpDays[0]":     {"makeUpDays": []any{map[string]any{"date": "2026-10-02"}}},
		"body.spec.blackouts[0]":      {"blackouts": []any{map[string]any{"from": "2026-10-02T00:00:00Z", "to": "2026-10-01T00:00:00Z"}}},
		"body.spec.blackouts[0].from": {"blackouts": []any{map[string]any{"from": "now", "to": "2026-10-01T00:00:00Z"}}},
		"body.spec.weekend[0]":        {"weekend": []any{"CAT"}},
	} {
		spec := chinaSpec()
		for k, v := range change {
			spec[k] = v
		}
		p := w.call("acme/editor", "POST", "/calendars", calendarBody("cn", spec)).problem(422, "validation_failed")
		require.Equal(t, at, p.Errors[0].Location)
	}
}

func TestCalendarImport(t *testing.T) {
	w := newWorld(t)
	c := into[calendarAnswer](w.call("acme/editor", "POST", "/calendars", chinaDays()).is(201))
	path := "/calendars/" + c.ID + "/import"
	events := func(lines ...string) string {
		return "BEGIN:VCALENDAR\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VCALENDAR\r\n"
	}
	send := func(body map[string]any) answer {
		return w.call("acme/editor", "POST", path, body, header{"If-Match": "*"})
	}
	file := events(
		"BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261002", "DTEND;VALUE=DATE:20261004", "SUMMARY:国庆节", "X-APPLE-SPECIAL-DAY:WORK-HOLIDAY", "END:VEVENT",
		"BEGIN:VEVENT", "DTSTART;VALUE=DATE:20260920", "SUMMARY:补班", "X-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY", "END:VEVENT",
	)
	added := into[calendarAnswer](send(map[string]any{"ical": file}).is(200))
	require.Equal(t, int64(2), added.Version)
	require.Equal(t, []domain.CalendarDay{{Date: "2026-10-01", Name: "国庆节"}, {Date: "2026-10-02", Name: ""}, {Date: "2026-10-03", Name: "国庆节"}}, added.Spec.Holidays)
	require.Equal(t, []domain.CalendarDay{{Date: "2026-10-10", Name: "补班"}, {Date: "2026-09-20", Name: "补班"}}, added.Spec.MakeUpDays)
	p := send(map[string]any{"ical": file, "as": "holidays"}).problem(422, "validation_failed")
	require.Equal(t, "body.spec.makeUpDays[1]", p.Errors[0].Location, "20 September cannot be both")
	replaced := into[calendarAnswer](send(map[string]any{"ical": file, "replace": true}).is(200))
	require.Equal(t, []domain.CalendarDay{{Date: "2026-10-02", Name: "国庆节"}, {Date: "2026-10-03", Name: "国庆节"}}, replaced.Spec.Holidays)
	require.Equal(t, []domain.CalendarDay{{Date: "2026-09-20", Name: "补班"}}, replaced.Spec.MakeUpDays)

	timed := events("BEGIN:VEVENT", "DTSTART:20261001T080000", "DURATION:PT2H", "SUMMARY:Maintenance", "END:VEVENT")
	windows := into[calendarAnswer](send(map[string]any{"ical": timed, "as": "blackouts"}).is(200))
	require.Equal(t, domain.Blackout{From: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 10, 1, 2, 0, 0, 0, time.UTC), Name: "Maintenance"}, windows.Spec.Blackouts[1], "floating times are the calendar's zone's")

	yearly := events("BEGIN:VEVENT", "DTSTART;VALUE=DATE:20201225", "RRULE:FREQ=YEARLY", "SUMMARY:Christmas", "END:VEVENT")
	days := into[calendarAnswer](send(map[string]any{"ical": yearly, "as": "holidays", "replace": true}).is(200)).Spec.Holidays
	require.Contains(t, days, domain.CalendarDay{Date: strconv.Itoa(time.Now().Year()+5) + "-12-25", Name: "Christmas"}, "each year until ten years from now")
	windows.Version++

	var centuries strings.Builder // which are 2.2 million days
	for year := range 6000 {
		fmt.Fprintf(&centuries, "BEGIN:VEVENT\nDTSTART;VALUE=DATE:%04d0101\nDURATION:P365D\nEND:VEVENT\n", 2000+year)
	}
	for name, body := range map[string]map[string]any{
		"too many days":  {"ical": events(centuries.String()), "as": "holidays", "replace": true},
		"not whole days": {"ical": timed},
		"no calendar":    {"ical": "hello"},
		"one of many":    {"ical": events("BEGIN:VEVENT", "DTSTART;VALUE=DATE:20261001", "RECURRENCE-ID;VALUE=DATE:20261001", "END:VEVENT")},
	} {
		w.run(t, name, func(t *testing.T) {
			p := send(body).problem(422, "validation_failed")
			require.Equal(t, "body.ical", p.Errors[0].Location)
			require.Contains(t, p.Errors[0].Message, "line ")
		})
	}
	require.Equal(t, windows.Version, into[calendarAnswer](w.call("acme/viewer", "GET", "/calendars/"+c.ID, nil).is(200)).Version, "nothing was written")
}
