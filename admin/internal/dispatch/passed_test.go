package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// TestAChoiceLeavesWhoHadNoRoom in the run's row, and whether it was a wish or
// went by turns among equals.
func TestAChoiceLeavesWhoHadNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first, second, third := r.join(5, nil), r.join(5, nil), r.join(5, nil)
		ids := []domain.InstanceID{first.id, second.id, third.id}
		job := r.Job(func(s *domain.JobSpec) { s.Routing = domain.RouteBusyOver })
		left := func(run domain.Execution) domain.Passed {
			r.fire(run)
			synctest.Wait()
			p := r.Find(run.ID).Passed
			require.True(t, p.Known())
			n, more := p.Looked()
			require.Equal(t, 3, n)
			require.False(t, more)
			return p
		}
		fulls := func(p domain.Passed) (out []domain.InstanceID) {
			for _, id := range ids {
				full, sure := p.Full(id, ids)
				require.True(t, sure)
				if full {
					out = append(out, id)
				}
			}
			return out
		}
		now := time.Now().Add(-time.Second)
		p := left(r.Run(job, now))
		require.Empty(t, fulls(p))
		require.False(t, p.Wished())
		first.slots = 1 // which it has
		require.Equal(t, ids[:1], fulls(left(r.Run(job, now.Add(time.Millisecond)))))
		second.slots = 1
		require.Equal(t, ids[:2], fulls(left(r.Run(job, now.Add(2*time.Millisecond)))))
		one(t, first.sent())
		one(t, second.sent())
		one(t, third.sent())
		first.slots, second.slots = 5, 5

		third.load.Slots = 900
		loaded := r.Job(func(s *domain.JobSpec) { s.Routing = domain.RouteLeastLoaded })
		require.True(t, left(r.Run(loaded, now)).Tied())
		second.load.Slots = 500
		require.False(t, left(r.Run(loaded, now.Add(time.Millisecond))).Tied())

		wish := r.Run(job, now.Add(3*time.Millisecond))
		wish.Instance = third.id
		require.True(t, left(wish).Wished())
	})
}
