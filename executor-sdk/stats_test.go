package executor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
)

// handlerStats returns those of one handler.
func handlerStats(t *testing.T, s executor.Stats, name string) executor.HandlerStats {
	t.Helper()
	for _, h := range s.Handlers {
		if h.Name == name {
			return h
		}
	}
	t.Fatalf("no handler %q in %+v", name, s.Handlers)
	return executor.HandlerStats{}
}

func TestStats(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	a := start(t, admin, func(ex *executor.Executor) {
		before := ex.Stats()
		require.Equal(t, "shop", before.Name)
		require.Equal(t, 4, before.Slots)
		require.Contains(t, before.Refused, "busy", "every reason has its number from the start")
		require.False(t, before.Ready)
		executor.HandleFunc(ex, "fine", func(ctx context.Context) error {
			executor.Logger(ctx).Info("a line")
			return nil
		})
		executor.HandleFunc(ex, "fails", func(context.Context) error { return errors.New("not today") })
		executor.HandleFunc(ex, "waits", func(context.Context) error { <-release; return nil })
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "fine"), offer(2, "fine"), offer(3, "fails"), offer(4, "nobody")))
	saw(t, admin, results(3))
	require.NoError(t, s.Offer(offer(5, "waits")))
	saw(t, admin, func(s fakeadmin.Seen) bool { return len(s.Started) == 4 })

	now := a.Stats()
	require.True(t, now.Ready)
	require.Equal(t, 1, now.Running)
	require.Equal(t, 1, now.Sessions)
	require.EqualValues(t, 1, now.SessionsOpened)
	require.EqualValues(t, 1, now.Refused["unknown_handler"])
	require.EqualValues(t, 2, now.LogLines)
	require.Zero(t, now.LogLinesDropped)
	fine, fails := handlerStats(t, now, "fine"), handlerStats(t, now, "fails")
	require.EqualValues(t, 2, fine.Ended["succeeded"])
	require.EqualValues(t, 2, fine.Took.Count)
	require.EqualValues(t, 1, fails.Ended["failed"])
	require.Zero(t, fails.Ended["succeeded"])
	require.Zero(t, handlerStats(t, now, "waits").Took.Count, "it has not returned")

	close(release)
	saw(t, admin, results(4))
	require.NoError(t, a.stop())
	after := a.Stats()
	require.True(t, after.Draining)
	require.Zero(t, after.Running)
	require.Zero(t, after.ResultsOwed, "all were acknowledged")
	// Results are sent before they are synced (ADR 0027), so it is sure only now.
	require.NotZero(t, after.JournalSyncs.Count, "acceptances and results were synced")
}
