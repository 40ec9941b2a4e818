package domain

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPrecedence(t *testing.T) {
	at := func(seconds, priority int) *Execution {
		return &Execution{FireAt: t0.Add(time.Duration(seconds) * time.Second), Priority: priority, ID: ExecutionID(1000*seconds + priority + 500)}
	}
	for _, row := range []struct {
		name         string
		first, later *Execution
	}{
		{"the older one", at(0, 0), at(1, 0)},
		{"the more urgent one of the same instant", at(0, 1), at(0, 0)},
		{"the more urgent one, although younger", at(9, 10), at(0, 0)},
		{"not for longer than its points last", at(0, 0), at(11, 10)},
		{"where age and priority weigh the same, the older one", at(0, 0), at(10, 10)},
		{"a lower priority waits", at(9, 0), at(0, -10)},
		{"but not for ever", at(0, -100), at(201, 100)},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Negative(t, ComparePrecedence(row.first, row.later))
			require.Positive(t, ComparePrecedence(row.later, row.first))
			require.Zero(t, ComparePrecedence(row.later, row.later))
		})
	}
}

// Whatever comes, nobody is overtaken by a run that was due more than
// PriorityStep per point of difference later.
func TestPrecedenceNeverStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *Execution {
			return &Execution{
				ID: ExecutionID(rapid.Int64Range(1, 1<<40).Draw(t, "id")), Priority: rapid.IntRange(-100, 100).Draw(t, "priority"),
				FireAt: t0.Add(time.Duration(rapid.IntRange(0, 400_000).Draw(t, "ms")) * time.Millisecond),
			}
		}), 2, 50).Draw(t, "runs")
		slices.SortFunc(runs, ComparePrecedence)
		for i, early := range runs {
			for _, late := range runs[i+1:] {
				overtaken := early.FireAt.Sub(late.FireAt)
				if overtaken > time.Duration(early.Priority-late.Priority)*PriorityStep && overtaken > 0 {
					t.Fatalf("priority %d due %v later goes before priority %d", early.Priority, overtaken, late.Priority)
				}
			}
		}
	})
}
