package deptest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

const (
	failpoints = deptest.Module + "/proto/failpoint"
	releaseTag = "-tags=nomsgpack"
)

func goList(t *testing.T, module string, args ...string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	list.Dir, list.Env = filepath.Join(root, module), append(os.Environ(), "GOFLAGS=")
	return outputOf(t, list)
}

// outputOf are the words that a command writes. On a machine without caches the go command
// reports its downloads on the other stream.
func outputOf(t *testing.T, c *exec.Cmd) []string {
	t.Helper()
	var trouble strings.Builder
	c.Stderr = &trouble
	out, err := c.Output()
	require.NoError(t, err, "%s", &trouble)
	return strings.Fields(string(out))
}

// TestUsersGetNoTestMachinery: neither the programs that are shipped nor what
// applications are linked with hold anything that only tests and measurements
// use; applications do not even hold the package of failpoints, which in a
// shipped program is a constant and an empty function.
func TestUsersGetNoTestMachinery(t *testing.T) {
	rules := deptest.Carillon()
	application := []string{"./examples/first", "./proxy", "./metrics", "./once", "./auth"}
	for _, c := range []struct {
		name, module, tags, has string
		programs, hasNot        []string
	}{
		{"carillon", ".", releaseTag, deptest.Module + "/admin/internal/gateway", []string{"./cmd/carillon"}, nil},
		{"sample shop", "examples/sample-shop", releaseTag, deptest.Module + "/executor-sdk/timers", []string{"."}, []string{failpoints, deptest.Module + "/admin"}},
		{"application", "executor-sdk", releaseTag, deptest.Module + "/executor-sdk/internal/journal", application, []string{failpoints}},
		{"application of the fault matrix", "executor-sdk", releaseTag + ",failpoints", failpoints, application, nil},
		{"application with traces", "executor-sdk/tracing", releaseTag, deptest.Module + "/executor-sdk", []string{"./..."}, []string{failpoints}},
	} {
		t.Run(c.name, func(t *testing.T) {
			linked := goList(t, c.module, append([]string{"-deps", c.tags}, c.programs...)...)
			require.Contains(t, linked, c.has, "the rule is about something")
			for _, forbidden := range append(c.hasNot, "testing", deptest.Module+"/executor-sdk/executortest") {
				require.NotContains(t, linked, forbidden)
			}
			for _, path := range linked {
				require.False(t, rules.IsMachine(path), path)
			}
		})
	}
}

// TestUsersInheritNoTestMachinery: the modules that applications require hold no
// machine either. fakeadmin stays with the tests that it serves: it is internal.
func TestUsersInheritNoTestMachinery(t *testing.T) {
	rules := deptest.Carillon()
	for _, module := range users {
		for _, path := range goList(t, module, "./...") {
			if path != deptest.Module+"/executor-sdk/internal/fakeadmin" {
				require.False(t, rules.IsMachine(path), path)
			}
		}
	}
}

// TestNoModuleRequiresAMachine: a module that is fetched for its version is fetched with all
// that its go.mod requires.
func TestNoModuleRequiresAMachine(t *testing.T) {
	rules := deptest.Carillon()
	for _, module := range append([]string{"."}, users...) {
		m, _ := moduleOf(t, module)
		require.NotEmpty(t, m.Require, module)
		for _, required := range m.Require {
			require.False(t, rules.IsMachine(required.Path), "%s requires %s", module, required.Path)
		}
	}
}

// A machine that no longer exists guards nothing.
func TestMachinesExist(t *testing.T) {
	for _, path := range deptest.Carillon().Machines {
		info, err := os.Stat(filepath.Join(root, path))
		require.NoError(t, err)
		require.True(t, info.IsDir(), path)
	}
}
