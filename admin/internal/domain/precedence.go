package domain

import (
	"cmp"
	"time"
)

// PriorityStep is what one point of priority is worth: a run is served as if it
// had been due this much earlier per point. So a run overtakes those of lower
// priority that have waited up to PriorityStep per point of difference, and
// nobody longer: with priorities from -100 to 100 nothing is overtaken for more
// than 200 s, however many urgent runs come.
const PriorityStep = time.Second

// Precedence is the instant by which runs of a tenant that wait for the same
// thing are ordered, earliest first. It never changes in a run's life.
func (e *Execution) Precedence() time.Time {
	return e.FireAt.Add(-time.Duration(e.Priority) * PriorityStep)
}

// ComparePrecedence orders runs that wait, for slices.SortFunc: by precedence,
// those alike by fire time and then by age.
func ComparePrecedence(a, b *Execution) int {
	return cmp.Or(a.Precedence().Compare(b.Precedence()), a.FireAt.Compare(b.FireAt), cmp.Compare(a.ID, b.ID))
}
