package executor_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	seen, all := map[string]bool{}, []string{}
	for line := range strings.FieldsSeq(string(out)) {
		if !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}
	return all
}

// Applications that embed the SDK inherit two libraries, and no test code.
func TestWhatApplicationsInherit(t *testing.T) {
	const sdk = "github.com/carillon-sched/carillon/executor-sdk"
	require.ElementsMatch(t, []string{
		sdk, "github.com/carillon-sched/carillon/proto",
		"github.com/hashicorp/yamux", "google.golang.org/protobuf",
	}, list(t, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "."))
	require.NotContains(t, list(t, "-deps", "."), sdk+"/internal/fakeadmin")
}

// One library, one room; and rooms side by side do not know each other.
func TestRoomsKeepToThemselves(t *testing.T) {
	const internal = "github.com/carillon-sched/carillon/executor-sdk/internal/"
	for room, mayImport := range map[string][]string{
		"schema":  {},
		"journal": {},
		"load":    {},
		"logship": {},
		"runner":  {"journal"}, // what is owed is written and read in its words
		"session": {},
	} {
		for _, imported := range list(t, "-f", "{{join .Imports \"\\n\"}}", "./internal/"+room) {
			if other, ok := strings.CutPrefix(imported, internal); ok {
				require.Contains(t, mayImport, other, "%s imports %s", room, other)
			}
			require.True(t, imported != "github.com/hashicorp/yamux" || room == "session", "%s imports yamux", room)
		}
	}
}
