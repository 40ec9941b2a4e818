package noun

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckPublishInput(t *testing.T) {
	for _, test := range []struct {
		name, input string
		want        []string
	}{
		{"a subject", `{"subject":"orders.new","key":"{{input.order}}","headers":{"X":"{{run.id}}"},"body":{"a":"{{input.order}}"}}`, nil},
		{"another broker's target", `{"subject":"a","topic":"t"}`, []string{"body.input"}},
		{"no target", `{}`, []string{"body.input.subject"}},
		{"a header of ours", `{"subject":"a","headers":{"Nats-Rollup":"all"}}`, []string{"body.input.headers"}},
		{"a target from a template", `{"subject":"orders.{{input.region}}"}`, []string{"body.input"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var in PublishInput
			require.NoError(t, json.Unmarshal([]byte(test.input), &in))
			require.Equal(t, test.want, locations(t, CheckPublishInput(BrokerNATS, &in)))
		})
	}
}

// What repeats a run that may have sent its message names the same message.
func TestSameMessage(t *testing.T) {
	for _, test := range []struct{ input, want string }{
		{`{"subject":"a","body":1.50}`, `{"body":1.50,"id":"77","subject":"a"}`},
		{`{"id":"order-7"}`, `{"id":"order-7"}`},
		{`{"id":""}`, `{"id":"77"}`},
		{`[1]`, `[1]`},
		{`null`, `null`},
		{``, ``},
	} {
		require.Equal(t, test.want, string(SameMessage([]byte(test.input), 77)))
	}
}
