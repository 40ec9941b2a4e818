package schedule

import (
	"fmt"
	"time"
)

func joinEN(list []string) string { return join(list, ", ", " and ") }

// cronEN is the sentence without its capital: time of day, days, years.
func cronEN(c *Cron) string {
	clock, fixed := clockEN(c.clockTimes())
	text := clock + daysEN(c, fixed)
	if years := c.years; years != nil {
		text += ", " + yearsEN(years.values())
	}
	return text
}

// clockEN says the times of day; fixed tells "at 02:30" from "every hour".
func clockEN(t clockTimes) (text string, fixed bool) {
	most := 4
	if t.minute.kind == shapeSingle && (t.hour.kind == shapeList || t.hour.kind == shapeSingle) && len(t.hour.spans()) == len(t.hour.values) {
		most = 24 // separate hours are best named one by one
	}
	if t.hour.kind != shapeEven || t.minute.kind != shapeSingle {
		if list, ok := t.list(most); ok && (t.hour.kind != shapeRun || t.minute.kind != shapeSingle) {
			return "at " + joinEN(list), true
		}
	}
	if t.second.kind != shapeSingle {
		return secondsEN(t), false
	}
	if t.minute.kind == shapeSingle {
		return hoursEN(t), false
	}
	text, of := stepsEN(t.minute, "minute")
	if t.second.lo != 0 {
		text += fmt.Sprintf(" at second %d", t.second.lo)
	}
	if of {
		text += " of every hour"
	}
	return text + duringEN(t.hour), false
}

// hoursEN is for one minute in several hours: every two hours from 00:30.
func hoursEN(t clockTimes) string {
	m := t.minute.lo
	h := t.hour
	switch h.kind {
	case shapeAll:
		switch {
		case m == 0 && t.second.lo == 0:
			return "every hour"
		case t.second.lo == 0:
			return fmt.Sprintf("at minute %d of every hour", m)
		}
		return fmt.Sprintf("at minute %d, second %d of every hour", m, t.second.lo)
	case shapeEven, shapeStepped:
		return fmt.Sprintf("every %d hours from %s to %s", h.step, t.clock(h.lo, m), t.clock(h.hi, m))
	}
	var runs, single []string
	for _, p := range h.spans() {
		if p.hi-p.lo >= 2 {
			runs = append(runs, fmt.Sprintf("every hour from %s to %s", t.clock(p.lo, m), t.clock(p.hi, m)))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			single = append(single, t.clock(v, m))
		}
	}
	if len(single) > 0 {
		runs = append(runs, "at "+joinEN(single))
	}
	return join(runs, ", ", ", and ")
}

// stepsEN says a field of minutes or seconds. of tells that the words need
// what they are minutes of.
func stepsEN(s shape, unit string) (text string, of bool) {
	switch s.kind {
	case shapeAll:
		return "every " + unit, false
	case shapeEven:
		if s.lo == 0 {
			return fmt.Sprintf("every %d %ss", s.step, unit), false
		}
		return fmt.Sprintf("every %d %ss from %s %d to %d", s.step, unit, unit, s.lo, s.hi), true
	case shapeStepped:
		return fmt.Sprintf("every %d %ss from %s %d to %d", s.step, unit, unit, s.lo, s.hi), true
	case shapeRun:
		return fmt.Sprintf("every %s from %s %d to %d", unit, unit, s.lo, s.hi), true
	case shapeSingle:
		return fmt.Sprintf("at %s %d", unit, s.lo), true
	}
	return fmt.Sprintf("at %ss %s", unit, numbersEN(s)), true
}

// numbersEN writes a list of numbers with its longer runs shortened.
func numbersEN(s shape) string {
	var list []string
	for _, p := range s.spans() {
		if p.hi-p.lo >= 2 {
			list = append(list, fmt.Sprintf("%d to %d", p.lo, p.hi))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			list = append(list, fmt.Sprint(v))
		}
	}
	return joinEN(list)
}

