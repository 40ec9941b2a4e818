package front

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// connected is a store with instances that are connected to the cluster.
type connected struct {
	err   error
	asked int
}

func (c *connected) Ping(context.Context) error { return c.err }

func (c *connected) ListConnected(context.Context) ([]domain.InstanceID, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.asked++
	return []domain.InstanceID{1, 2, 3}, nil
}

// A node is ready when the instances that were connected have sessions here, or when it
// has waited long enough for those that do not come.
func TestANodeIsReadyWhenExecutorsAreConnected(t *testing.T) {
	t.Parallel()
	now, here, c := time.Unix(1e9, 0), map[domain.InstanceID]bool{}, &connected{}
	begin := func() *Readiness {
		return &Readiness{Store: c, until: now.Add(arrivalsLimit), Here: func(id domain.InstanceID) bool { return here[id] }}
	}
	w := begin()
	wait := func(at time.Duration) int {
		t.Helper()
		n, err := w.wait(t.Context(), now.Add(at))
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
	require.Equal(t, 1, c.asked)

	w = begin()
	clear(here)
	require.Equal(t, 3, wait(arrivalsLimit-1))
	require.Zero(t, wait(arrivalsLimit), "what does not come in time is not waited for")

	w, c.err = begin(), errors.New("away")
	_, err := w.wait(t.Context(), now)
	require.Error(t, err)
	c.err = nil
	require.Equal(t, 3, wait(0), "it is asked again")
}

// A node that cannot write is not ready. One that starts nothing waits for nothing but its
// database.
func TestWhyANodeIsNotReady(t *testing.T) {
	t.Parallel()
	silent := time.Duration(0)
	r := &Readiness{Store: &connected{}, Silent: func() time.Duration { return silent }, Here: func(id domain.InstanceID) bool { return id != 2 }}
	r.Begin()
	require.ErrorContains(t, r.Ready(t.Context()), "1 instance of an executor")
	silent = silentTooLong + time.Second
	require.ErrorContains(t, r.Ready(t.Context()), "write to its database for 11s")
	r.NoFire = true
	require.NoError(t, r.Ready(t.Context()))
}
