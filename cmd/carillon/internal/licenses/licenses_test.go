package licenses_test

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/cmd/carillon/internal/licenses"
)

// TestEveryModuleIsListed reads from a binary what it is made of, which is what
// debug.ReadBuildInfo says in it, and holds the list against it.
func TestEveryModuleIsListed(t *testing.T) {
	const own = "github.com/carillon-sched/carillon"
	binary := filepath.Join(t.TempDir(), "carillon")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, own+"/cmd/carillon")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-tags=nomsgpack -trimpath")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	listed := read(t)
	modules := 0
	for _, m := range info.Deps {
		if m.Path == own || strings.HasPrefix(m.Path, own+"/") {
			continue
		}
		modules++
		require.Contains(t, listed, "go "+m.Path+" "+m.Version, "make generate")
	}
	require.Greater(t, modules, 30)
}

// TestWhatThePagesImportIsListed: with a text, or at least a licence.
func TestWhatThePagesImportIsListed(t *testing.T) {
	names := map[string]bool{}
	for component := range read(t) {
		names[strings.Join(strings.Fields(component)[:2], " ")] = true
	}
	for _, name := range []string{"antd", "react", "react-dom", "dayjs", "i18next", "@codemirror/view", "@tanstack/react-query"} {
		require.True(t, names["npm "+name], name)
	}
	require.True(t, names["go std"])
}

// read returns the components by "kind name version", after a look at each.
func read(t *testing.T) map[string]licenses.Component {
	t.Helper()
	file, err := licenses.Read()
	require.NoError(t, err)
	out := map[string]licenses.Component{}
	for _, c := range file.Components {
		require.NotEmpty(t, c.License, c.Name)
		if c.Kind == "go" {
			require.NotEmpty(t, c.Texts, c.Name)
		}
		for _, n := range c.Texts {
			require.NotEmpty(t, file.Texts[n], c.Name)
		}
		out[c.Kind+" "+c.Name+" "+c.Version] = c
	}
	return out
}
