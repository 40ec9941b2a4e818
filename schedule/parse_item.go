package schedule

import (
	"fmt"
	"unicode/utf8"
)

// scanner reads one item: the text between two commas, in upper case.
type scanner struct {
	p    *parser
	rule *fieldRule
	text string
	base int // byte offset of text in the expression
	i    int // next byte
}

func (s *scanner) quartz() bool { return s.p.dialect == DialectQuartz }

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return 0
}

// take skips the next byte when it is c.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// item reads the whole text.
func (s *scanner) item() (item, *ParseError) {
	it, err := s.head()
	if err != nil {
		return item{}, err
	}
	if s.i < len(s.text) {
		return item{}, s.leftover(it)
	}
	return it, nil
}

// head reads by the first character.
func (s *scanner) head() (item, *ParseError) {
	switch c := s.peek(); {
	case c == 0:
		return item{}, s.fail(0, 1, CodeMissing, "a value is missing", "remove the extra comma")
	case c == '*':
		s.i++
		return s.stepped(item{kind: itemStar, step: 1})
	case c == '/' && s.quartz():
		return s.stepped(item{kind: itemStar, step: 1}) // Quartz reads /5 as */5
	case c == '?':
		return s.question()
	case c == 'L' && s.special(FieldDayOfMonth):
		return s.lastOfMonth()
	case c == 'L' && s.special(FieldDayOfWeek):
		s.i++
		return item{kind: itemLast, lo: 6, hi: 6, step: 1}, nil // L alone is Saturday
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z':
		return s.value()
	}
	return item{}, s.badCharacter(s.text[s.i:])
}

// special reports whether Quartz's letters count in this field.
func (s *scanner) special(f Field) bool { return s.quartz() && s.rule.field == f }

// question reads ?.
func (s *scanner) question() (item, *ParseError) {
	if s.special(FieldDayOfMonth) || s.special(FieldDayOfWeek) {
		s.i++
		return item{kind: itemAny, step: 1}, nil
	}
	hint := "write *"
	if !s.quartz() && (s.rule.field == FieldDayOfMonth || s.rule.field == FieldDayOfWeek) {
		hint = "write *, or use the quartz dialect, which has 6 or 7 fields beginning with seconds"
	}
	return item{}, s.fail(s.i, 1, CodeNotHere, "? is for the day fields of the quartz dialect", hint)
}

// lastOfMonth reads L, LW, L-3 and L-3W.
func (s *scanner) lastOfMonth() (item, *ParseError) {
	s.i++
	it := item{kind: itemLast, step: 1}
	if s.take('-') {
		at := s.i
		n, err := s.number()
		if err != nil {
			return it, err
		}
		if n > 30 {
			return it, s.fail(at, s.i-at, CodeOutOfRange, fmt.Sprintf("%d is outside 0-30", n), "L-3 is the third day before the last")
		}
		it.lo = n
	}
	if s.take('W') {
		it.kind, it.last = itemNearest, true
	}
	return it, nil
}

// value reads everything that begins with a number or a name.
func (s *scanner) value() (item, *ParseError) {
	named := s.peek() > '9'
	lo, err := s.atom()
	if err != nil {
		return item{}, err
	}
	it := item{kind: itemValue, lo: s.rule.normal(lo), hi: s.rule.normal(lo), step: 1, number: !named}
	switch c := s.peek(); {
	case c == '-':
		return s.rangeTo(it, lo, named)
	case c == '/':
		if named && s.quartz() {
			return s.ignoredStep(it)
		}
		it.kind = itemFrom
		return s.stepped(it)
	case c == 'W' && s.special(FieldDayOfMonth):
		s.i++
		it.kind = itemNearest
	case c == 'L' && s.special(FieldDayOfWeek):
		s.i++
		it.kind = itemLastDow
	case c == '#' && s.special(FieldDayOfWeek):
		return s.nth(it)
	}
	return it, nil
}

