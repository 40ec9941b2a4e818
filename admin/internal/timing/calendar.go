package timing

import (
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/schedule"
)

// CompileCalendar checks a calendar's contents. The error is a
// *schedule.CalendarError.
func CompileCalendar(s *domain.CalendarSpec) (*schedule.Calendar, error) {
	spec := schedule.CalendarSpec{Zone: s.Zone}
	if s.Weekend != nil {
		spec.Weekend = make([]time.Weekday, len(s.Weekend))
		for i, w := range s.Weekend {
			spec.Weekend[i] = time.Weekday(w)
		}
	}
	for _, d := range s.Holidays {
		spec.Holidays = append(spec.Holidays, d.Date)
	}
	for _, d := range s.MakeUpDays {
		spec.MakeUpDays = append(spec.MakeUpDays, d.Date)
	}
	for _, b := range s.Blackouts {
		spec.Blackouts = append(spec.Blackouts, schedule.Blackout{From: b.From, To: b.To})
	}
	return schedule.CompileCalendar(spec)
}

type calendarVersion struct {
	id      domain.CalendarID
	version int64
}

// calendars keeps compiled versions, which never change: thousands of jobs
// share a calendar. Version 0 is none: its contents are not stored yet.
var calendars = func() *lru.Cache[calendarVersion, *schedule.Calendar] {
	c, err := lru.New[calendarVersion, *schedule.Calendar](1024)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return c
}()

func compileCalendars(uses []domain.CalendarUse) ([]*schedule.Calendar, error) {
	var out []*schedule.Calendar
	for _, u := range uses {
		key := calendarVersion{u.ID, u.Version}
		c, ok := calendars.Get(key)
		if !ok {
			if u.Content == nil {
				return nil, fmt.Errorf("calendar %s has no version %d", u.ID, u.Version)
			}
			var err error
			if c, err = CompileCalendar(u.Content); err != nil {
				return nil, fmt.Errorf("calendar %s: %w", u.ID, err)
			}
			if u.Version > 0 {
				calendars.Add(key, c)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// ExcludedText says why a calendar keeps a fire time from running.
func ExcludedText(spec *domain.ScheduleSpec, e schedule.Exclusion) string {
	u := spec.Calendars[e.Calendar]
	text := fmt.Sprintf("the calendar %q (version %d) ", u.Content.Name, u.Version)
	switch e.Kind {
	case schedule.ExcludedHoliday:
		text += "has a holiday on " + e.Date
	case schedule.ExcludedWeekend:
		text += "has a weekend on " + e.Date
	default:
		text += "has a blackout until " + e.To.UTC().Format(time.RFC3339)
	}
	return text + named(ExclusionName(spec, e))
}

// ExclusionName is what the calendar calls the day or the window; "" without a name.
func ExclusionName(spec *domain.ScheduleSpec, e schedule.Exclusion) string {
	content := spec.Calendars[e.Calendar].Content
	switch e.Kind {
	case schedule.ExcludedHoliday:
		return nameOfDay(content.Holidays, e.Date)
	case schedule.ExcludedWeekend:
		return ""
	default:
		return nameOfBlackout(content.Blackouts, e)
	}
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

func nameOfDay(days []domain.CalendarDay, date string) string {
	for _, d := range days {
		if d.Date == date {
			return d.Name
		}
	}
	return ""
}

// nameOfBlackout is the name of one of the windows that an exclusion is made of.
func nameOfBlackout(list []domain.Blackout, e schedule.Exclusion) string {
	for _, b := range list {
		if b.Name != "" && !b.From.After(e.From) && b.To.After(e.From) {
			return b.Name
		}
	}
	return ""
}

// Uncompiled are the calendars of a schedule of which Compile needs the contents.
func Uncompiled(s *domain.ScheduleSpec) (out []*domain.CalendarUse) {
	for i := range s.Calendars {
		u := &s.Calendars[i]
		if u.Content == nil && !calendars.Contains(calendarVersion{u.ID, u.Version}) {
			out = append(out, u)
		}
	}
	return out
}
