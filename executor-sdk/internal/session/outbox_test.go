package session

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// What was accepted and started waits a little for something urgent to go with.
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
		o.putDeferred([]*proto.Answer{{ExecutionId: 1, Accepted: true}}, nil)
		o.putDeferred(nil, []*proto.Started{{ExecutionId: 1}})
		require.False(t, signalled())
		time.Sleep(deferFor)
		require.True(t, signalled())
		buf, err := o.drain(nil)
		require.NoError(t, err)
		require.NotEmpty(t, buf)

		o.putDeferred(nil, []*proto.Started{{ExecutionId: 3}})
		o.put(nil, nil, []*proto.Result{{ExecutionId: 3}})
		require.True(t, signalled(), "a result is urgent")
		buf, err = o.drain(nil)
		require.NoError(t, err)
		both, err := proto.AppendFrame(nil, &proto.CommandToAdmin{Body: &proto.CommandToAdmin_Results{
			Results: &proto.ResultBatch{Results: []*proto.Result{{ExecutionId: 3}}},
		}}, proto.MaxFrame)
		require.NoError(t, err)
		require.Greater(t, len(buf), len(both), "and the start goes first")
		time.Sleep(deferFor)
		o.close()
		o.putDeferred(nil, []*proto.Started{{ExecutionId: 4}})
		time.Sleep(deferFor)
		buf, err = o.drain(nil)
		require.NoError(t, err)
		require.Empty(t, buf)
	})
}

// TestBulkDoesNotHoldUpAnswers: however much results wait, what is urgent goes
// with the next part of them, and all of them go in their order, after the steps
// of their attempts.
func TestBulkDoesNotHoldUpAnswers(t *testing.T) {
	o := newOutbox()
	var results []*proto.Result
	for id := range int64(30) {
		results = append(results, &proto.Result{ExecutionId: id + 1, Output: make([]byte, 50<<10)})
	}
	o.putProgress(nil, []*proto.Step{{ExecutionId: 1, Output: make([]byte, 200<<10)}, {ExecutionId: 2}})
	o.put(nil, nil, results)
	var got []string
	said := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	next := func() (size int) {
		<-o.wake
		buf, err := o.drain(nil)
		require.NoError(t, err)
		reader := proto.NewReader(bytes.NewReader(buf), proto.MaxFrame)
		for {
			var m proto.CommandToAdmin
			if err := reader.Next(&m); err != nil {
				require.ErrorIs(t, err, io.EOF)
				return len(buf)
			}
			for _, a := range m.GetAnswers().GetAnswers() {
				said("answer %d", a.ExecutionId)
			}
			for _, s := range m.GetSteps().GetSteps() {
				said("step %d", s.ExecutionId)
			}
			for _, r := range m.GetResults().GetResults() {
				said("result %d", r.ExecutionId)
			}
		}
	}
	next()
	require.Equal(t, []string{"step 1"}, got, "no result overtakes a step")
	next()
	require.Equal(t, []string{"step 1", "step 2", "result 1", "result 2"}, got)
	o.put([]*proto.Answer{{ExecutionId: 77}}, nil, nil)
	got = nil
	require.Less(t, next(), maxBulk)
	require.Equal(t, []string{"answer 77", "result 3", "result 4"}, got)
	for len(o.results) > 0 {
		next()
	}
	require.Len(t, got, 29)
	require.Equal(t, "result 30", got[28])
	require.Empty(t, o.wake)
}