// rangeTo reads the end of a range; raw is its start as written.
func (s *scanner) rangeTo(it item, raw int, named bool) (item, *ParseError) {
	s.i++
	endNamed := s.peek() > '9'
	hi, err := s.atom()
	if err != nil {
		return it, err
	}
	if named != endNamed && s.quartz() {
		return it, s.fail(0, s.i, CodeBadRange, "quartz does not mix a name and a number in a range", "write both as names")
	}
	if hi < raw && !s.rule.wrap {
		return it, s.fail(0, s.i, CodeBadRange, fmt.Sprintf("the range ends at %d, before its start %d", hi, raw), "swap the two")
	}
	it.kind, it.hi = itemRange, s.rule.normal(hi)
	if s.rule == &unixDayRule && raw == 0 && hi == 7 {
		it.hi = 6 // 0-7 is the whole week, not Sunday to Sunday
	}
	if s.peek() != '/' {
		return it, nil
	}
	if named && s.quartz() {
		return s.ignoredStep(it)
	}
	return s.stepped(it)
}

// ignoredStep reads a step which Quartz takes no notice of, because it comes
// after a name: MAR/3 is MAR, and MON-FRI/2 is MON-FRI. A warning tells.
func (s *scanner) ignoredStep(it item) (item, *ParseError) {
	_, err := s.stepped(it)
	it.ignored = true
	return it, err
}

// stepped reads an optional /step.
func (s *scanner) stepped(it item) (item, *ParseError) {
	if !s.take('/') {
		return it, nil
	}
	at := s.i
	n, err := s.number()
	if err != nil {
		return it, err
	}
	// Quartz does not bound the step of a range.
	bounded := !s.quartz() || it.kind != itemRange
	switch {
	case n == 0:
		return it, s.fail(at, s.i-at, CodeBadStep, "a step of 0 goes nowhere", "remove the slash, or write a step of at least 1")
	case n > s.rule.maxStep && bounded:
		return it, s.fail(at, s.i-at, CodeBadStep,
			fmt.Sprintf("a step of %d is larger than the field, which is %s", n, s.rule.span()), stepHint(s.rule, n))
	}
	it.step = n
	return it, nil
}

// stepHint explains the commonest wrong step: every 90 minutes.
func stepHint(r *fieldRule, n int) string {
	if r.field == FieldSecond || r.field == FieldMinute {
		return fmt.Sprintf("cron cannot count %d %ss: use a fixed rate", n, r.field.label())
	}
	return fmt.Sprintf("the largest step is %d", r.maxStep)
}

// nth reads #1 to #5.
func (s *scanner) nth(it item) (item, *ParseError) {
	s.i++
	at := s.i
	n, err := s.number()
	if err != nil {
		return it, err
	}
	if n < 1 || n > 5 {
		return it, s.fail(at, s.i-at, CodeOutOfRange, fmt.Sprintf("%d is outside 1-5", n), "6#3 is the third Friday of the month")
	}
	it.kind, it.nth = itemNth, n
	return it, nil
}

// atom reads a number in the field's range, or one of its names.
func (s *scanner) atom() (int, *ParseError) {
	at := s.i
	if c := s.peek(); c >= 'A' && c <= 'Z' {
		return s.name()
	}
	n, err := s.number()
	if err != nil {
		return 0, err
	}
	if n < s.rule.min || n > s.rule.max {
		return 0, s.fail(at, s.i-at, CodeOutOfRange, fmt.Sprintf("%s is outside %s", s.text[at:s.i], s.rule.span()), s.rangeHint(n))
	}
	return n, nil
}

// rangeHint explains the two day numberings, the commonest wrong number.
func (s *scanner) rangeHint(n int) string {
	if s.rule == &quartzDayRule && n == 0 {
		return "in quartz 1 is Sunday and 7 is Saturday; names are safer: SUN"
	}
	if s.rule.field == FieldHour && n == 24 {
		return "midnight is hour 0"
	}
	return ""
}

