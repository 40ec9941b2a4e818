package admin_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// message posts raw JSON to a node's door.
func (n *node) message(token, body string, change func(*http.Request)) *http.Response {
	n.t.Helper()
	r, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, n.url+"/mcp", strings.NewReader(body))
	require.NoError(n.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(r)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// TestAssistantDoor: who does not belong is turned away before anything is read.
func TestAssistantDoor(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	key, list := n.key("bot", "viewer"), `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	status := func(token, body string, change func(*http.Request)) int {
		t.Helper()
		answer := n.message(token, body, change)
		if answer.StatusCode >= 400 {
			require.Equal(t, "application/problem+json", answer.Header.Get("Content-Type"))
			var p struct{ Code string }
			require.NoError(t, json.NewDecoder(answer.Body).Decode(&p))
			require.NotEmpty(t, p.Code)
		}
		return answer.StatusCode
	}
	require.Equal(t, 200, status(key, list, nil))
	require.Equal(t, 401, status("", list, nil))
	require.Equal(t, 401, status("ck_wrong", list, nil))
	require.Equal(t, 403, status(n.key("caller", "caller"), list, nil), "it may only call handlers")
	require.Equal(t, 413, status(key, list+strings.Repeat(" ", 1<<20), nil))
	require.Equal(t, 403, status(key, list, func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }))
	require.Equal(t, 403, status(key, list, func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }), "a name that was made to lead here")
	require.Equal(t, 403, status(key, list, func(r *http.Request) { r.Host = "evil.example" }), "the same without an origin")
	require.Equal(t, 200, status(key, list, func(r *http.Request) { r.Header.Set("Origin", n.url) }))
	require.Equal(t, 405, status(key, list, func(r *http.Request) { r.Method = http.MethodDelete }), "there are no sessions to end")
	require.Equal(t, 400, status(key, "{", nil))
	require.Equal(t, 400, status(key, strings.Repeat("[", 300)+strings.Repeat("]", 300), nil))
	require.Equal(t, 415, status(key, list, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }))
	require.Equal(t, 400, status(key, list, func(r *http.Request) { r.Header.Set("Accept", "text/html") }))
	require.Equal(t, 400, status(key, list, func(r *http.Request) { r.Header.Set("Mcp-Protocol-Version", "1999-01-01") }))
	for _, size := range []int{17, 8000} {
		require.Equal(t, 422, status(key, batchOf(size), nil))
	}
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":[` + strings.Repeat("0,", 95_000) + `0]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":[` + strings.Repeat("[],", 5_000) + `[]]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"` + strings.Repeat(`a":0,"`, 95_000) + `a":0}}`,
	} {
		require.Equal(t, 422, status(key, message, nil), "its values would take many times its bytes")
	}
	require.Equal(t, 200, status(key, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":"`+strings.Repeat(",[", 400_000)+`"}}}`, nil), "text is no value")
	served, limited := n.batch(key, 16)
	require.Equal(t, []int{16, 0}, []int{served, limited})

	// The tenant's quota of calls is spent here, too.
	var me struct{ Tenant struct{ ID string } }
	n.do(http.MethodGet, "/api/v1/me", nil, &me, 200)
	n.do(http.MethodPut, "/api/v1/tenants/"+me.Tenant.ID+"/quotas", args{"items": []args{{"kind": "api_calls_per_second", "limit": 2}}}, nil, 200)
	n.eventually(func() bool { return status(key, list, nil) == 429 }, func() string { return "nobody counts" })

	// Each call of a batch is spent of it.
	n.eventually(func() bool {
		answer := n.message(key, batchOf(16), nil)
		if answer.StatusCode == 429 {
			return false
		}
		served, limited = countCalls(t, answer)
		return true
	}, func() string { return "no message is let in" })
	require.Equal(t, 16, served+limited)
	require.Greater(t, limited, 10)
}

// batchOf is one message with many calls of a tool.
func batchOf(calls int) string {
	list := make([]args, calls)
	for i := range list {
		list[i] = args{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": args{"name": "list_jobs", "arguments": args{}}}
	}
	raw, _ := json.Marshal(list) // of plain values
	return string(raw)
}

func (n *node) batch(key string, calls int) (served, limited int) {
	n.t.Helper()
	answer := n.message(key, batchOf(calls), nil)
	require.Equal(n.t, 200, answer.StatusCode)
	return countCalls(n.t, answer)
}

// countCalls counts the calls of a batch by their answers.
func countCalls(t *testing.T, answer *http.Response) (served, limited int) {
	t.Helper()
	var list []struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&list))
	for _, one := range list {
		if one.Result.IsError {
			require.Contains(t, one.Result.Content[0].Text, "rate_limited")
			limited++
		} else {
			served++
		}
	}
	return served, limited
}
