package job

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A field that is missing here makes `job get -o yaml` write files that
// `job edit` refuses.
func TestJobFileKnowsEveryFieldOfTheAPI(t *testing.T) {
	raw, err := os.ReadFile("../../../../../docs/openapi.json")
	require.NoError(t, err)
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &api))
	fields := func(schema string) (names []string) {
		for name := range api.Components.Schemas[schema].Properties {
			names = append(names, name)
		}
		require.NotEmpty(t, names, schema)
		return names
	}

	// The revision is handed over beside the fields (edit --force leaves it out).
	write := slices.DeleteFunc(fields("JobWrite"), func(name string) bool { return slices.Contains(readOnly, name) })
	require.ElementsMatch(t, write, writable)
	require.Subset(t, slices.Concat(writable, readOnly), fields("Job"))
}
