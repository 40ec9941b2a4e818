package schedule

import (
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
)

// robfig is the parser of robfig/cron for five fields and descriptors. It reads
// them first; our own reads what it refuses, or tells what is wrong there.
var robfig = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// standard reads an expression of the standard dialect by robfig's parser. It
// returns nil where that parser refuses it (ranges over the end of a field, 7 for
// Sunday, all mistakes), or where its bits alone do not say what we mean.
//
// How an expression is written counts for days (crontab(5): */2 is not
// restricted; to robfig it is) and for minutes (doc.go, "Clock changes"), so this
// is taken from the text.
func (p *parser) standard() *Cron {
	if len(p.tokens) != len(rules[DialectStandard]) {
		return nil
	}
	var w writing
	var star [5]bool // the field's text begins with *
	for i, rule := range rules[DialectStandard] {
		text := p.tokens[i].text
		star[i] = text[0] == '*'
		if !rule.agreed(text, &w) {
			return nil
		}
	}
	read, err := robfig.Parse(p.expr)
	if err != nil {
		return nil
	}
	c := p.fromRobfig(read.(*cron.SpecSchedule), star[2] || star[4])
	if c.minute == 1<<60-1 && !w.evenMinutes {
		return nil // whether one range or many parts make the hour full
	}
	return c.complete(w)
}

// fromRobfig takes over the bits of robfig's parser; starDay says that a day
// field does not count as restricted.
func (p *parser) fromRobfig(s *cron.SpecSchedule, starDay bool) *Cron {
	const values = 1<<60 - 1 // without robfig's mark for *
	c := &Cron{expr: p.expr, dialect: p.dialect, second: 1}
	c.minute, c.hour, c.month = s.Minute&values, uint32(s.Hour&values), uint16(s.Month&values)
	c.days = days{mode: dayEither, dom: uint32(s.Dom & values), dow: uint32(s.Dow & values)}
	if starDay {
		c.days.mode = dayBoth
	}
	return c
}

// agreed reports whether robfig's parser takes a field's text in our meaning, or
// refuses it. It would also take ?, a sign, an empty part of a list, *-5, and a
// step beyond the field.
func (r *fieldRule) agreed(text string, w *writing) bool {
	clock := r.field == FieldMinute || r.field == FieldHour
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		n := 1
		if stepped {
			var err error
			if n, err = strconv.Atoi(step); err != nil || step[0] == '+' || n > r.maxStep || clock && span != "*" {
				return false
			}
		}
		if span == "*" {
			w.evenMinutes = w.evenMinutes || r.field == FieldMinute
			w.uneven = w.uneven || clock && n > 1 && (r.max+1)%n != 0
		} else if span == "" || strings.ContainsFunc(span, func(c rune) bool { return c != '-' && !isAlphanumeric(c) }) {
			return false
		}
	}
	return true
}

func isAlphanumeric(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
