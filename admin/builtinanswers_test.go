package admin_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/httpcall"
)

// Many large answers wait for their share of a node's memory, and each is stored whole. If results
// did not give back their share when they are stored, the later ones would be empty.
func TestManyLargeAnswers(t *testing.T) {
	t.Parallel()
	const calls, size = 200, 120 << 10
	body := bytes.Repeat([]byte("x"), size)
	n := startNode(t, nil)
	to := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = w.Write(body) })
	n.allowCallbacks(map[string]any{"perHost": 200}, "127.0.0.1")
	timers := make([]map[string]any, calls)
	for i := range timers {
		timers[i] = map[string]any{
			"executor": "carillon", "handler": "http", "key": fmt.Sprint("large-", i), "after": "1s",
			"input": map[string]any{"url": to.url(1, "/"), "maxResponse": size},
		}
	}
	n.do(http.MethodPost, "/api/v1/timers/batch", map[string]any{"timers": timers}, nil, 200)
	n.eventually(func() bool { return len(to.all()) >= calls }, func() string { return fmt.Sprintf("%d calls", len(to.all())) })
	for _, g := range to.all() {
		r := n.until(g.header.Get("Idempotency-Key"), "succeeded")
		var out httpcall.Response
		require.NoError(t, json.Unmarshal(r.Output, &out))
		require.False(t, out.Truncated)
		require.Len(t, out.Body, size)
	}
}
