package callback_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/callback"
)

func TestCheck(t *testing.T) {
	url := callback.URL("https://a.example/x").Within(3 * time.Second)
	for name, c := range map[string]struct {
		in    callback.Callback
		wrong string
	}{
		"nothing":               {callback.Callback{}, ""},
		"own handler":           {callback.Handler("a"), ""},
		"another executor":      {callback.HandlerOf("billing", "a"), ""},
		"address":               {url.Header("X-Team", "pay"), ""},
		"message":               {callback.Message("orders", callback.Target{Topic: "t"}), ""},
		"two kinds":             {callback.Callback{Handler: "a", URL: "https://a.example"}, "more than one"},
		"no kind":               {callback.Callback{Timeout: time.Second}, "needs a Handler"},
		"executor alone":        {callback.Callback{Executor: "billing"}, "needs a Handler"},
		"executor of a URL":     {callback.Callback{Executor: "billing", URL: "https://a.example"}, "without a Handler"},
		"timeout of a handler":  {callback.Handler("a").Within(time.Second), "without a URL"},
		"header of a message":   {callback.Message("orders", callback.Target{}).Header("a", "b"), "without a URL"},
		"target of a handler":   {callback.Callback{Handler: "a", Target: callback.Target{Topic: "t"}}, "without a Connection"},
		"negative timeout":      {url.Within(-time.Second), "milliseconds"},
		"parts of milliseconds": {url.Within(time.Microsecond), "milliseconds"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.in.Check(); c.wrong == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.wrong)
			}
		})
	}
}

// A callback is a value: one that is made from another one leaves that as it is.
func TestHeadersAreCopied(t *testing.T) {
	base := callback.URL("https://a.example").Header("A", "1")
	require.Equal(t, map[string]string{"A": "1", "B": "2"}, base.Header("B", "2").Headers)
	require.Equal(t, map[string]string{"A": "1"}, base.Headers)
	require.True(t, callback.Handler("a").Own())
	require.False(t, base.Own())
}