// secondsEN is for several seconds in a minute.
func secondsEN(t clockTimes) string {
	text, of := stepsEN(t.second, "second")
	if t.minute.kind == shapeAll {
		if of {
			text += " of every minute"
		}
		return text + duringEN(t.hour)
	}
	if p := t.minute.spans(); len(p) == 1 && t.hour.kind == shapeSingle {
		if of {
			text += " of every minute"
		}
		return text + fmt.Sprintf(" from %02d:%02d:00 to %02d:%02d:59", t.hour.lo, p[0].lo, t.hour.lo, p[0].hi)
	}
	switch t.minute.kind {
	case shapeSingle:
		text += fmt.Sprintf(" in minute %d", t.minute.lo)
	case shapeEven, shapeStepped:
		text += fmt.Sprintf(" in every %s minute from %d to %d", ordinalEN(t.minute.step), t.minute.lo, t.minute.hi)
	default:
		text += " in minutes " + numbersEN(t.minute)
	}
	return text + " of every hour" + duringEN(t.hour)
}

// duringEN limits intervals to hours.
func duringEN(h shape) string {
	switch h.kind {
	case shapeAll:
		return ""
	case shapeEven, shapeStepped:
		return fmt.Sprintf(" in every %s hour from %02d:00 to %02d:59", ordinalEN(h.step), h.lo, h.hi)
	}
	var list []string
	for _, p := range h.spans() {
		list = append(list, fmt.Sprintf("from %02d:00 to %02d:59", p.lo, p.hi))
	}
	return " " + joinEN(list)
}

// daysEN says the days and months, with the space or comma before them.
func daysEN(c *Cron, fixed bool) string {
	month := shapeOf(uint64(c.month), 1, 12)
	ofMonth, inMonth := " of the month", ""
	if month.kind != shapeAll {
		ofMonth, inMonth = " of "+monthsEN(month, true), " in "+monthsEN(month, false)
		if parts := month.cycle(1, 12); len(parts) == 1 && parts[0].size(12) > 2 {
			inMonth = " from " + monthsEN(month, false)
		}
	}
	d := &c.days
	dom, dow := domEN(d), dowEN(d)
	switch {
	case dom == "" && dow == "":
		if fixed {
			return " every day" + inMonth
		}
		return inMonth
	case dom == "":
		if d.nth > 0 || d.lastDow {
			return " " + dow + ofMonth
		}
		return dow + inMonth
	case dow == "":
		return dom + ofMonth
	case d.mode == dayEither:
		text := dom + " of the month and every " + weekdaysEN(d.dow)
		if inMonth != "" {
			text += "," + inMonth
		}
		return text
	}
	return dom + ofMonth + " if it is a " + join(weekdayNames(d.dow), ", ", " or ")
}

// domEN says the day of the month; "" when it does not matter.
func domEN(d *days) string {
	if d.mode == dayOfWeek || !d.last && d.dom == 1<<32-2 {
		return ""
	}
	const weekday = "weekday (Mon-Fri)"
	before := plural(d.offset, "day") + " before the last day"
	switch {
	case d.last && d.offset == 0 && d.nearest:
		return " on the last " + weekday
	case d.last && d.nearest:
		return " on the " + weekday + " nearest to " + before
	case d.last && d.offset == 0:
		return " on the last day"
	case d.last:
		return ", " + before
	}
	s := shapeOf(uint64(d.dom), 1, 31)
	if d.nearest {
		return " on the " + weekday + " nearest to the " + ordinalEN(s.lo)
	}
	if s.kind == shapeStepped || s.kind == shapeEven {
		return fmt.Sprintf(" on every %s day from the %s to the %s", ordinalEN(s.step), ordinalEN(s.lo), ordinalEN(s.hi))
	}
	var list []string
	for _, p := range s.spans() {
		if p.hi-p.lo >= 2 {
			list = append(list, fmt.Sprintf("%s to %s", ordinalEN(p.lo), ordinalEN(p.hi)))
			continue
		}
		for v := p.lo; v <= p.hi; v++ {
			list = append(list, ordinalEN(v))
		}
	}
	return " on the " + joinEN(list)
}

// dowEN says the day of the week; "" when it does not matter.
func dowEN(d *days) string {
	switch {
	case d.mode == dayOfMonth || d.dow == 1<<7-1 && d.nth == 0 && !d.lastDow:
		return ""
	case d.nth > 0:
		return "on the " + [...]string{"first", "second", "third", "fourth", "fifth"}[d.nth-1] + " " + weekdaysEN(d.dow)
	case d.lastDow:
		return "on the last " + weekdaysEN(d.dow)
	}
	if p := shapeOf(uint64(d.dow), 0, 6).cycle(0, 6); len(p) == 1 && p[0].size(7) > 2 {
		return ", " + weekdaysEN(d.dow)
	}
	return " on " + weekdaysEN(d.dow)
}

