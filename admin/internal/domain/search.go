package domain

import (
	"cmp"
	"slices"
	"strconv"
)

// MaxFound is how many objects of a kind a search answers.
const MaxFound = 10

// SearchQuery asks for objects of one kind by id or name.
type SearchQuery struct {
	Tenant TenantID
	Within Reach
	// Text is an id, a name or a part of one, or a label.
	Text string
}

// ID is the text as an id; 0: it is none.
func (q *SearchQuery) ID() int64 {
	n, err := strconv.ParseInt(q.Text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Match says how an object was found. The best match is the least one.
type Match int

const (
	MatchID     Match = iota // the text is its id
	MatchName                // the text is its name
	MatchPrefix              // its name begins with the text
	MatchPart                // its name contains the text
	MatchLabel               // it has the label
)

// Found is an object that a search has found.
type Found struct {
	ID         int64
	Name, Hint string
	Match      Match
}

// FoundPage is what a search has found of one kind. More: there are others, or may be.
type FoundPage struct {
	Items []Found
	More  bool
}

// FoundOf sorts the best matches first and keeps MaxFound. Of an object that was found twice it
// keeps the best match.
func FoundOf(all []Found, more bool) FoundPage {
	slices.SortStableFunc(all, func(a, b Found) int { return cmp.Or(cmp.Compare(a.Match, b.Match), cmp.Compare(a.Name, b.Name)) })
	seen := map[int64]bool{}
	all = slices.DeleteFunc(all, func(f Found) bool {
		again := seen[f.ID]
		seen[f.ID] = true
		return again
	})
	return FoundPage{all[:min(len(all), MaxFound)], more || len(all) > MaxFound}
}
