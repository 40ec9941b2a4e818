package assistant

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `[{},{}]`, " \n[{\"a\":[1,2,{\"b\":\",\"}]},{\"c\":\"\\\"],[\"}]", `["\\",","]`, strings.Repeat("[", 300) + strings.Repeat("]", 300), `[`, `]`, ``, `[,]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, message string) {
		n := (&Handler{}).Requests([]byte(message))
		var list []json.RawMessage
		if json.Unmarshal([]byte(message), &list) == nil {
			require.Equal(t, max(1, len(list)), n, "%q", message)
		}
	})
}

// TestRequestsAreCountedOnly: the count of a large batch builds nothing.
func TestRequestsAreCountedOnly(t *testing.T) {
	message := []byte("[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/call"},`, 20_000) + "{}]")
	h := &Handler{}
	require.Zero(t, testing.AllocsPerRun(3, func() {
		if h.Requests(message) != 20_001 {
			t.Error("wrong count")
		}
	}))
}

func TestFewCallsRunAtOnce(t *testing.T) {
	var now, most atomic.Int64
	gate := make(chan struct{})
	call := few(atOnce)(func(context.Context, string, mcp.Request) (mcp.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		<-gate
		return nil, nil
	})
	var work sync.WaitGroup
	for range 4 * atOnce {
		work.Go(func() { _, _ = call(t.Context(), "tools/call", &mcp.CallToolRequest{}) })
	}
	for range 4 * atOnce {
		gate <- struct{}{}
	}
	work.Wait()
	require.LessOrEqual(t, most.Load(), int64(atOnce))
}
