package expand

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// field is a set of numbers: what one field of an expression allows.
type field struct {
	lo  int
	set []bool // from lo on
	all bool   // the field is *
	// through: one of its parts steps through the whole field, from before its
	// first step to past its last: *, */15, 5/20.
	through bool
}

func (f field) has(n int) bool { return n >= f.lo && n-f.lo < len(f.set) && f.set[n-f.lo] }

// fieldKind is what a field may hold.
type fieldKind struct {
	name   string
	lo, hi int
	words  []string // for lo, lo+1, …
	wraps  bool
}

var (
	weekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}
	months   = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}

	// By the place in seven fields.
	kinds = []fieldKind{
		{"second", 0, 59, nil, true}, {"minute", 0, 59, nil, true}, {"hour", 0, 23, nil, true},
		{"day of month", 1, 31, nil, true}, {"month", 1, 12, months, true}, {}, {"year", 1970, 2099, nil, false},
	}
	unixWeek   = fieldKind{"day of week", 0, 6, weekdays, true}
	quartzWeek = fieldKind{"day of week", 1, 7, weekdays, true}
)

// readField reads a list of plain parts.
func readField(text string, k fieldKind, quartz bool) (field, error) {
	f := field{lo: k.lo, set: make([]bool, k.hi-k.lo+1), all: text == "*"}
	for _, part := range strings.Split(text, ",") {
		if err := f.add(part, k, quartz); err != nil {
			return field{}, fmt.Errorf("%s %q: %w", k.name, text, err)
		}
	}
	return f, nil
}

// add reads one part: *, 5, 5-9, each with or without /step.
func (f *field) add(part string, k fieldKind, quartz bool) error {
	body, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var err error
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return fmt.Errorf("step %q", stepText)
		}
	}
	from, to, plain := k.lo, k.hi, false
	if body != "*" && (body != "" || !quartz || !stepped) { // quartz writes */5 as /5, too
		first, second, isRange := strings.Cut(body, "-")
		a, named, err := k.number(first)
		if err != nil {
			return err
		}
		from = a
		switch {
		case isRange:
			if to, _, err = k.number(second); err != nil {
				return err
			}
			if k.isUnixWeek() && a == 0 && first != "7" && second == "7" {
				to = 6 // the whole week
			}
		case !stepped || named && quartz:
			to, plain = a, true
		}
		if named && quartz {
			step = 1 // Quartz overlooks a step after a name
		}
	}
	if to < from && !k.wraps {
		return fmt.Errorf("%d is after %d", from, to)
	}
	f.through = f.through || !plain && from <= to && from-step < k.lo && to+step > k.hi
	size := k.hi - k.lo + 1
	if to < from {
		to += size
	}
	for n := from; n <= to; n += step {
		f.set[(n-k.lo)%size] = true
	}
	return nil
}

func (k fieldKind) isUnixWeek() bool { return k.words != nil && k.lo == 0 }

// number reads a number or a name.
func (k fieldKind) number(text string) (n int, named bool, err error) {
	if i := slices.Index(k.words, text); i >= 0 {
		return k.lo + i, true, nil
	}
	n, err = strconv.Atoi(text)
	if err == nil && k.isUnixWeek() && n == 7 {
		n = 0
	}
	if err != nil || n < k.lo || n > k.hi {
		return 0, false, fmt.Errorf("%q is not in %d-%d", text, k.lo, k.hi)
	}
	return n, false, nil
}
