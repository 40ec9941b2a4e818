package verify

import (
	"cmp"
	"slices"
)

// A job's settings are judged as a register is: a call is a write that took
// effect at one instant between its invoke and its ack, or, without an answer,
// at some instant up to a limit or never. So at any instant there is a set of
// values that the register may hold, and where the set has one value it is
// certain.

// write is one call's effect on a register.
type write[V comparable] struct {
	value V
	// from and to bound the instant of the effect. certain: it took effect.
	from, to Time
	certain  bool
}

// span is a time, from its start to that of the next span, in which the
// possible values are the same.
type span[V comparable] struct {
	from   Time
	values []V
}

// possible lists what a register may have held, as spans in order. The first
// span begins at the beginning of time with the initial value.
func possible[V comparable](initial V, writes []write[V]) []span[V] {
	type edge struct {
		at    Time
		index int
		ends  bool // a certain write is over: what came before it is gone
	}
	var edges []edge
	for i, w := range writes {
		edges = append(edges, edge{w.from, i, false})
		if w.certain {
			edges = append(edges, edge{w.to + 1, i, true})
		}
	}
	// At one instant beginnings come first: both values are possible then.
	slices.SortStableFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return boolInt(a.ends) - boolInt(b.ends)
	})
	alive := []write[V]{{value: initial, from: minTime, to: minTime, certain: true}}
	spans := []span[V]{{minTime, []V{initial}}}
	for _, e := range edges {
		w := writes[e.index]
		if e.ends {
			alive = slices.DeleteFunc(alive, func(other write[V]) bool { return other.to < w.from })
		} else {
			alive = append(alive, w)
		}
		var values []V
		for _, other := range alive {
			if !slices.Contains(values, other.value) {
				values = append(values, other.value)
			}
		}
		if last := &spans[len(spans)-1]; last.from == e.at {
			last.values = values
		} else {
			spans = append(spans, span[V]{e.at, values})
		}
	}
	return spans
}

// minTime comes before all instants.
const minTime Time = -1 << 62

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// at finds the span of an instant.
func at[V comparable](spans []span[V], t Time) []V {
	i, found := slices.BinarySearchFunc(spans, t, func(s span[V], t Time) int { return cmp.Compare(s.from, t) })
	if !found {
		i--
	}
	return spans[i].values
}

// throughout returns the one value that a register certainly had at all
// instants from one to another; false if there may have been two.
func throughout[V comparable](spans []span[V], from, to Time) (V, bool) {
	value := at(spans, from)[0]
	for i, s := range spans {
		ended := i+1 < len(spans) && spans[i+1].from <= from
		if ended || s.from > to {
			continue
		}
		if len(s.values) != 1 || s.values[0] != value {
			return value, false
		}
	}
	return value, true
}
