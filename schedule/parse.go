package schedule

import (
	"fmt"
	"strings"
)

// MaxExprLen is the longest expression that Parse reads, in bytes. The longest
// sensible one, all values of all fields spelled out, is below it.
const MaxExprLen = 1024

// Parse reads a cron expression. The error is always a *ParseError. An
// expression that can never fire (31 February) is valid: see Cron.Never.
//
// Descriptors (@yearly, @annually, @monthly, @weekly, @daily, @midnight,
// @hourly and "@every 1h30m") are read in every dialect but DialectQuartz.
func Parse(expr string, dialect Dialect) (*Cron, error) {
	p := &parser{expr: expr, tokens: split(expr)}
	c, err := p.parse(dialect)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// parser holds one expression while it is read.
type parser struct {
	expr    string
	tokens  []token
	dialect Dialect // resolved, never Auto
}

// parse returns *ParseError as its own type so that no other can slip in.
func (p *parser) parse(dialect Dialect) (*Cron, *ParseError) {
	if err := p.check(dialect); err != nil {
		return nil, err
	}
	auto := dialect == "" || dialect == DialectAuto
	if auto {
		dialect = Detect(p.expr)
	}
	p.dialect = dialect
	if p.tokens[0].text[0] == '@' {
		return p.descriptor()
	}
	if dialect == DialectStandard {
		if c := p.standard(); c != nil {
			return c, nil
		}
	}
	return p.own(auto)
}

// own reads fields of all dialects by our parser.
func (p *parser) own(auto bool) (*Cron, *ParseError) {
	if err := p.countFields(auto); err != nil {
		return nil, err
	}
	var fields fieldSet
	for i, t := range p.tokens {
		rule := rules[p.dialect][i]
		items, err := p.field(rule, t)
		if err != nil {
			return nil, err
		}
		fields.put(rule, t, items)
	}
	if err := p.checkDays(&fields); err != nil {
		return nil, err
	}
	return newCron(p.expr, p.dialect, auto, &fields), nil
}

// check refuses what no dialect reads.
func (p *parser) check(dialect Dialect) *ParseError {
	switch {
	case !dialect.Valid():
		return p.fail(0, len(p.expr), FieldNone, CodeDialect,
			fmt.Sprintf("%q is no dialect", string(dialect)), "use auto, standard, seconds or quartz")
	case len(p.expr) > MaxExprLen:
		return p.fail(MaxExprLen, len(p.expr)-MaxExprLen, FieldNone, CodeTooLong,
			fmt.Sprintf("the expression has %d bytes, more than %d", len(p.expr), MaxExprLen),
			"use ranges and steps instead of long lists")
	case len(p.tokens) == 0:
		return p.fail(0, len(p.expr), FieldNone, CodeEmpty, "the expression is empty",
			`for example "0 2 * * *", every day at 02:00`)
	}
	upper := strings.ToUpper(p.tokens[0].text)
	if strings.HasPrefix(upper, "TZ=") || strings.HasPrefix(upper, "CRON_TZ=") {
		t := p.tokens[0]
		return p.fail(t.pos, len(t.text), FieldNone, CodeNotHere, "the time zone does not belong to the expression",
			"remove it and set the schedule's zone")
	}
	return nil
}

// countFields compares the number of fields with the dialect's.
func (p *parser) countFields(auto bool) *ParseError {
	want := len(rules[p.dialect])
	got := len(p.tokens)
	least, words := want, fmt.Sprint(want)
	switch {
	case p.dialect == DialectQuartz:
		least, words = want-1, "6 or 7"
	case auto:
		words = "5, 6 or 7" // fewer than five: Detect settled for standard
	}
	if got >= least && got <= want {
		return nil
	}
	msg := fmt.Sprintf("found %s, the %s dialect has %s", plural(got, "field"), p.dialect, words)
	if auto {
		msg = fmt.Sprintf("found %s, an expression has %s", plural(got, "field"), words)
	}
	hint := p.fieldHint(got)
	if got > want {
		t, end := p.tokens[want], p.tokens[got-1]
		return p.fail(t.pos, end.pos+len(end.text)-t.pos, FieldNone, CodeFieldCount, msg, hint)
	}
	return p.fail(len(p.expr), 1, rules[p.dialect][got].field, CodeFieldCount, msg, hint)
}

// fieldHint names the dialect that has as many fields as were found.
func (p *parser) fieldHint(got int) string {
	switch {
	case got == 5 && p.dialect == DialectQuartz:
		return "quartz begins with seconds: put 0 in front"
	case got == 5:
		return "5 fields are the standard dialect: minute hour day-of-month month day-of-week"
	case got == 6 && hasQuartzMark(p.tokens), got == 7:
		return "7 fields, or 6 with ?, are the quartz dialect"
	case got == 6:
		return "6 fields are the seconds dialect: second minute hour day-of-month month day-of-week"
	}
	return "standard: minute hour day-of-month month day-of-week; seconds and quartz: second first; quartz: year last"
}

// field reads one field: a list of items.
func (p *parser) field(rule *fieldRule, t token) ([]item, *ParseError) {
	var items []item
	for start := 0; start <= len(t.text); {
		end := strings.IndexByte(t.text[start:], ',')
		if end < 0 {
			end = len(t.text)
		} else {
			end += start
		}
		s := &scanner{p: p, rule: rule, text: upper(t.text[start:end]), base: t.pos + start}
		it, err := s.item()
		if err != nil {
			return nil, err
		}
		it.pos, it.n = s.base, len(s.text)
		items = append(items, it)
		start = end + 1
	}
	if len(items) > 1 {
		if err := p.checkList(rule, t, items); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// checkList refuses lists whose parts exclude each other, as Quartz does.
func (p *parser) checkList(rule *fieldRule, t token, items []item) *ParseError {
	nths := 0
	for _, it := range items {
		var msg string
		switch it.kind {
		case itemAny:
			msg = "? stands alone in its field"
		case itemLast, itemLastDow:
			msg = "L cannot be part of a list"
		case itemNearest:
			if it.last {
				msg = "L cannot be part of a list"
			}
		case itemNth:
			if nths++; nths > 1 {
				msg = "only one # is possible in a list"
			}
		}
		if msg != "" {
			return p.fail(it.pos, it.n, rule.field, CodeCombination, msg, "make a second job for the other days")
		}
	}
	return nil
}

// checkDays demands exactly one ? from Quartz expressions, as Quartz does.
func (p *parser) checkDays(f *fieldSet) *ParseError {
	if p.dialect != DialectQuartz {
		return nil
	}
	dom, dow := f.items[FieldDayOfMonth], f.items[FieldDayOfWeek]
	anyDom, anyDow := dom[0].kind == itemAny, dow[0].kind == itemAny
	t := p.tokens[5]
	switch {
	case anyDom && anyDow:
		return p.fail(t.pos, len(t.text), FieldDayOfWeek, CodeCombination,
			"? is possible in day-of-month or in day-of-week, not in both", "write * in one of the two")
	case !anyDom && !anyDow:
		return p.fail(t.pos, len(t.text), FieldDayOfWeek, CodeCombination,
			"quartz cannot combine day-of-month and day-of-week",
			"write ? in the one that does not matter, or use the seconds dialect")
	}
	return nil
}

// fail builds the error; Pos and Len stay inside the expression or just at its end.
func (p *parser) fail(pos, n int, f Field, code Code, msg, hint string) *ParseError {
	pos = min(pos, len(p.expr))
	return &ParseError{Expr: p.expr, Pos: pos, Len: max(n, 1), Field: f, Code: code, Msg: msg, Hint: hint}
}

// upper changes ASCII letters only: strings.ToUpper can change the length of
// other text, and with it the positions.
func upper(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// plural writes a count with its English noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// fieldSet is a read expression before it becomes bits.
type fieldSet struct {
	items map[Field][]item
	star  map[Field]bool // the field's text begins with *
	rule  map[Field]*fieldRule
}

func (f *fieldSet) put(r *fieldRule, t token, items []item) {
	if f.items == nil {
		f.items, f.star, f.rule = map[Field][]item{}, map[Field]bool{}, map[Field]*fieldRule{}
	}
	f.items[r.field], f.star[r.field], f.rule[r.field] = items, t.text[0] == '*', r
}
