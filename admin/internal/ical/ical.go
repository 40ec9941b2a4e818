package ical

import (
	"fmt"
	"iter"
	"strings"
	"time"
)

// Limits of a file. Reading costs time in proportion to its length; these bound
// what one property can cost, and what the file becomes in memory.
const (
	MaxEvents     = 6000
	MaxProperties = 100_000  // with those that are passed over, and BEGIN and END
	MaxProperty   = 64 << 10 // bytes of one property, after unfolding
	maxDays       = 366      // of one event
)

// Special is what Apple's holiday calendars say of a day.
type Special string

// The values of X-APPLE-SPECIAL-DAY.
const (
	SpecialNone    Special = ""
	SpecialHoliday Special = "WORK-HOLIDAY"
	SpecialWorkday Special = "ALTERNATE-WORKDAY"
)

// Event is one VEVENT that was not cancelled.
type Event struct {
	Line    int // of its BEGIN, from 1
	Summary string
	// AllDay: From and To are midnights in UTC of dates, To excluded.
	AllDay   bool
	From, To time.Time
	Special  Special
}

// Dates lists the days of an event that is whole days.
func (e *Event) Dates() []string {
	var out []string
	for d := e.From; d.Before(e.To); d = d.AddDate(0, 0, 1) {
		out = append(out, d.Format(time.DateOnly))
	}
	return out
}

// Error says what cannot be read, and where.
type Error struct {
	Line int // from 1
	Msg  string
}

// Error gives "line N: message".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// Parse reads a file. Floating times are meant in zone. Recurring events are
// written out for RecurYears from now. The error is an *Error.
func Parse(text string, zone *time.Location, now time.Time) ([]Event, error) {
	p := parser{zone: zone, now: now, zones: map[string]*time.Location{}, defined: map[string]zoneDefinition{}}
	number := 0
	for l, wrong := range unfold(text) {
		if number++; wrong == nil && number > MaxProperties {
			wrong = &Error{l.number, fmt.Sprintf("there are more than %d properties", MaxProperties)}
		}
		if wrong == nil {
			wrong = p.line(l)
		}
		if wrong != nil {
			return nil, wrong
		}
	}
	switch {
	case !p.calendar:
		return nil, &Error{1, "is no iCalendar file: BEGIN:VCALENDAR is missing"}
	case len(p.open) > 0:
		return nil, &Error{p.last, p.open[len(p.open)-1] + " has no END"}
	}
	return p.events, nil
}

// contentLine is a line after unfolding, with the number of its first one.
type contentLine struct {
	number int
	text   string
}

// unfold joins lines that begin with a space to the one before (RFC 5545, 3.1).
// Each byte is copied twice, however the file is folded. An error is the last
// that it yields.
func unfold(text string) iter.Seq2[contentLine, *Error] {
	return func(yield func(contentLine, *Error) bool) {
		var folded []byte // the property that is being joined
		number := 0       // of its first line; 0 = there is none yet
		rest := strings.TrimPrefix(text, "\ufeff")
		for at := 1; rest != ""; at++ {
			var line string
			line, rest = cutLine(rest)
			switch {
			case line == "":
				continue
			case number > 0 && (line[0] == ' ' || line[0] == '\t'):
				folded = append(folded, line[1:]...)
			default:
				if number > 0 && !yield(contentLine{number, string(folded)}, nil) {
					return
				}
				number, folded = at, append(folded[:0], line...)
			}
			if len(folded) > MaxProperty {
				yield(contentLine{}, &Error{number, fmt.Sprintf("the property %q is longer than %d bytes", shorten(string(folded[:200])), MaxProperty)})
				return
			}
		}
		if number > 0 {
			yield(contentLine{number, string(folded)}, nil)
		}
	}
}

// cutLine returns the first line, without its end, and what follows it.
func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

type parser struct {
	zone     *time.Location
	now      time.Time
	zones    map[string]*time.Location // by TZID; reading one costs a hundred times its lookup
	rules    int                       // RRULEs until here
	calendar bool
	open     []string // components that have begun
	last     int
	defined  map[string]zoneDefinition // VTIMEZONEs by TZID
	defining zoneDefinition            // the one that is being read
	event    *draft                    // the event that is being read
	events   []Event
}

// draft is an event while its properties come in.
type draft struct {
	Event
	recurrence
	start, end value
	duration   time.Duration
	days       int // of the duration
	cancelled  bool
}

// value is a DATE or DATE-TIME.
type value struct {
	at   time.Time // in UTC
	date bool
	zone *time.Location // that it was said in
}

// local is the wall clock that a rule counts by.
func (v value) local() time.Time { return v.at.In(v.zone) }

