package executor_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// OnSettled is called when the result is acknowledged, and not before.
func TestOnSettled(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	admin.HoldAcks.Store(true)
	var first, second atomic.Int64
	settled := make(chan struct{})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "work", func(ctx context.Context) error {
			executor.OnSettled(ctx, func() { first.Add(1) })
			executor.OnSettled(ctx, func() { second.Add(1); close(settled) })
			return errors.New("it counts for failures too")
		})
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "work", granted)))
	saw(t, admin, results(1))
	require.Zero(t, first.Load())
	require.NoError(t, s.Ack(&proto.ResultAck{ExecutionId: 1, Fence: 1}))
	<-settled
	require.EqualValues(t, 1, first.Load())
	require.EqualValues(t, 1, second.Load())
	require.NoError(t, a.stop())

	executor.OnSettled(t.Context(), func() { first.Add(1) })
	require.EqualValues(t, 2, first.Load(), "outside of a handler at once")
}
