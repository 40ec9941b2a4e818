package db

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A commit is remembered as long as retention deletes no run of its age.
func TestAnOldCommitIsNotLookedFor(t *testing.T) {
	d := newRollbackDetector()
	ids := domain.NewIDSource(1, time.Now)
	require.True(t, d.Note(domain.ExecutionID(ids.Next()), 3))
	require.False(t, d.Note(1, 3), "of the first millisecond that an id can have")
	require.Len(t, d.marksAndCommits().commits, 1)
}
