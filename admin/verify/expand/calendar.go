package expand

import (
	"fmt"
	"slices"
	"time"
)

// Calendar keeps fire times from running: they are fire times all the same,
// and get a row that says so.
type Calendar struct {
	Zone       string         // whose days are meant; "" = that of the schedule
	Weekend    []time.Weekday // nil = Saturday and Sunday
	Holidays   []string       // "2006-01-02"
	MakeUpDays []string       // working days all the same
	Blackouts  []Blackout
}

// Blackout is From ≤ fire < To.
type Blackout struct{ From, To time.Time }

// loadCalendars loads the calendars' zones, to find out early what is wrong.
func (s *Schedule) loadCalendars() error {
	if !slices.Contains([]string{"", "not_holidays", "workdays", "all"}, s.spec.Days) {
		return fmt.Errorf("%q are no days", s.spec.Days)
	}
	for _, c := range s.spec.Calendars {
		z := s.zone
		if c.Zone != "" {
			var err error
			if z, err = loadZone(c.Zone); err != nil {
				return err
			}
		}
		s.calendarZones = append(s.calendarZones, z)
	}
	return nil
}

// Excluded tells whether a calendar keeps a fire time, in Unix milliseconds,
// from running.
func (s *Schedule) Excluded(ms int64) bool {
	at := time.UnixMilli(ms)
	for i := range s.spec.Calendars {
		c := &s.spec.Calendars[i]
		dark := func(b Blackout) bool { return !at.Before(b.From) && at.Before(b.To) }
		if slices.ContainsFunc(c.Blackouts, dark) || s.spec.Days != "all" && c.free(at.In(s.calendarZones[i].loc), s.spec.Days == "workdays") {
			return true
		}
	}
	return false
}

// free tells whether nobody works on the day of a local time.
func (c *Calendar) free(local time.Time, weekends bool) bool {
	date := local.Format(time.DateOnly)
	switch {
	case slices.Contains(c.MakeUpDays, date):
		return false
	case slices.Contains(c.Holidays, date):
		return true
	case !weekends:
		return false
	case c.Weekend == nil:
		return local.Weekday() == time.Saturday || local.Weekday() == time.Sunday
	}
	return slices.Contains(c.Weekend, local.Weekday())
}