// weekdaysEN writes "Monday to Friday" or "Monday and Friday".
func weekdaysEN(dow uint32) string {
	var list []string
	for _, p := range mondayFirst(shapeOf(uint64(dow), 0, 6).cycle(0, 6)) {
		if p.size(7) > 2 {
			list = append(list, fmt.Sprintf("%s to %s", time.Weekday(p.lo), time.Weekday(p.hi)))
			continue
		}
		for i := range p.size(7) {
			list = append(list, time.Weekday((p.lo+i)%7).String())
		}
	}
	return joinEN(list)
}

// mondayFirst moves a part that begins on Sunday to the end of the week.
func mondayFirst(list []span) []span {
	if len(list) > 1 && list[0].lo == 0 {
		return append(append([]span(nil), list[1:]...), list[0])
	}
	return list
}

// weekdayNames lists the days one by one.
func weekdayNames(dow uint32) []string {
	var list []string
	for i := range 7 {
		if day := (i + 1) % 7; dow>>day&1 == 1 {
			list = append(list, time.Weekday(day).String())
		}
	}
	return list
}

// monthsEN writes "January and July"; of makes a run "each month from …".
func monthsEN(s shape, of bool) string {
	parts := s.cycle(1, 12)
	var list []string
	for _, p := range parts {
		size := p.size(12)
		first, last := time.Month(p.lo), time.Month(p.hi)
		switch {
		case size > 2 && of && len(parts) == 1:
			list = append(list, fmt.Sprintf("each month from %s to %s", first, last))
		case size > 2:
			list = append(list, fmt.Sprintf("%s to %s", first, last))
		default:
			for i := range size {
				list = append(list, time.Month((p.lo+i-1)%12+1).String())
			}
		}
	}
	return joinEN(list)
}

// yearsEN writes "in 2027", "from 2027 to 2030", "every 2 years from 2027 to 2099".
func yearsEN(years []int) string {
	lo, hi, step := years[0], years[len(years)-1], evenly(years)
	switch {
	case step == 1 && len(years) > 2:
		return fmt.Sprintf("from %d to %d", lo, hi)
	case step > 1 && len(years) > 3:
		return fmt.Sprintf("every %d years from %d to %d", step, lo, hi)
	}
	var list []string
	for _, y := range years {
		list = append(list, fmt.Sprint(y))
	}
	return "in " + joinEN(list)
}

// ordinalEN writes 1st, 2nd, 3rd, 11th.
func ordinalEN(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}

// explainEN is the sentence for any kind of schedule.
func (s *Schedule) explainEN(m dstMatters) string {
	text, zone := "", " ("+s.loc.String()+")"
	switch r := s.rule.(type) {
	case nil:
		return "never fires by itself"
	case rate:
		text = fmt.Sprintf("every %s, counted from %s%s", everyEN(time.Duration(r.every)*time.Millisecond), s.local(r.anchor), zone)
	case delay:
		text = durationEN(time.Duration(r.every)*time.Millisecond) + " after the previous run has finished"
	case instants:
		text = "once, at " + s.local(r[0]) + zone
		if len(r) > 1 {
			text = fmt.Sprintf("at %d given instants from %s to %s%s", len(r), s.local(r[0]), s.local(r[len(r)-1]), zone)
		}
	case window:
		to := clockText(r.to)
		if r.to > 86400 {
			to = clockText(r.to-86400) + " on the next day"
		}
		text = fmt.Sprintf("every day from %s to %s, every %s%s", clockText(r.from), to, everyEN(time.Duration(r.every)*time.Millisecond), zone)
	case cronRule:
		text = cronEN(r.cron) + zone
	}
	text += s.dstText(dstEN, m)
	if s.start >= 0 {
		text += ", from " + s.local(s.start)
	}
	if s.end < lastInstant {
		text += ", until " + s.local(s.end)
	}
	if s.jitter > 0 {
		text += ", each delayed at random by up to " + durationEN(s.JitterMax())
	}
	return text
}
