package scheduler

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
)

// A new run for a time that is far stays in the database alone.
func TestFarRunsStayInTheDatabase(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	timer := NewTimer(new(runtable.Table), func() time.Time { return now }, Lead, func([]*domain.Execution) {})
	timer.Submit(domain.Execution{ID: 1, NotBefore: now.Add(domain.ColdAfter + time.Millisecond)})
	require.Zero(t, timer.Len())
	timer.Submit(domain.Execution{ID: 2, NotBefore: now.Add(domain.ColdAfter)})
	require.Equal(t, 1, timer.Len())
}

// The planner looks at once for a timer that it would claim now.
func TestANearTimerNudgesThePlanner(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	p := NewPlanner(PlannerOptions{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	p.TimersSet(now.Add(LookAhead))
	require.Empty(t, p.nudge)
	p.TimersSet(now.Add(LookAhead - time.Millisecond))
	require.Len(t, p.nudge, 1)
}
