package ical

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Bounds of recurring events.
const (
	// RecurYears: an event is written out so many years after now, whether its
	// rule ends or not; the next import goes on from there.
	RecurYears = 10
	// keptYears: what was over so long ago is left out of it.
	keptYears = 1
	maxTimes  = 1000 // of one event
	// maxInterval keeps the library's sums far from where they overflow.
	maxInterval = 1000
	// maxRules of a file. What a rule can cost is bounded by the years that
	// the library counts to, so their number bounds what a file can cost.
	maxRules = 100
	// maxRule is the bytes of one: its lists (BYMONTHDAY, BYSETPOS) are gone
	// through for each day or period that the library looks at.
	maxRule   = 500
	firstYear = 1970
)

// recurrence is what an event says about when it comes again.
type recurrence struct {
	rule          string
	also, excepts []value // RDATE, EXDATE
}

// recurs reads one of its properties.
func (p *parser) recurs(name string, params map[string]string, text string) string {
	r := &p.event.recurrence
	switch name {
	case "RRULE":
		if r.rule != "" {
			return "a second RRULE: an event has one at most"
		}
		if p.rules++; p.rules > maxRules {
			return fmt.Sprintf("RRULE: a file has at most %d of them", maxRules)
		}
		if len(text) > maxRule {
			return fmt.Sprintf("RRULE: is longer than %d bytes", maxRule)
		}
		r.rule = text
		return ""
	case "RDATE", "EXDATE":
		var all []value
		for one := range strings.SplitSeq(text, ",") {
			if len(all) >= maxTimes {
				return tooManyTimes(name)
			}
			v, msg := p.value(params, one)
			if msg != "" {
				return name + ": " + msg
			}
			all = append(all, v)
		}
		if name == "RDATE" {
			r.also = append(r.also, all...)
		} else {
			r.excepts = append(r.excepts, all...)
		}
		if len(r.also) > maxTimes || len(r.excepts) > maxTimes {
			return tooManyTimes(name)
		}
		return ""
	}
	return name + ": changed occurrences and rules of exceptions cannot be imported; leave the occurrence out by EXDATE and write it as an event of its own"
}

func tooManyTimes(name string) string {
	return fmt.Sprintf("%s: an event has at most %d of them", name, maxTimes)
}

// times lists when the event begins, from its DTSTART on, in order.
func (e *draft) times(now time.Time) ([]time.Time, string) {
	for _, v := range append(e.also, e.excepts...) {
		if v.date != e.start.date {
			return nil, "RDATE and EXDATE have to be days where DTSTART is one, and instants where it is one"
		}
	}
	all := []time.Time{e.start.at} // the first, also where the rule would not say so
	for _, v := range e.also {
		all = append(all, v.at)
	}
	last := now.AddDate(RecurYears, 0, 0)
	if e.rule != "" {
		rule, msg := e.compile(last)
		if msg != "" {
			return nil, msg
		}
		for next := rule.Iterator(); ; {
			at, ok := next()
			if !ok {
				break
			}
			all = append(all, wall(at, -e.cycles(), e.start.zone).UTC())
		}
	}
	excepted := map[int64]bool{}
	for _, v := range e.excepts {
		excepted[v.at.Unix()] = true
	}
	slices.SortFunc(all, time.Time.Compare)
	all = slices.DeleteFunc(slices.CompactFunc(all, time.Time.Equal), func(at time.Time) bool {
		over := e.rule != "" && at.Before(now.AddDate(-keptYears, 0, 0))
		return over || excepted[at.Unix()]
	})
	if len(all) > maxTimes {
		return nil, fmt.Sprintf("the event comes more than %d times until %s", maxTimes, last.Format(time.DateOnly))
	}
	return all, ""
}

// The library counts on to the year 9999 for a rule that never fits. Days of
// the week, and so all rules, repeat every 400 years: counting begins as late as
// that allows, which costs a twentieth.
const cycle, lastYear = 400, 9999

// cycles is how much later the library counts, in years; a cycle is left for
// what lies after the first time.
func (e *draft) cycles() int { return (lastYear - cycle - e.start.local().Year()) / cycle * cycle }

// wall is what the clock shows, so many years later, in a zone.
func wall(t time.Time, years int, zone *time.Location) time.Time {
	return time.Date(t.Year()+years, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone)
}

// compile reads the rule; it ends at last at the latest. Its times are what
// clocks show, with the zone left out, and cycles later.
func (e *draft) compile(last time.Time) (*rrule.RRule, string) {
	first := e.start.local()
	if first.Year() < firstYear || first.After(last) {
		return nil, fmt.Sprintf("a recurring event has to begin between the year %d and %s", firstYear, last.Format(time.DateOnly))
	}
	option, err := rrule.StrToROptionInLocation(e.rule, first.Location())
	if err != nil {
		return nil, fmt.Sprintf("RRULE:%s: %s", shorten(e.rule), err)
	}
	switch {
	case option.Freq > rrule.DAILY || len(option.Byhour)+len(option.Byminute)+len(option.Bysecond)+len(option.Byeaster) > 0:
		return nil, "RRULE: only FREQ=YEARLY, MONTHLY, WEEKLY and DAILY without hours, minutes, seconds and Easter can be imported"
	case option.Interval < 0 || option.Interval > maxInterval || option.Count < 0:
		return nil, fmt.Sprintf("RRULE: INTERVAL is from 1 to %d, and COUNT not negative", maxInterval)
	}
	if until, date := untilOf(e.rule); date {
		option.Until = wall(until.Add(24*time.Hour-time.Second), 0, first.Location()) // the whole of that day
	}
	if option.Until.IsZero() || option.Until.After(last) {
		option.Until = last
	}
	option.Dtstart = wall(first, e.cycles(), time.UTC)
	option.Until = wall(option.Until.In(first.Location()), e.cycles(), time.UTC)
	rule, err := rrule.NewRRule(*option)
	if err != nil {
		return nil, fmt.Sprintf("RRULE:%s: %s", shorten(e.rule), err)
	}
	return rule, ""
}

// untilOf tells an UNTIL that is a day from one that is an instant.
func untilOf(rule string) (day time.Time, isDay bool) {
	for part := range strings.SplitSeq(strings.ToUpper(rule), ";") {
		if text, ok := strings.CutPrefix(part, "UNTIL="); ok && len(text) == 8 {
			day, err := time.Parse("20060102", text)
			return day, err == nil
		}
	}
	return time.Time{}, false
}
