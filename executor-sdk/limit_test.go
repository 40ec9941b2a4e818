package executor_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

func TestEachHandlerHasItsOwnCapForResults(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	kinds := make(chan executor.Kind, 2)
	a := start(t, admin, func(ex *executor.Executor) {
		ex.Use(func(ctx context.Context, next executor.Next) error {
			err := next(ctx)
			kinds <- executor.KindOf(err)
			return err
		})
		text := func(context.Context) (string, error) { return strings.Repeat("x", 10), nil }
		executor.HandleOut(ex, "fits", text, executor.MaxResult(12)) // with its quotes
		executor.HandleOut(ex, "large", text, executor.MaxResult(11))
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "fits")))
	seen := saw(t, admin, results(1))
	require.Equal(t, "SUCCEEDED", brief(seen.Results[0]))
	require.Equal(t, executor.KindSucceeded, <-kinds)
	require.NoError(t, s.Offer(offer(2, "large")))
	seen = saw(t, admin, results(2))
	require.Equal(t, "FAILED output_too_large", brief(seen.Results[1]))
	require.Equal(t, "output has 12 bytes, the limit is 11", seen.Results[1].GetError())
	require.Empty(t, seen.Results[1].GetOutput())
	require.Equal(t, executor.KindOutputTooLarge, <-kinds)
	require.NoError(t, a.stop())
}

func TestEachHandlerHasItsOwnGrace(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	release := make(chan struct{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "deaf", func(context.Context) error { <-release; return nil },
			executor.KillGrace(50*time.Millisecond), executor.Stuck(executor.KeepSlot))
	}, func(c *executor.Config) { c.KillGrace = time.Hour })
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "deaf", func(o *proto.Offer) { o.TimeoutMs = 50 })))
	seen := saw(t, admin, results(1))
	require.Equal(t, "TIMED_OUT timeout", brief(seen.Results[0]))
	require.True(t, seen.Results[0].GetStillRunning())
	close(release)
	saw(t, admin, results(2))
	require.NoError(t, a.stop())
}

// The process ends for a handler that asks for it, and the next one tells the
// truth: what was reported is reported again, and then that it died.
func TestAStuckHandlerRestartsItsProcess(t *testing.T) {
	journal := t.TempDir()
	admin := startAdmin(t, &fakeadmin.Admin{})
	child := startVictim(t, admin, journal)
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "stuck", func(o *proto.Offer) { o.TimeoutMs = 20 })))
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, executor.ExitIgnored, exit.ExitCode())
	seen := admin.Seen()
	require.Len(t, seen.Results, 1)
	require.Equal(t, "TIMED_OUT timeout", brief(seen.Results[0]))

	startVictim(t, admin, journal)
	saw(t, admin, func(seen fakeadmin.Seen) bool {
		return brief(seen.Results[len(seen.Results)-1]) == "UNKNOWN process_died"
	})
}

func TestLimitsThatMakeNoSensePanic(t *testing.T) {
	for want, option := range map[string]executor.HandlerOption{
		"MaxResult must be from 1 to 262144": executor.MaxResult(0),
		"KillGrace must be at least 1 ms":    executor.KillGrace(0),
		`Stuck("kill -9") is not known`:      executor.Stuck("kill -9"),
	} {
		ex, err := executor.New(executor.Config{Name: "shop", Addresses: []string{"a:1"}, Token: "x"})
		require.NoError(t, err)
		require.PanicsWithValue(t, `carillon: handler "h": `+want, func() {
			executor.HandleFunc(ex, "h", func(context.Context) error { return nil }, option)
		})
	}
}
