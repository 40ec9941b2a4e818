package sweeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// sets is a store with sets, and ends of runs to count.
type sets struct {
	driven store.DrivenBackfills
	cancel store.DrivenTimerCancellations
	purges int
	ends   []time.Duration // what each count was asked
	wide   int             // rows left to widen
	err    error
}

func (s *sets) DriveBackfills(_ context.Context, p store.DriveBackfillsParams) (store.DrivenBackfills, error) {
	return s.driven, s.err
}

func (s *sets) DriveTimerCancellations(context.Context, int) (store.DrivenTimerCancellations, error) {
	return s.cancel, s.err
}

func (s *sets) DriveRunPurges(context.Context, int) error { s.purges++; return s.err }

func (s *sets) CountEnds(_ context.Context, every time.Duration) (bool, error) {
	s.ends = append(s.ends, every)
	return len(s.ends) < 3, s.err
}

func (s *sets) WidenStatistics(_ context.Context, _ store.StatisticsKept, limit int) (int, error) {
	n := min(limit, s.wide)
	s.wide -= n
	return n, s.err
}

func do(t *testing.T, chores []Chore) (errs []error) {
	t.Helper()
	for _, c := range chores {
		require.Positive(t, c.Every, c.Name)
		errs = append(errs, c.Do(t.Context()))
	}
	return errs
}

// Runs of backfills that were written go their way, and runs of cancelled timers are
// cancelled, also when the store fails later.
func TestSetsAreWorkedOff(t *testing.T) {
	t.Parallel()
	s := &sets{driven: store.DrivenBackfills{Runs: []domain.Execution{{ID: 1}, {ID: 2}}}, cancel: store.DrivenTimerCancellations{Cancel: []domain.Execution{{ID: 3}}}}
	var later, cancelled []domain.Execution
	b := &Bulk{Store: s, Later: func(e ...domain.Execution) { later = append(later, e...) }, Cancel: func(e domain.Execution) { cancelled = append(cancelled, e) }}
	require.Equal(t, []error{nil, nil, nil}, do(t, b.Chores()))
	require.Equal(t, []int{2, 1, 1}, []int{len(later), len(cancelled), s.purges})
	s.err = errors.New("no database")
	require.Equal(t, []error{s.err, s.err, s.err}, do(t, b.Chores()))
	require.Equal(t, []int{4, 2, 2}, []int{len(later), len(cancelled), s.purges})
}

// What has gathered is counted to its end, and widening is bounded.
func TestEndsAreCountedAndWidened(t *testing.T) {
	t.Parallel()
	s := &sets{wide: widenTurns*widenLimit + 7}
	c := &Statistics{Store: s}
	require.Equal(t, []error{nil, nil}, do(t, c.Chores()))
	require.Equal(t, []time.Duration{9 * time.Second, 0, 0}, s.ends)
	require.Equal(t, 7, s.wide)
	require.Equal(t, []error{nil, nil}, do(t, c.Chores()))
	require.Zero(t, s.wide)
}