// name reads letters and finds them among the field's names.
func (s *scanner) name() (int, *ParseError) {
	at := s.i
	for c := s.peek(); c >= 'A' && c <= 'Z'; c = s.peek() {
		s.i++
	}
	word := s.text[at:s.i]
	// FRIL: the last Friday, in Quartz.
	if s.special(FieldDayOfWeek) && len(word) == 4 && word[3] == 'L' {
		if n, ok := s.rule.lookup(word[:3]); ok {
			s.i--
			return n, nil
		}
	}
	if n, ok := s.rule.lookup(word); ok {
		return n, nil
	}
	if word == "L" || word == "W" || word == "LW" {
		return 0, s.fail(at, s.i-at, CodeNotHere, word+" has no meaning here", letterHint(word))
	}
	hint := s.rule.nameHint()
	if len(word) > 3 {
		if _, ok := s.rule.lookup(word[:3]); ok {
			hint = "write " + word[:3]
		}
	}
	return 0, s.fail(at, s.i-at, CodeUnknownName, fmt.Sprintf("%q is no name here", word), hint)
}

// letterHint says where L and W belong.
func letterHint(word string) string {
	if word == "W" {
		return "W follows a day of the month in the quartz dialect: 15W"
	}
	return "L is for the day fields of the quartz dialect"
}

// number reads digits. Numbers past 9999 stay at 9999: out of every range, and
// never an overflow.
func (s *scanner) number() (int, *ParseError) {
	at, n := s.i, 0
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		n = min(n*10+int(c-'0'), 9999)
		s.i++
	}
	if s.i > at {
		return n, nil
	}
	if s.i == len(s.text) {
		return 0, s.fail(at, 1, CodeMissing, "a number is missing", "")
	}
	return 0, s.badCharacter(s.text[at:])
}

// leftover explains text after a complete item.
func (s *scanner) leftover(it item) *ParseError {
	switch c := s.peek(); {
	case c == 'L' || c == 'W' || c == '#':
		return s.fail(s.i, 1, CodeNotHere, fmt.Sprintf("%c has no meaning here", c), s.markHint(c, it))
	case c == '/' && (it.kind == itemLast || it.kind == itemNearest || it.kind == itemNth || it.kind == itemLastDow || it.kind == itemAny):
		return s.fail(s.i, 1, CodeNotHere, "a step has no meaning here", "")
	}
	return s.badCharacter(s.text[s.i:])
}

// markHint says what the letter would need.
func (s *scanner) markHint(c byte, it item) string {
	switch {
	case !s.quartz():
		return "L, W and # belong to the quartz dialect, which has 6 or 7 fields beginning with seconds"
	case it.kind == itemRange:
		return fmt.Sprintf("%c follows one day, not a range", c)
	case c == 'W':
		return "W follows a day of the month: 15W, LW"
	case c == '#':
		return "# follows a day of the week: 6#3 is the third Friday"
	}
	return "L stands alone or follows a day of the week: 6L is the last Friday"
}

// badCharacter reports the first character of rest, which is a suffix of the
// item's text as it stands in the expression.
func (s *scanner) badCharacter(rest string) *ParseError {
	r, size := utf8.DecodeRuneInString(rest)
	hint := ""
	switch {
	case r == '-' || r == '+':
		hint = "a range is written 1-5"
	case r >= 0xff01 && r <= 0xff5e:
		hint = fmt.Sprintf("this is a full-width character: write %c", r-0xfee0)
	case r >= utf8.RuneSelf:
		hint = "only plain ASCII characters are used"
	}
	return s.fail(len(s.text)-len(rest), size, CodeCharacter, fmt.Sprintf("%q has no meaning here", r), hint)
}

// fail places an error in this item.
func (s *scanner) fail(at, n int, code Code, msg, hint string) *ParseError {
	return s.p.fail(s.base+at, n, s.rule.field, code, msg, hint)
}
