package record

import (
	"encoding/json"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// scheduleDocument is the schedule in a stored revision. A field that an older
// release did not know is empty in its rows, and empty means what that release
// did.
type scheduleDocument struct {
	Kind       string        `json:"kind"`
	Expr       string        `json:"expr,omitempty"`
	Dialect    string        `json:"dialect,omitempty"`
	Every      time.Duration `json:"every,omitempty"`
	Anchor     int64         `json:"anchor,omitempty"`
	At         int64         `json:"at,omitempty"`
	Instants   []int64       `json:"instants,omitempty"`
	WindowFrom string        `json:"windowFrom,omitempty"`
	WindowTo   string        `json:"windowTo,omitempty"`
	Zone       string        `json:"zone,omitempty"`
	StartAt    int64         `json:"startAt,omitempty"`
	EndAt      int64         `json:"endAt,omitempty"`
	Gap        string        `json:"gap,omitempty"`
	Overlap    string        `json:"overlap,omitempty"`
	JitterMax  time.Duration `json:"jitterMax,omitempty"`
	Calendars  []useDocument `json:"calendars,omitempty"`
	Days       string        `json:"days,omitempty"`
}

// useDocument names a version of a calendar.
type useDocument struct {
	ID      domain.CalendarID `json:"id"`
	Version int64             `json:"version"`
}

func encodeSchedule(s *domain.ScheduleSpec) scheduleDocument {
	d := scheduleDocument{
		Kind: string(s.Kind), Expr: s.Expr, Dialect: s.Dialect, Every: s.Every,
		Anchor: db.Millis(s.Anchor), At: db.Millis(s.At), WindowFrom: s.WindowFrom, WindowTo: s.WindowTo, Zone: s.Zone,
		StartAt: db.Millis(s.StartAt), EndAt: db.Millis(s.EndAt), Gap: s.Gap, Overlap: s.Overlap, JitterMax: s.JitterMax, Days: s.Days,
	}
	for _, at := range s.Instants {
		d.Instants = append(d.Instants, db.Millis(at))
	}
	for _, u := range s.Calendars {
		d.Calendars = append(d.Calendars, useDocument{u.ID, u.Version})
	}
	return d
}

func (d *scheduleDocument) schedule() domain.ScheduleSpec {
	s := domain.ScheduleSpec{
		Kind: domain.ScheduleKind(d.Kind), Expr: d.Expr, Dialect: d.Dialect, Every: d.Every,
		Anchor: db.Instant(d.Anchor), At: db.Instant(d.At), WindowFrom: d.WindowFrom, WindowTo: d.WindowTo, Zone: d.Zone,
		StartAt: db.Instant(d.StartAt), EndAt: db.Instant(d.EndAt), Gap: d.Gap, Overlap: d.Overlap, JitterMax: d.JitterMax, Days: d.Days,
	}
	for _, at := range d.Instants {
		s.Instants = append(s.Instants, db.Instant(at))
	}
	for _, u := range d.Calendars {
		s.Calendars = append(s.Calendars, domain.CalendarUse{ID: u.ID, Version: u.Version})
	}
	return s
}

// DecodeSchedule reads the schedule of a stored revision, without the contents of calendars. A
// text that cannot be read is a schedule of kind none.
func DecodeSchedule(text []byte) domain.ScheduleSpec {
	var d scheduleDocument
	if err := json.Unmarshal(text, &d); err != nil {
		return domain.ScheduleSpec{Kind: domain.ScheduleNone}
	}
	return d.schedule()
}
