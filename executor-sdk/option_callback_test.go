package executor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
	"github.com/carillon-sched/carillon/proto"
)

func declaredWith(t *testing.T, opts ...HandlerOption) *proto.Handler {
	t.Helper()
	ex, err := New(Config{Name: "shop", Addresses: []string{"127.0.0.1:1"}, Token: "x", JournalDir: t.TempDir()})
	require.NoError(t, err)
	HandleFunc(ex, "close", func(context.Context) error { return nil }, opts...)
	require.NoError(t, checkCallbacks(ex.order, ex.handlers))
	return ex.handlers["close"].message()
}

// A callback within the executor is the text that it always was. Any other one is a message, and a
// text that an admin of an older version refuses: as a handler in a job, and as too long in calls.
func TestCallbacksOnTheWire(t *testing.T) {
	h := declaredWith(t, Description("d"), OnSuccess(callback.Handler("close")), OnFailure("close"))
	require.Equal(t, []string{"close", "close"}, []string{h.Jobs[0].OnSuccess, h.Jobs[0].OnFailure})
	require.Nil(t, h.Jobs[0].SuccessTo)

	h = declaredWith(t,
		OnSuccess(callback.URL("https://a.example/x").Within(3*time.Second).Header("X-Team", "pay")),
		OnFailure(callback.Message("orders", callback.Target{Topic: "t", PartitionKey: "k"})))
	url := &proto.Callback{Url: "https://a.example/x", TimeoutMs: 3000, Headers: map[string]string{"X-Team": "pay"}}
	message := &proto.Callback{Connection: "orders", Target: &proto.MessageTarget{Topic: "t", PartitionKey: "k"}}
	for _, d := range []*proto.JobDeclaration{h.Jobs[0], h.Calls} {
		require.True(t, gproto.Equal(url, d.SuccessTo), d)
		require.True(t, gproto.Equal(message, d.FailureTo), d)
	}
	require.LessOrEqual(t, len(h.Jobs[0].OnSuccess), proto.MaxName, "it is told as a handler that does not exist")
	require.Greater(t, len(h.Calls.OnSuccess), proto.MaxName, "handlers of calls are not looked for")
	require.Greater(t, len(h.Calls.OnFailure), proto.MaxName)

	h = declaredWith(t, OnSuccess(callback.HandlerOf("billing", "booked")))
	require.True(t, gproto.Equal(&proto.Callback{Executor: "billing", Handler: "booked"}, h.Jobs[0].SuccessTo))

	require.PanicsWithValue(t, `carillon: handler "close": OnFailure: the callback has a Timeout or Headers without a URL: leave them out`, func() {
		declaredWith(t, OnFailure(callback.Handler("close").Within(time.Second)))
	})
}
