package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// Starts wait a little for something urgent to go with.
func TestStartsWaitForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox()
		signalled := func() bool {
			synctest.Wait()
			select {
			case <-o.wake:
				return true
			default:
				return false
			}
		}
		o.putStarted([]*proto.Started{{ExecutionId: 1}})
		o.putStarted([]*proto.Started{{ExecutionId: 2}})
		require.False(t, signalled())
		time.Sleep(laterBy)
		require.True(t, signalled())
		buf, err := o.drain(nil)
		require.NoError(t, err)
		require.NotEmpty(t, buf)

		o.putStarted([]*proto.Started{{ExecutionId: 3}})
		o.put(nil, nil, []*proto.Result{{ExecutionId: 3}})
		require.True(t, signalled(), "a result is urgent")
		buf, err = o.drain(nil)
		require.NoError(t, err)
		both, err := proto.AppendFrame(nil, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{
			Results: &proto.ResultBatch{Results: []*proto.Result{{ExecutionId: 3}}},
		}}, proto.MaxFrame)
		require.NoError(t, err)
		require.Greater(t, len(buf), len(both), "and the start goes first")
		time.Sleep(laterBy)
		o.close()
		o.putStarted([]*proto.Started{{ExecutionId: 4}})
		time.Sleep(laterBy)
		buf, err = o.drain(nil)
		require.NoError(t, err)
		require.Empty(t, buf)
	})
}
