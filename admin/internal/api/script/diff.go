package script

import (
	"slices"
	"strings"
)

// ScriptDiff is what changed between two versions.
type ScriptDiff struct {
	From    int64      `json:"from" doc:"Number of the older side's version"`
	To      int64      `json:"to" doc:"Number of the newer side's version"`
	Added   int        `json:"added" doc:"Lines that only the newer side has"`
	Removed int        `json:"removed" doc:"Lines that only the older side has"`
	Lines   []DiffLine `json:"lines" doc:"All lines of both, in order"`
}

// DiffLine is one line of either version, or of both.
type DiffLine struct {
	Op   string `json:"op" enum:"same,added,removed" doc:"Which side has it: both, only the newer, or only the older"`
	Text string `json:"text" doc:"The line, without its end"`
}

func diffOf(from, to int64, a, b string) ScriptDiff {
	d := ScriptDiff{From: from, To: to, Lines: diffLines(splitLines(a), splitLines(b))}
	for _, l := range d.Lines {
		switch l.Op {
		case "added":
			d.Added++
		case "removed":
			d.Removed++
		}
	}
	return d
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// diffLines is a shortest edit of a to b, as long as it takes at most maxEdits
// lines; beyond, what differs is replaced as a whole.
func diffLines(a, b []string) []DiffLine {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	out := diffAs(nil, "same", a[:head])
	out = append(out, shortestEdit(a[head:len(a)-tail], b[head:len(b)-tail])...)
	return diffAs(out, "same", a[len(a)-tail:])
}

func diffAs(out []DiffLine, op string, lines []string) []DiffLine {
	for _, text := range lines {
		out = append(out, DiffLine{op, text})
	}
	return out
}

// maxEdits bounds time and memory: the trace has maxEdits² numbers.
const maxEdits = 1000

// shortestEdit is the greedy algorithm of Myers, "An O(ND) Difference Algorithm
// and Its Variations" (1986): reach[k] is how far along a the diagonal k comes
// with d edits.
func shortestEdit(a, b []string) []DiffLine {
	var trace [][]int // reach after d edits, diagonals -d to d
	limit := min(len(a)+len(b), maxEdits)
	at := func(reach []int, k int) int { return reach[k+len(reach)/2] }
	for d := 0; d <= limit; d++ {
		reach := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				before := trace[d-1]
				if k == -d || k != d && at(before, k-1) < at(before, k+1) {
					x = at(before, k+1)
				} else {
					x = at(before, k-1) + 1
				}
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			reach[k+d] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(append(trace, reach), a, b)
			}
		}
		trace = append(trace, reach)
	}
	return diffAs(diffAs(nil, "removed", a), "added", b)
}

// walkBack follows the trace from the end of both.
func walkBack(trace [][]int, a, b []string) []DiffLine {
	var out []DiffLine
	x, y := len(a), len(b)
	for d := len(trace) - 1; d > 0; d-- {
		k, before := x-y, trace[d-1]
		at := func(k int) int { return before[k+len(before)/2] }
		down := k == -d || k != d && at(k-1) < at(k+1)
		fromK := k - 1
		if down {
			fromK = k + 1
		}
		fromX := at(fromK)
		fromY := fromX - fromK
		for x > fromX && y > fromY {
			x--
			y--
			out = append(out, DiffLine{"same", a[x]})
		}
		if down {
			out = append(out, DiffLine{"added", b[fromY]})
		} else {
			out = append(out, DiffLine{"removed", a[fromX]})
		}
		x, y = fromX, fromY
	}
	for x > 0 {
		x--
		out = append(out, DiffLine{"same", a[x]})
	}
	slices.Reverse(out)
	return out
}
