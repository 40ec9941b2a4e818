package schedule

import (
	"fmt"
	"math/bits"
)

// shapeKind is the simplest way to say a set of numbers.
type shapeKind uint8

const (
	shapeAll     shapeKind = iota // every number of the field
	shapeSingle                   // lo
	shapeRun                      // lo to hi without a hole, at least three
	shapeEven                     // lo, lo+step, … through the whole field
	shapeStepped                  // lo, lo+step, … hi, in a part of it
	shapeList                     // anything else
)

// shape describes a field by what it means, not by how it was written, so that
// "0,15,30,45" and "*/15" are explained alike.
type shape struct {
	kind         shapeKind
	lo, hi, step int
	values       []int // all of them, rising
}

// shapeOf finds the shape of a set of numbers within first-last.
func shapeOf(set uint64, first, last int) shape {
	var s shape
	for rest := set; rest != 0; rest &= rest - 1 {
		s.values = append(s.values, bits.TrailingZeros64(rest))
	}
	n := len(s.values)
	s.lo, s.hi, s.step = s.values[0], s.values[n-1], 1
	if n > 1 {
		s.step = s.values[1] - s.lo
	}
	regular := true
	for i := 1; i < n; i++ {
		regular = regular && s.values[i]-s.values[i-1] == s.step
	}
	switch {
	case n == last-first+1:
		s.kind = shapeAll
	case n == 1:
		s.kind = shapeSingle
	case n >= 3 && regular && s.step == 1:
		s.kind = shapeRun
	case regular && (n >= 3 || last == 59) && s.lo-s.step < first && s.hi+s.step > last && (last-first+1)%s.step == 0:
		// Two of 60 are "every 30 minutes"; two hours of a day are two times.
		s.kind = shapeEven
	case n >= 4 && regular:
		s.kind = shapeStepped
	default:
		s.kind = shapeList
	}
	return s
}

// span is a part of a list without a hole.
type span struct{ lo, hi int }

// spans cuts the values into parts without holes.
func (s shape) spans() []span {
	var list []span
	for _, v := range s.values {
		if n := len(list); n > 0 && list[n-1].hi+1 == v {
			list[n-1].hi = v
		} else {
			list = append(list, span{v, v})
		}
	}
	return list
}

// cycle is spans for a field that goes round: the last part runs on into the
// first when they touch (Friday to Monday, November to February).
func (s shape) cycle(first, last int) []span {
	list := s.spans()
	n := len(list)
	if n > 1 && list[0].lo == first && list[n-1].hi == last {
		list[0].lo = list[n-1].lo
		list = append([]span{list[0]}, list[1:n-1]...)
		// The joined part begins last in the week or year; it reads best at the end.
		list = append(list[1:], list[0])
	}
	return list
}

// size counts the values of a span in a field of the given size.
func (p span) size(field int) int { return (p.hi-p.lo+field)%field + 1 }

// clockTimes are a rule's times of day.
type clockTimes struct{ hour, minute, second shape }

func (c *Cron) clockTimes() clockTimes {
	return clockTimes{
		hour:   shapeOf(uint64(c.hour), 0, 23),
		minute: shapeOf(c.minute, 0, 59),
		second: shapeOf(c.second, 0, 59),
	}
}

// list gives all times of day when they are few enough to be named one by one.
func (t clockTimes) list(most int) ([]string, bool) {
	if t.second.kind != shapeSingle || len(t.hour.values)*len(t.minute.values) > most {
		return nil, false
	}
	var out []string
	for _, h := range t.hour.values {
		for _, m := range t.minute.values {
			out = append(out, t.clock(h, m))
		}
	}
	return out, true
}

// clock writes a time of day; seconds only when there are some.
func (t clockTimes) clock(h, m int) string {
	if t.second.lo == 0 {
		return fmt.Sprintf("%02d:%02d", h, m)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, t.second.lo)
}
