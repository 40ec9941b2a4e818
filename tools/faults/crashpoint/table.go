package crashpoint

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// Cell is the outcome of one combination.
type Cell struct {
	Database string        `json:"database"`
	Arrow    string        `json:"arrow"` // of the state machine, or what breaks beside it
	Point    string        `json:"point"` // failpoint
	Mode     string        `json:"mode"`
	Passed   bool          `json:"passed"`
	Outcome  string        `json:"outcome"` // what was seen
	Reason   string        `json:"reason,omitempty"`
	Delay    time.Duration `json:"delay"`
	Goal     time.Duration `json:"goal"`           // for Delay; 0 = none
	Late     bool          `json:"late,omitempty"` // and all else was right
	Plays    int           `json:"plays"`          // more than 1: all before the last were late
	Targets  int           `json:"targets"`
	Missed   int           `json:"missed"`
	Double   int           `json:"double"`
}

// Table is the outcome of all cells.
type Table struct {
	Cells []Cell `json:"cells"`
}

// Passed returns how many cells passed.
func (t Table) Passed() (n int) {
	for _, c := range t.Cells {
		if c.Passed {
			n++
		}
	}
	return n
}

// MaxDelay returns the longest added delay.
func (t Table) MaxDelay() (d time.Duration) {
	for _, c := range t.Cells {
		d = max(d, c.Delay)
	}
	return d
}

// MaxExcess returns by how much an added delay was longer than its goal.
func (t Table) MaxExcess() (d time.Duration) {
	for _, c := range t.Cells {
		if c.Goal > 0 {
			d = max(d, c.Delay-c.Goal)
		}
	}
	return d
}

// Again returns how many cells were played more than once.
func (t Table) Again() (n int) {
	for _, c := range t.Cells {
		if c.Plays > 1 {
			n++
		}
	}
	return n
}

// Sum returns the runs that were due, those without an end, and those started
// more often than their job allows.
func (t Table) Sum() (targets, missed, double int) {
	for _, c := range t.Cells {
		targets, missed, double = targets+c.Targets, missed+c.Missed, double+c.Double
	}
	return targets, missed, double
}

// goals tells those of one line: with a second node, and without.
func (t Table) goals() string {
	least, most := t.Cells[0].Goal, t.Cells[0].Goal
	for _, c := range t.Cells {
		least, most = min(least, c.Goal), max(most, c.Goal)
	}
	if least == most {
		return least.String()
	}
	return least.String() + " / " + most.String()
}

// compareArrows sorts by the arrow's number; what has none comes last.
func compareArrows(a, b string) int {
	number := func(s string) int {
		n := 0
		if _, err := fmt.Sscan(s, &n); err != nil {
			return math.MaxInt
		}
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}

// Print writes a line per arrow and point, and each cell that failed.
func (t Table) Print(w io.Writer) {
	type key struct{ arrow, point string }
	var order []key
	groups := map[key][]Cell{}
	for _, c := range t.Cells {
		k := key{c.Arrow, c.Point}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], c)
	}
	slices.SortFunc(order, func(a, b key) int { return cmp.Or(compareArrows(a.arrow, b.arrow), cmp.Compare(a.point, b.point)) })
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "arrow\tdies at\tpassed\tmax added delay\tgoal")
	for _, k := range order {
		part := Table{groups[k]}
		fmt.Fprintf(out, "%s\t%s\t%d/%d\t%s\t%s\n", k.arrow, k.point, part.Passed(), len(part.Cells),
			part.MaxDelay().Round(time.Millisecond), part.goals())
	}
	fmt.Fprintf(out, "all\t\t%d/%d\t%s\t\n", t.Passed(), len(t.Cells), t.MaxDelay().Round(time.Millisecond))
	_ = out.Flush()
	for _, c := range t.Cells {
		if !c.Passed {
			fmt.Fprintf(w, "FAILED %s %s %s %s: %s (%s)\n", c.Database, c.Arrow, c.Point, c.Mode, c.Reason, c.Outcome)
		}
	}
}
