package run_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestReasonOfALateEnd: no_executor is said only of a run for which a node has looked for an
// instance. Of all others the nodes were behind.
func TestReasonOfALateEnd(t *testing.T) {
	skip := func(time.Time, *domain.Execution, *domain.JobSpec) (domain.Reason, string) {
		return domain.ReasonMisfireWindow, "skipped"
	}
	makeUp := func(time.Time, *domain.Execution, *domain.JobSpec) (domain.Reason, string) { return "", "" }
	for name, c := range map[string]struct {
		misfire store.MisfireFunc
		change  func(*domain.Execution)
		state   domain.State
		reason  domain.Reason
	}{
		"of a schedule that skips":    {skip, func(*domain.Execution) {}, domain.Missed, domain.ReasonMisfireWindow},
		"of a schedule that makes up": {makeUp, func(*domain.Execution) {}, domain.Due, ""},
		"somebody asked for it":       {skip, func(e *domain.Execution) { e.Cause = domain.CauseManual }, domain.Missed, domain.ReasonMisfire},
		"an instance was looked for": {makeUp, func(e *domain.Execution) {
			e.Delays = []domain.Delay{{At: e.FireAt, LastAt: e.FireAt, Count: 1, Reason: domain.ReasonWaitInstance}}
		}, domain.Missed, domain.ReasonNoExecutor},
		"it was sent": {makeUp, func(e *domain.Execution) { e.Fence = 1 }, domain.Missed, domain.ReasonNoExecutor},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(int) int { return 0 })
			e := domain.Execution{
				ID: 1, TenantID: tenant, JobID: 4, Executor: executor, State: domain.Due, Cause: domain.CauseSchedule, // job 4 has no slot
				FireAt: w.now.Add(-domain.DefaultDispatchTimeout), NotBefore: w.now.Add(-domain.DefaultDispatchTimeout), ExpireAt: w.now, WakeAt: w.now,
			}
			c.change(&e)
			w.rows[e.ID] = e
			b := w.batch()
			b.Misfire = c.misfire
			swept, err := b.Sweep([]domain.ExecutionID{e.ID}, time.Second)
			require.NoError(t, err)
			b.Stored()
			got := b.Moves[e.ID].E
			require.Equal(t, c.state, got.State)
			require.Equal(t, c.reason, got.Reason)
			if c.state == domain.Due {
				require.Len(t, swept.Dispatch, 1)
				require.Equal(t, domain.CauseMisfire, got.Cause)
				require.Equal(t, w.now.Add(domain.DefaultDispatchTimeout), got.ExpireAt)
			} else {
				require.Len(t, swept.Ended, 1)
			}
		})
	}
}
