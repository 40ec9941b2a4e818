// Package calendar answers: which documents are calendars?
package calendar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/schedule"
)

// Kind is the kind of documents that are calendars.
var Kind = resource.Of(resource.Kind{
	Name: "Calendar", Noun: "calendar", Path: "calendars", Versioned: true, Computes: true, Read: domain.PermRead, Edit: domain.PermEdit,
	About: "A calendar has days and windows in which the jobs that use it do not fire.", StatusType: reflect.TypeFor[Status](),
	Notes: resource.Notes{
		Create: "Jobs name it in their schedule; none does at first.",
		Update: "Makes a new version, and a new revision of every job that uses it: fires planned ahead are taken back and planned anew.",
		Delete: "Refused while jobs use it.",
	},
}, resource.Rules[domain.CalendarSpec]{
	Complete: complete,
	Check: func(_ context.Context, d *resource.Draft[domain.CalendarSpec], c *domain.Checker) error {
		Check(&d.Spec, c)
		return nil
	},
	Brief:  func(s *domain.CalendarSpec) { s.Holidays, s.MakeUpDays, s.Blackouts = nil, nil, nil },
	Status: func(d *resource.Document[domain.CalendarSpec]) any { return StatusOf(&d.Spec) },
	Older:  older,
})

// Status counts what lists leave out.
type Status struct {
	Holidays   int `json:"holidays" doc:"Number of its holidays"`
	MakeUpDays int `json:"makeUpDays" doc:"Number of its working days on weekends"`
	Blackouts  int `json:"blackouts" doc:"Number of its windows without fires"`
}

// StatusOf counts.
func StatusOf(s *domain.CalendarSpec) Status {
	return Status{len(s.Holidays), len(s.MakeUpDays), len(s.Blackouts)}
}

func complete(s *domain.CalendarSpec) {
	s.Description = strings.TrimSpace(s.Description)
	for i := range s.Holidays {
		s.Holidays[i].Name = strings.TrimSpace(s.Holidays[i].Name)
	}
	for i := range s.MakeUpDays {
		s.MakeUpDays[i].Name = strings.TrimSpace(s.MakeUpDays[i].Name)
	}
	for i, b := range s.Blackouts {
		s.Blackouts[i] = domain.Blackout{From: b.From.UTC().Truncate(time.Millisecond), To: b.To.UTC().Truncate(time.Millisecond), Name: strings.TrimSpace(b.Name)}
	}
}

// Check adds the wrong fields of a calendar.
func Check(s *domain.CalendarSpec, c *domain.Checker) {
	c.Check(len(s.Description) <= 4096, "body.spec.description", nil, "must not exceed 4096 bytes")
	line := func(list string, i int, name string) {
		c.Check(!domain.HasControl(name), fmt.Sprintf("body.spec.%s[%d].name", list, i), nil, "must not contain control characters or line breaks")
	}
	for i, d := range s.Holidays {
		line("holidays", i, d.Name)
	}
	for i, d := range s.MakeUpDays {
		line("makeUpDays", i, d.Name)
	}
	for i, b := range s.Blackouts {
		line("blackouts", i, b.Name)
	}
	_, err := timing.CompileCalendar(s)
	var wrong *schedule.CalendarError
	if errors.As(err, &wrong) {
		at := "body.spec." + wrong.Field
		if wrong.Index >= 0 {
			at = fmt.Sprintf("%s[%d]", at, wrong.Index)
		}
		c.Check(false, at, nil, wrong.Msg)
	}
}

// older reads a version of before the mechanism of documents: instants are Unix milliseconds.
func older(text []byte) (s domain.CalendarSpec, _ map[string]string, err error) {
	var was struct {
		Description string               `json:"description"`
		Zone        string               `json:"zone"`
		Weekend     *[]int               `json:"weekend"` // 0 = Sunday; absent = the default
		Holidays    []domain.CalendarDay `json:"holidays"`
		MakeUpDays  []domain.CalendarDay `json:"makeUpDays"`
		Blackouts   []struct {
			From int64  `json:"from"`
			To   int64  `json:"to"`
			Name string `json:"name"`
		} `json:"blackouts"`
	}
	if err := json.Unmarshal(text, &was); err != nil {
		return s, nil, err
	}
	s = domain.CalendarSpec{Description: was.Description, Zone: was.Zone, Holidays: was.Holidays, MakeUpDays: was.MakeUpDays}
	if was.Weekend != nil {
		s.Weekend = make([]domain.Weekday, len(*was.Weekend))
		for i, w := range *was.Weekend {
			s.Weekend[i] = domain.Weekday(w)
		}
	}
	for _, b := range was.Blackouts {
		s.Blackouts = append(s.Blackouts, domain.Blackout{From: time.UnixMilli(b.From).UTC(), To: time.UnixMilli(b.To).UTC(), Name: b.Name})
	}
	return s, nil, nil
}

// Of gives a row its type.
func Of(row *resource.Row) (domain.Calendar, error) {
	d, err := resource.Read[domain.CalendarSpec](row)
	if err != nil {
		return domain.Calendar{}, err
	}
	d.Spec.Name = d.Name
	return domain.Calendar{ID: domain.CalendarID(d.ID), TenantID: d.Tenant, Version: d.Version, Spec: d.Spec}, nil
}