func (p *parser) line(l contentLine) *Error {
	p.last = l.number
	fail := func(form string, args ...any) *Error { return &Error{l.number, fmt.Sprintf(form, args...)} }
	name, params, text, ok := split(l.text)
	if !ok {
		return fail("%q is no property", shorten(l.text))
	}
	switch name {
	case "BEGIN":
		component := strings.ToUpper(text)
		p.calendar = p.calendar || component == "VCALENDAR"
		p.open = append(p.open, component)
		if component == "VEVENT" {
			if len(p.events) >= MaxEvents {
				return fail("there are more than %d events", MaxEvents)
			}
			p.event = &draft{Event: Event{Line: l.number}}
		}
		if component == "VTIMEZONE" {
			p.defining = zoneDefinition{}
		}
		return nil
	case "END":
		component := strings.ToUpper(text)
		if len(p.open) == 0 || p.open[len(p.open)-1] != component {
			return fail("END:%s closes nothing", shorten(component))
		}
		p.open = p.open[:len(p.open)-1]
		if component == "VEVENT" {
			return p.finish(l.number)
		}
		if component == "VTIMEZONE" && len(p.defined) < maxZones {
			p.defined[p.defining.id] = p.defining
		}
		return nil
	}
	if p.event == nil || p.open[len(p.open)-1] != "VEVENT" {
		p.ofZone(name, text)
		return nil // of the calendar, of a zone or of an alarm
	}
	msg := p.property(name, params, text)
	if msg != "" {
		return fail("%s", msg)
	}
	return nil
}

// property reads what matters of an event; it returns what is wrong, or "".
func (p *parser) property(name string, params map[string]string, text string) (msg string) {
	e := p.event
	switch name {
	case "SUMMARY":
		e.Summary = unescape(text)
	case "STATUS":
		e.cancelled = strings.EqualFold(text, "CANCELLED")
	case "X-APPLE-SPECIAL-DAY":
		e.Special = Special(strings.ToUpper(text))
	case "DTSTART":
		e.start, msg = p.value(params, text)
	case "DTEND":
		e.end, msg = p.value(params, text)
	case "DURATION":
		e.days, e.duration, msg = duration(text)
	case "RRULE", "RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID":
		msg = p.recurs(name, params, text)
	}
	return msg
}

// finish takes over an event that is complete.
func (p *parser) finish(line int) *Error {
	e := p.event
	p.event = nil
	if e.cancelled {
		return nil
	}
	if e.start.at.IsZero() {
		return &Error{e.Line, "the event has no DTSTART"}
	}
	e.AllDay, e.From, e.To = e.start.date, e.start.at, e.end.at
	switch {
	case !e.To.IsZero() && e.end.date != e.AllDay:
		return &Error{line, "DTSTART is a day and DTEND an instant, or the other way round"}
	case e.To.IsZero() && (e.days > 0 || e.duration > 0):
		e.To = e.From.AddDate(0, 0, e.days).Add(e.duration)
	case e.To.IsZero() && e.AllDay:
		e.To = e.From.AddDate(0, 0, 1)
	case e.To.IsZero():
		e.To = e.From
	}
	if e.To.Before(e.From) || e.AllDay && e.To.Equal(e.From) {
		return &Error{line, "the event ends before it begins"}
	}
	if e.AllDay && (e.To.Sub(e.From)%(24*time.Hour) != 0 || e.To.Sub(e.From) > maxDays*24*time.Hour) {
		return &Error{line, fmt.Sprintf("an event of days has 1 to %d whole days", maxDays)}
	}
	if e.rule == "" && len(e.also) == 0 {
		p.events = append(p.events, e.Event)
		return nil
	}
	times, msg := e.times(p.now)
	if msg == "" && len(p.events)+len(times) > MaxEvents {
		msg = fmt.Sprintf("there are more than %d events", MaxEvents)
	}
	if msg != "" {
		return &Error{e.Line, msg}
	}
	length := e.To.Sub(e.From)
	for _, at := range times {
		one := e.Event
		one.From, one.To = at, at.Add(length)
		p.events = append(p.events, one)
	}
	return nil
}

// value reads DTSTART and DTEND.
func (p *parser) value(params map[string]string, text string) (value, string) {
	if strings.EqualFold(params["VALUE"], "DATE") || len(text) == 8 {
		at, err := time.Parse("20060102", text)
		if err != nil {
			return value{}, fmt.Sprintf("%q is no date such as 20261001", shorten(text))
		}
		return value{at, true, time.UTC}, ""
	}
	zone := p.zone
	if id := params["TZID"]; id != "" {
		loc := p.zones[id]
		if loc == nil {
			var msg string
			if loc, msg = p.zoneOf(id); msg != "" {
				return value{}, msg
			}
			p.zones[id] = loc
		}
		zone = loc
	}
	if strings.HasSuffix(text, "Z") {
		text, zone = strings.TrimSuffix(text, "Z"), time.UTC
	}
	at, err := time.ParseInLocation("20060102T150405", text, zone)
	if err != nil {
		return value{}, fmt.Sprintf("%q is no instant such as 20261001T090000Z", shorten(text))
	}
	return value{at.UTC(), false, zone}, ""
}
