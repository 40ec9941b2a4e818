package gateway

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// writes is a stream that keeps the sizes of its writes and when they came.
type writes struct {
	start time.Time
	mu    sync.Mutex
	at    []time.Duration // guarded by mu
	bytes int             // guarded by mu
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(w.at, time.Since(w.start))
	w.bytes += len(p)
	return len(p), nil
}

func (*writes) SetWriteDeadline(time.Time) error { return nil }

// What is not urgent goes with the next frame, or by itself after a while; an
// outbox that holds some is not empty.
func TestFramesThatAreNotUrgentWaitForCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writes{start: time.Now()}
		var o outbox
		o.init(w, func(err error) { t.Error(err) }, func() {})
		frame := &proto.CommandToExecutor{Body: &proto.CommandToExecutor_Acks{Acks: &proto.ResultAckBatch{}}}
		size := func() int {
			data, err := proto.AppendFrame(nil, frame, proto.MaxFrame)
			require.NoError(t, err)
			return len(data)
		}()
		require.NoError(t, o.putLater(frame))
		require.NoError(t, o.putLater(frame))
		synctest.Wait()
		require.Empty(t, w.at)
		require.False(t, o.empty(), "whoever waits for the last word waits for these")
		time.Sleep(3 * time.Millisecond)
		require.NoError(t, o.put(frame))
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Millisecond}, w.at)
		require.Equal(t, 3*size, w.bytes)
		require.True(t, o.empty())

		time.Sleep(97 * time.Millisecond)
		require.NoError(t, o.putLater(frame))
		time.Sleep(laterBy)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Millisecond, 100*time.Millisecond + laterBy}, w.at)

		require.NoError(t, o.putLater(frame))
		o.stop()
		time.Sleep(laterBy)
		synctest.Wait()
		require.Len(t, w.at, 2, "nothing after the end")
	})
}
