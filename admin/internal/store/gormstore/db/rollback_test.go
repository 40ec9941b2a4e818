package db

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Nothing that a node looks for after a reconnect may have been deleted meanwhile, or
// the whole cluster would be held for it.
func TestWhatMayBeDeletedIsNotLookedFor(t *testing.T) {
	require.Less(t, 2*commitAge, domain.RetentionGrace)
	of := func(ago time.Duration) domain.ExecutionID {
		return domain.ExecutionID(domain.IDFloor(time.Now().Add(-ago)))
	}
	d := newRollbackDetector()
	require.True(t, d.Note(of(0), 3))
	require.True(t, d.Note(of(commitAge-time.Minute), 3))
	require.False(t, d.Note(of(commitAge), 3), "it may have ended as soon as it began")
	require.Len(t, d.marksAndCommits().commits, 2)
	c := d.commits[0]
	c.at = c.at.Add(-commitAge - time.Second)
	d.commits[0] = c
	require.Len(t, d.marksAndCommits().commits, 1)
}

// A look at the database that began before an operator accepted it and ends after that
// holds nothing again: sessions have been renewed already, and would not be once more.
func TestALookFromBeforeTheAcceptanceIsForgotten(t *testing.T) {
	d := newRollbackDetector()
	d.Remember(domain.History{Mark: 70})
	slow := d.Marks()
	found := domain.History{Mark: 60}
	doubt := domain.Doubt{History: domain.History{Mark: 70}}
	d.Judge(d.Marks(), found, doubt, 5)
	_, held := d.RolledBack()
	require.True(t, held)
	d.Judge(d.Marks(), domain.History{Epoch: 1, Mark: 61}, domain.Doubt{}, 0)
	_, held = d.RolledBack()
	require.False(t, held, "accepted")
	d.Judge(slow, found, doubt, 5)
	_, held = d.RolledBack()
	require.False(t, held)
	d.Judge(d.Marks(), found, domain.Doubt{}, 0)
	_, held = d.RolledBack()
	require.True(t, held, "it lost the acceptance too")
}
