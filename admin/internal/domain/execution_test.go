package domain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitRequestKey(t *testing.T) {
	for name, c := range map[string]struct{ occurrence, unique, body string }{
		"with what was asked for":  {RequestKey("k_e-y", "body"), "idem:k_e-y", "body"},
		"a run without a key":      {"run:12", "run:12", ""},
		"a foreign key with a dot": {"order.7", "order.7", ""},
		"of a schedule":            {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			unique, body := SplitRequestKey(c.occurrence)
			require.Equal(t, c.unique, unique)
			require.Equal(t, c.body, body)
		})
	}
}
