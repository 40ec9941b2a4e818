package executortest

import (
	"fmt"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/schedule"
)

// Calendar is what people keep under a name in the admin, for jobs that name it
// (executor.Calendars).
type Calendar = schedule.CalendarSpec

// Blackout is a time in which nothing fires: From ≤ fire < To.
type Blackout = schedule.Blackout

// Calendar makes a calendar, or replaces it. A fire that it excludes is in Runs as
// excluded, with the kind "calendar". A job that comes to fire while a calendar that
// it names has not been made fails the test.
func (a *Admin) Calendar(name string, c Calendar) {
	a.t.Helper()
	compiled, err := schedule.CompileCalendar(c)
	if err != nil {
		a.t.Fatalf("executortest: calendar %q: %v", name, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calendars[name] = compiled
}

// Fires lists the next fires of a declared job after an instant, at most n of
// them, without running it: for tests of a schedule. Times that calendars
// exclude are not among them; jitter would come on top.
func (a *Admin) Fires(job string, after time.Time, n int) []time.Time {
	a.t.Helper()
	a.Start()
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.jobs[job]
	if j == nil {
		a.t.Fatalf("executortest: no job is called %q", job)
		return nil
	}
	var out []time.Time
	for excluded := 0; j.when != nil && len(out) < n && excluded < 10_000; {
		var ok bool
		if after, ok = j.when.Next(after); !ok {
			break
		}
		if why, _, known := j.excluded(after); !known {
			a.t.Fatalf("executortest: %s", why)
		} else if why != "" {
			excluded++
			continue
		}
		out = append(out, after)
	}
	return out
}

// excluded says by what a fire is excluded, and until when; "" when it is not.
// Unless it is known, why is what the test has to do. mu is held.
func (j *job) excluded(at time.Time) (why string, until time.Time, known bool) {
	for _, name := range j.decl.GetCalendars() {
		c, ok := j.admin.calendars[name]
		if !ok {
			return fmt.Sprintf("job %q fires at %s if the calendar %q lets it, which the test has not made (Admin.Calendar)",
				j.name, at.Format(time.RFC3339), name), at, false
		}
		if e, ok := c.Excludes(at, j.when.Zone(), schedule.DayRule(j.decl.GetCalendarDays())); ok {
			return strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Date)) + " in the calendar " + name, e.To, true
		}
	}
	return "", time.Time{}, true
}
