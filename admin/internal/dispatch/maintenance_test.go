package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestMaintenanceBetweenTwoLooksIsOver: what waits for the end of maintenance goes on
// after it, also if this node never looked while it was on.
func TestMaintenanceBetweenTwoLooksIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(5, nil)
		job := r.Job(nil)
		e, other := r.Run(job, time.Now()), r.Run(job, time.Now().Add(time.Millisecond))
		r.look()
		time.Sleep(time.Millisecond)
		scope := domain.MaintenanceScope{Tenant: r.Tenant}
		_, err := r.S.StartMaintenance(t.Context(), domain.Maintenance{MaintenanceScope: scope, Mode: domain.MaintenanceWait, EndsAt: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		r.fire(e, other)
		require.Empty(t, to.sent())
		require.Equal(t, domain.ReasonMaintenance, r.Find(e.ID).Reason)

		_, err = r.S.EndMaintenance(t.Context(), scope, "ann")
		require.NoError(t, err)
		time.Sleep(LookEvery)
		synctest.Wait()
		r.look()
		require.Len(t, to.sent(), 2)
	})
}
