package domain

import (
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
	Version   int64
	Spec      CalendarSpec
	CreatedAt time.Time
	UpdatedAt time.Time
	CreatedBy string
	UpdatedBy string
}

// CalendarSpec is what a version holds. Package schedule gives it its meaning.
type CalendarSpec struct {
	Name        string
	Description string
	// Zone is the zone whose days are meant; empty = that of the schedule.
	Zone string
	// Weekend are the weekdays without work; nil = Saturday and Sunday.
	Weekend    []time.Weekday
	Holidays   []CalendarDay
	MakeUpDays []CalendarDay // working days although weekend
	Blackouts  []Blackout
}

// CalendarDay is a date, "2006-01-02", with what people call it.
type CalendarDay struct {
	Date string
	Name string
}

// Blackout is a window in which nothing fires: From ≤ fire < To.
type Blackout struct {
	From time.Time
	To   time.Time
	Name string
}

// CalendarUse is a calendar in a schedule, at the version it is planned with.
type CalendarUse struct {
	ID      CalendarID
	Version int64
	// Content is that version; the store fills it in when it reads a schedule.
	Content *CalendarSpec
}

// CheckCalendar validates the parts that need no schedule engine.
func CheckCalendar(s *CalendarSpec) error {
	var c checker
	c.check(s.Name != "" && len(s.Name) <= MaxNameLength && !strings.ContainsAny(s.Name, "\r\n\t"), "body.name", s.Name, "must have 1 to 128 bytes in one line")
	c.check(len(s.Description) <= 4096, "body.description", nil, "must not exceed 4096 bytes")
	return c.err()
}
