package gateway

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// slowAuth is a database that does not answer until it is told to.
type slowAuth struct {
	inside atomic.Int64
	answer chan struct{}
}

func (a *slowAuth) VerifyJoinToken(context.Context, string, string, string) (domain.TenantID, domain.ExecutorID, error) {
	a.inside.Add(1)
	<-a.answer
	return 1, 2, nil
}

// TestACrowdLeavesTheDatabaseToThoseWhoAreIn: 40 executors that restarted five
// times a second took all connections of a node, and the leases of the others
// ran out (fault row F11).
func TestACrowdLeavesTheDatabaseToThoseWhoAreIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		auth := &slowAuth{answer: make(chan struct{})}
		g := New(Options{Auth: auth, NewID: func() int64 { return 1 }, Logger: slog.New(slog.DiscardHandler)})
		errs := make(chan error, 40)
		for range 40 {
			go func() {
				_, _, err := g.admit(t.Context(), hello(goodToken, strings.Repeat("a", 32)), nil)
				errs <- err
			}()
		}
		synctest.Wait()
		require.EqualValues(t, maxEntering, auth.inside.Load())
		auth.answer <- struct{}{}
		require.NoError(t, <-errs)
		synctest.Wait()
		require.EqualValues(t, maxEntering+1, auth.inside.Load(), "the next one follows")
		for range 40 - 1 - maxEntering { // they are told to come again when their time is over
			require.Equal(t, domain.CodeUnavailable, domain.CodeOf(<-errs))
		}
		close(auth.answer)
		for range maxEntering {
			require.NoError(t, <-errs)
		}
	})
}
