package executortest

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Calendar is what people keep under a name in the admin, for jobs that name it
// (executor.Calendars). Days are dates as "2006-01-02".
type Calendar struct {
	Zone       string         // IANA name of the zone whose days are meant; "" = the job's
	Weekend    []time.Weekday // days without work; nil = Saturday and Sunday
	Holidays   []string
	MakeUpDays []string // days of work although weekend or holiday
	Blackouts  []Blackout
}

// Blackout is a time in which nothing fires: From ≤ fire < To.
type Blackout struct{ From, To time.Time }

// Calendar makes a calendar, or replaces it. A fire that it excludes is in Runs as
// excluded, with the kind "calendar". A job that comes to fire while a calendar that
// it names has not been made fails the test.
func (a *Admin) Calendar(name string, c Calendar) {
	a.t.Helper()
	for _, day := range append(slices.Clone(c.Holidays), c.MakeUpDays...) {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			a.t.Fatalf("executortest: calendar %q: %q is no date such as 2026-10-01", name, day)
		}
	}
	if _, err := time.LoadLocation(c.Zone); err != nil {
		a.t.Fatalf("executortest: calendar %q: %v", name, err)
	}
	if c.Weekend == nil {
		c.Weekend = []time.Weekday{time.Saturday, time.Sunday}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calendars == nil {
		a.calendars = map[string]Calendar{}
	}
	a.calendars[name] = c
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
	for excluded := 0; j.next != nil && len(out) < n && excluded < 10_000; {
		if after = j.next(after); after.IsZero() {
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
		zone := c.Zone
		if zone == "" {
			zone = j.decl.GetZone()
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return err.Error(), at, false // the job was refused for it before
		}
		if why, until := c.excludes(at.In(loc), executor.CalendarDays(j.decl.GetCalendarDays())); why != "" {
			return why + " in the calendar " + name, until, true
		}
	}
	return "", time.Time{}, true
}

func (c Calendar) excludes(at time.Time, rule executor.CalendarDays) (why string, until time.Time) {
	for _, b := range c.Blackouts {
		if !at.Before(b.From) && at.Before(b.To) {
			return "blackout", b.To
		}
	}
	day := at.Format(time.DateOnly)
	tomorrow := time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, at.Location())
	switch {
	case rule == executor.AllDays, slices.Contains(c.MakeUpDays, day):
		return "", time.Time{}
	case slices.Contains(c.Holidays, day):
		return "holiday " + day, tomorrow
	case rule == executor.Workdays && slices.Contains(c.Weekend, at.Weekday()):
		return "weekend " + day, tomorrow
	}
	return "", time.Time{}
}

// jitter is how much later than its fire time a run starts. As with the admin it
// depends on the job and the fire time only, and is another number.
func (j *job) jitter(at time.Time) time.Duration {
	most := j.decl.GetJitterMs()
	if most == 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprint(h, j.name, at.UnixMilli())
	return time.Duration(h.Sum64()%uint64(most+1)) * time.Millisecond
}
