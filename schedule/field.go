package schedule

import (
	"fmt"
	"strings"
)

// The years that a Quartz year field may name. Quartz documents 1970-2099.
const (
	minYear = 1970
	maxYear = 2099
)

// fieldRule is what one dialect allows in one field. Fixed after start.
type fieldRule struct {
	field    Field
	min, max int      // what may be written; day of week 0-7 or 1-7 by dialect
	names    []string // words for min, min+1, …; nil when there are none
	wrap     bool     // a range may run over the end of the field: 22-2
	maxStep  int      // largest step after a slash
}

var monthNames = []string{
	"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
}

var (
	secondRule     = fieldRule{FieldSecond, 0, 59, nil, true, 59}
	minuteRule     = fieldRule{FieldMinute, 0, 59, nil, true, 59}
	hourRule       = fieldRule{FieldHour, 0, 23, nil, true, 23}
	dayRuleOfMonth = fieldRule{FieldDayOfMonth, 1, 31, nil, true, 31}
	monthRule      = fieldRule{FieldMonth, 1, 12, monthNames, true, 12}
	unixDayRule    = fieldRule{FieldDayOfWeek, 0, 7, dayNames, true, 7}
	quartzDayRule  = fieldRule{FieldDayOfWeek, 1, 7, dayNames, true, 7}
	// Years neither wrap nor bound their step, as in Quartz.
	yearRule = fieldRule{FieldYear, minYear, maxYear, nil, false, maxYear - minYear}
)

// rules lists the fields of each dialect in the order of writing.
var rules = map[Dialect][]*fieldRule{
	DialectStandard: {&minuteRule, &hourRule, &dayRuleOfMonth, &monthRule, &unixDayRule},
	DialectSeconds:  {&secondRule, &minuteRule, &hourRule, &dayRuleOfMonth, &monthRule, &unixDayRule},
	DialectQuartz:   {&secondRule, &minuteRule, &hourRule, &dayRuleOfMonth, &monthRule, &quartzDayRule, &yearRule},
}

// normal turns a written number into ours: days of week become 0 = Sunday.
func (r *fieldRule) normal(n int) int {
	switch r {
	case &quartzDayRule:
		return n - 1
	case &unixDayRule:
		return n % 7
	}
	return n
}

// bounds are the normalised ends of the field: what normal can return.
func (r *fieldRule) bounds() (lo, hi int) {
	if r.field == FieldDayOfWeek {
		return 0, 6
	}
	return r.min, r.max
}

// lookup finds a name, which must be in upper case, and returns its number as
// it would be written.
func (r *fieldRule) lookup(name string) (int, bool) {
	for i, n := range r.names {
		if n == name {
			return i + r.min, true
		}
	}
	return 0, false
}

// span says the field's range for an error message.
func (r *fieldRule) span() string { return fmt.Sprintf("%d-%d", r.min, r.max) }

// nameHint helps when a word is none of the field's names.
func (r *fieldRule) nameHint() string {
	if r.names == nil {
		return "this field takes numbers " + r.span() + " only"
	}
	return "names are " + strings.Join(r.names, " ")
}

// itemKind tells the parts of a list apart.
type itemKind uint8

const (
	itemStar    itemKind = iota // * or */step
	itemValue                   // one number
	itemFrom                    // lo/step: from lo to the end of the field
	itemRange                   // lo-hi or lo-hi/step; lo > hi wraps
	itemAny                     // ?
	itemLast                    // L, L-offset in day of month (offset in lo); L in day of week (lo = 6)
	itemNearest                 // 15W, LW, L-offsetW in day of month
	itemNth                     // 6#3 in day of week
	itemLastDow                 // 6L in day of week
)

// item is one part of a field between commas. Numbers are normalised.
type item struct {
	kind   itemKind
	lo, hi int  // value, or both ends
	step   int  // 1 unless written
	nth    int  // itemNth: 1-5
	last   bool // itemNearest counted from the last day: lo is the offset

	number  bool // written as a number, not as a name
	ignored bool // a step stood there and was ignored, as Quartz does
	pos, n  int  // place in the expression
}

// expand calls set for each value of a plain item in field order of writing.
func (it item) expand(r *fieldRule, set func(int)) {
	first, last := r.bounds()
	lo, hi := first, last
	switch it.kind {
	case itemValue, itemNth, itemLastDow, itemLast, itemNearest:
		lo, hi = it.lo, it.lo
	case itemFrom:
		lo = it.lo
	case itemRange:
		lo, hi = it.lo, it.hi
	}
	size := last - first + 1
	if hi < lo {
		hi += size
	}
	for v := lo; v <= hi; v += it.step {
		set(first + (v-first)%size)
	}
}

// even reports whether the item repeats through the whole field: *, */15,
// 5/15 or 0-59/15, but neither 5 nor 30-40. Such a minute field makes a rule
// that goes by elapsed time where clocks change (doc.go).
func (it item) even(r *fieldRule) bool {
	first, last := r.bounds()
	lo, hi := first, last
	switch it.kind {
	case itemStar:
	case itemFrom:
		lo = it.lo
	case itemRange:
		if it.hi < it.lo {
			return false
		}
		lo, hi = it.lo, it.hi
	default:
		return false
	}
	return lo-it.step < first && hi+it.step > last
}
