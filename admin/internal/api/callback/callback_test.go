package callback

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A text in JSON is a handler of the job's own executor, as it was before there were other kinds.
func TestCallbackInJSON(t *testing.T) {
	for text, want := range map[string]Callback{
		`""`:     {},
		`"told"`: {CallbackTarget{Handler: "told"}},
		`{"handler":"told","executor":{"name":"bank"}}`:                           {CallbackTarget{Handler: "told", Executor: &ExecutorChoice{Name: "bank"}}},
		`{"url":"https://a.example/x","timeout":"3s","headers":{"X-Team":"pay"}}`: {CallbackTarget{URL: "https://a.example/x", Timeout: "3s", Headers: map[string]string{"X-Team": "pay"}}},
	} {
		var got Callback
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, want, got)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, text, string(raw))
	}
}
