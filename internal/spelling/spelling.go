// Package spelling answers: which of the names that there are did somebody mean
// who wrote another one?
package spelling

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Hint is the question "did you mean ...?" about the names that are close to
// name, the closest first and three at most; empty when none is.
func Hint(name string, names []string) string {
	if found := near(name, names); len(found) > 0 {
		return "did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}

// near returns up to three names that are close to name, in quotes, the closest
// first.
func near(name string, names []string) []string {
	type scored struct {
		name  string
		score int
	}
	var found []scored
	lower := strings.ToLower(name)
	for _, n := range names {
		other := strings.ToLower(n)
		score := distance(lower, other)
		if strings.Contains(other, lower) || strings.Contains(lower, other) {
			score = min(score, 2)
		}
		if score <= max(2, len(name)/3) {
			found = append(found, scored{n, score})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, 3)
	for _, s := range found[:min(3, len(found))] {
		out = append(out, strconv.Quote(s.name))
	}
	return out
}

// distance is the number of bytes to insert, delete, replace or swap with
// their neighbour (optimal string alignment).
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
