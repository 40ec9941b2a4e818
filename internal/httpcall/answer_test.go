package httpcall

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreComparedExactly(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"9007199254740993", "9007199254740992", false}, {"1", "1.0", true}, {"100", "1e2", true}, {"-0.5", "-5E-1", true}, {"0", "-0.0e7", true},
		{"1e999", "1e998", false}, {"10e998", "1e999", true}, {"1e99999999999999999999", "1e99999999999999999999", true}, {"1e99999999999999999999", "2", false},
		{`{"a":[1.50]}`, `{"a":[15e-1]}`, true}, {`"1"`, "1", false},
	} {
		require.Equal(t, tt.same, sameJSON(json.RawMessage(tt.a), json.RawMessage(tt.b)), "%s and %s", tt.a, tt.b)
	}
}
