package admin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A node is ready when the instances that were connected have sessions here, or when it
// has waited long enough for those that do not come.
func TestANodeIsReadyWhenExecutorsAreConnected(t *testing.T) {
	now, here, asked := time.Unix(1e9, 0), map[domain.InstanceID]bool{}, 0
	w := &arrivals{until: now.Add(arrivalsLimit)}
	wait := func(at time.Duration) int {
		t.Helper()
		n, err := w.wait(t.Context(), now.Add(at), func(context.Context) ([]domain.InstanceID, error) {
			asked++
			return []domain.InstanceID{1, 2, 3}, nil
		}, func(id domain.InstanceID) bool { return here[id] })
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 3, wait(0))
	here[2] = true
	require.Equal(t, 2, wait(time.Second))
	delete(here, 2)
	require.Equal(t, 2, wait(time.Second), "its session has ended since, as sessions of a node do that is ready")
	here[1], here[3] = true, true
	require.Zero(t, wait(2*time.Second))
	require.Equal(t, 1, asked)

	w = &arrivals{until: now.Add(arrivalsLimit)}
	here = map[domain.InstanceID]bool{}
	require.Equal(t, 3, wait(arrivalsLimit-1))
	require.Zero(t, wait(arrivalsLimit), "what does not come in time is not waited for")

	w = &arrivals{until: now.Add(arrivalsLimit)}
	_, err := w.wait(t.Context(), now, func(context.Context) ([]domain.InstanceID, error) { return nil, errors.New("away") }, nil)
	require.Error(t, err)
	require.Equal(t, 3, wait(0), "it is asked again")
}
