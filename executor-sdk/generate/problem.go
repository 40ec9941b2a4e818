package generate

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Problem is one mistake in the source: where, what, and what to do about it.
type Problem struct {
	Pos  token.Position
	What string
	Fix  string // empty when What says it all
}

func (p Problem) Error() string {
	text := p.Pos.String() + ": " + p.What
	if p.Fix != "" {
		text += "; " + p.Fix
	}
	return text
}

// Problems are all mistakes of one package, in the order of the source. As an
// error it prints one problem per line.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// report collects problems while a package is read; it is used by one goroutine.
type report struct{ problems Problems }

func (r *report) add(pos token.Position, fix, format string, args ...any) {
	r.problems = append(r.problems, Problem{Pos: pos, What: fmt.Sprintf(format, args...), Fix: fix})
}

// err returns the sorted problems, or nil.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return r.problems
}

// nearMiss proposes the candidate closest to word, as "did you mean …", or
// lists all candidates when none is close.
func nearMiss(word string, candidates []string) string {
	best, bestDistance := "", 3 // more than two edits is another word
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "use one of " + strings.Join(candidates, ", ")
}

// distance is the Damerau-Levenshtein distance (optimal string alignment) in
// bytes: insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
