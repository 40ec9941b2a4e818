package completer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type waited struct {
	e    domain.Execution
	err  error
	took time.Duration
}

// wait waits for a run in the background.
func (r *rig) wait(ctx context.Context, id domain.ExecutionID) <-chan waited {
	out := make(chan waited, 1)
	began := time.Now()
	go func() {
		e, err := r.c.WaitFinished(ctx, r.Tenant, id)
		out <- waited{e, err, time.Since(began)}
	}()
	synctest.Wait()
	return out
}

func TestWaitersAreWokenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(nil))
		first, second := r.wait(t.Context(), e.ID), r.wait(t.Context(), e.ID)
		r.report(&session{}, e, domain.OutcomeSucceeded)
		for _, w := range []<-chan waited{first, second} {
			got := <-w
			require.NoError(t, got.err)
			require.Equal(t, domain.Succeeded, got.e.State)
			require.Zero(t, got.took)
		}
		require.Empty(t, r.c.hub.waiters)
		again := <-r.wait(t.Context(), e.ID)
		require.NoError(t, again.err)
		require.Zero(t, again.took, "it has ended already")
		require.Empty(t, r.c.hub.waiters)
	})
}

func TestARetryDoesNotEndTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2} }))
		w := r.wait(t.Context(), e.ID)
		r.report(&session{}, e, domain.OutcomeFailed)
		synctest.Wait()
		require.Empty(t, w)
		again := r.Start(r.instance, r.Find(e.ID))[0]
		r.report(&session{}, again, domain.OutcomeSucceeded)
		got := <-w
		require.NoError(t, got.err)
		require.Equal(t, 2, got.e.Attempt)
		require.Equal(t, resultPace, got.took, "the second result came at once")
	})
}

func TestWaitersFindWhatCameToAnotherNode(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(nil))
		w := r.wait(t.Context(), e.ID)
		_, err := r.S.FinishAttempts(t.Context(), []store.AttemptReport{r.Report(e, domain.OutcomeFailed)})
		require.NoError(t, err)
		got := <-w
		require.NoError(t, got.err)
		require.Equal(t, domain.Failed, got.e.State)
		require.Equal(t, pollEvery, got.took)
		require.Empty(t, r.c.hub.waiters)
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		e := r.running(r.Job(nil))
		ctx, cancel := context.WithTimeout(t.Context(), 1234*time.Millisecond)
		defer cancel()
		got := <-r.wait(ctx, e.ID)
		require.Equal(t, domain.CodeWaitTimedOut, domain.CodeOf(got.err))
		require.Equal(t, domain.Running, got.e.State, "as it is")
		require.Equal(t, 1234*time.Millisecond, got.took)
		require.Empty(t, r.c.hub.waiters)

		got = <-r.wait(ctx, e.ID+1)
		require.Equal(t, domain.CodeNotFound, domain.CodeOf(got.err))
		require.Empty(t, r.c.hub.waiters)
	})
}
