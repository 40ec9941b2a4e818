package calendar_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/calendar"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

var errLocked = errors.New("the row is locked")

// behind has jobs that are behind. A job with an odd id cannot follow.
type behind struct {
	jobs  []store.JobRef
	asked []domain.CalendarID
}

func (b *behind) ListJobsBehind(_ context.Context, id domain.CalendarID, limit int) ([]store.JobRef, error) {
	b.asked = append(b.asked, id)
	return b.jobs[:min(limit, len(b.jobs))], nil
}

func (b *behind) FollowCalendars(_ context.Context, p store.FollowCalendarsParams) (bool, error) {
	if p.Job%2 == 1 {
		return false, errLocked
	}
	for i, j := range b.jobs {
		if j.ID == p.Job {
			b.jobs = append(b.jobs[:i:i], b.jobs[i+1:]...)
			return true, nil
		}
	}
	return false, nil
}

func follower(ids ...domain.JobID) (b *behind, f *calendar.Follower, changes *int) {
	b, changes = &behind{}, new(int)
	for _, id := range ids {
		b.jobs = append(b.jobs, store.JobRef{ID: id})
	}
	return b, &calendar.Follower{Store: b, Changed: func() { *changes++ }, Log: slog.New(slog.DiscardHandler)}, changes
}

func TestAllJobsFollow(t *testing.T) {
	var ids []domain.JobID
	for id := range 450 {
		ids = append(ids, domain.JobID(2*id))
	}
	b, f, changes := follower(ids...)
	require.NoError(t, f.Sweep(t.Context()))
	require.Empty(t, b.jobs)
	require.Equal(t, []domain.CalendarID{0, 0, 0}, b.asked, "in steps of 200")
	require.Equal(t, 3, *changes)
}

func TestAJobThatCannotFollowKeepsNoOther(t *testing.T) {
	b, f, changes := follower(1, 2, 3, 4)
	require.ErrorIs(t, f.Sweep(t.Context()), errLocked)
	require.Equal(t, []store.JobRef{{ID: 1}, {ID: 3}}, b.jobs)
	require.Equal(t, 1, *changes)
	require.ErrorIs(t, f.Sweep(t.Context()), errLocked)
	require.Equal(t, 1, *changes, "nothing has followed")
}

func TestAnEditConcernsOneCalendar(t *testing.T) {
	b, f, _ := follower(2)
	f.Edited(t.Context(), 7)
	require.Equal(t, domain.CalendarID(7), b.asked[0])
	require.Empty(t, b.jobs)
}
