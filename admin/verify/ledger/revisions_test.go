package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// A job with more revisions than are kept is judged from the first one that is left.
func TestForgottenRevisionsPromiseNothing(t *testing.T) {
	at := func(minutes int) time.Time {
		return time.Unix(1_800_000_000, 0).Add(time.Duration(minutes) * time.Minute)
	}
	revision := func(number int64, minutes int) store.Revision {
		return store.Revision{Revision: number, CreatedAt: at(minutes)}
	}
	event := func(state domain.JobState, minutes int) store.JobEvent {
		return store.JobEvent{State: state, At: at(minutes)}
	}
	whole := store.LedgerJob{
		Revisions: []store.Revision{revision(1, 0), revision(2, 5)},
		Events:    []store.JobEvent{event(domain.JobEnabled, 0)},
	}
	require.False(t, forgetGaps(&whole))
	require.Len(t, whole.Revisions, 2)

	cut := store.LedgerJob{
		Revisions: []store.Revision{revision(7, 1), revision(201, 60), revision(202, 70)}, // a run has kept 7
		Events:    []store.JobEvent{event(domain.JobEnabled, 0), event(domain.JobPaused, 10), event(domain.JobEnabled, 65)},
	}
	require.True(t, forgetGaps(&cut))
	require.Equal(t, at(60), cut.RunsFrom)
	require.EqualValues(t, 201, cut.Revisions[0].Revision)
	require.Equal(t, []store.JobEvent{event(domain.JobPaused, 60), event(domain.JobEnabled, 65)}, cut.Events)
	require.True(t, callsOf(&cut)[0].Paused)
}
