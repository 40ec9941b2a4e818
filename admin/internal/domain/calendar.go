package domain

import (
	"fmt"
	"strings"
	"time"
)

// Calendar is a tenant's list of days and windows that keep schedules from
// firing. Its contents are versions, which never change: a job revision names
// the versions it is planned with, and an edit of a calendar is an edit of the
// jobs that use it (docs/adr/0008).
type Calendar struct {
	ID       CalendarID
	TenantID TenantID
	// Version grows by one with each edit of Spec.
	Version int64
	Spec    CalendarSpec
}

// CalendarSpec is what a version holds. Package schedule gives it its meaning.
type CalendarSpec struct {
	// Name is that of the calendar at this version.
	Name        string `json:"-"`
	Description string `json:"description,omitempty" maxLength:"4096" doc:"Purpose of the calendar, for people"`
	Zone        string `json:"zone,omitempty" maxLength:"64" doc:"Zone of its days; default: that of the schedule"`
	// Weekend are the weekdays without work; nil = Saturday and Sunday.
	Weekend    []Weekday     `json:"weekend,omitzero" maxItems:"7" enum:"MON,TUE,WED,THU,FRI,SAT,SUN" doc:"Weekdays without work; default SAT and SUN"`
	Holidays   []CalendarDay `json:"holidays,omitempty" maxItems:"5000" doc:"Days on which jobs that use it do not fire"`
	MakeUpDays []CalendarDay `json:"makeUpDays,omitempty" maxItems:"5000" doc:"Working days although weekend"`
	Blackouts  []Blackout    `json:"blackouts,omitempty" maxItems:"1000" doc:"Windows in which nothing fires"`
}

// CalendarDay is a date, "2006-01-02", with what people call it.
type CalendarDay struct {
	Date string `json:"date" maxLength:"10" example:"2026-10-01" doc:"The day, YYYY-MM-DD in the calendar's zone"`
	Name string `json:"name,omitempty" maxLength:"200" doc:"Name of the day, for people"`
}

// Blackout is a window in which nothing fires: From ≤ fire < To.
type Blackout struct {
	From time.Time `json:"from" doc:"Begin of the window, included"`
	To   time.Time `json:"to" doc:"End of the window, not included"`
	Name string    `json:"name,omitempty" maxLength:"200" doc:"Purpose of the window; empty: not said"`
}

// Weekday is a day of the week. Its text has three letters, such as MON.
type Weekday time.Weekday

// MarshalText gives the three letters.
func (w Weekday) MarshalText() ([]byte, error) {
	return []byte(strings.ToUpper(time.Weekday(w).String()[:3])), nil
}

// UnmarshalText reads three letters.
func (w *Weekday) UnmarshalText(text []byte) error {
	for day := range Weekday(7) {
		if name, _ := day.MarshalText(); string(name) == string(text) {
			*w = day
			return nil
		}
	}
	return fmt.Errorf("%q is no weekday: use MON, TUE, WED, THU, FRI, SAT or SUN", text)
}

// CalendarUse is a calendar in a schedule, at the version it is planned with.
type CalendarUse struct {
	ID      CalendarID
	Version int64
	// Content is that version; the store fills it in when it reads a schedule.
	Content *CalendarSpec
}
