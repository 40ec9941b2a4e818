package deptest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

const addOns = "admin/internal/addon"

// addOnNames are the names of the add-ons' folders on the server.
func addOnNames(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, addOns))
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	require.Contains(t, names, "assistant")
	return names
}

// The core imports no add-on, and add-ons do not import each other: only the wiring of the
// server names them.
func TestOnlyWiringNamesAddOns(t *testing.T) {
	own := func(room, imported string) bool { // of the same add-on
		name, _, _ := strings.Cut(strings.TrimPrefix(imported, addOns+"/"), "/")
		return room == addOns+"/"+name || strings.HasPrefix(room, addOns+"/"+name+"/")
	}
	for _, room := range deptest.Carillon().Rooms {
		for _, may := range room.May {
			if strings.HasPrefix(may, addOns+"/") && room.Path != "admin" && room.Path != suite {
				require.True(t, own(room.Path, may), "%s may import %s", room.Path, may)
			}
		}
	}
}

// suite is the package with the tests of stores. Files in it are no tests for the go command.
const suite = "admin/internal/store/storetest"

// testsOf are the folders with tests of add-ons, in files whose names begin with the add-on's.
var testsOf = []string{"admin", "admin/internal/api", "admin/internal/store/gormstore", "cmd/carillon", suite}

// registers are the files with one line for each add-on.
var registers = []string{"admin/addons.go", "cmd/carillon/internal/command/addons.go"}

// folders of an add-on, beside its tests of whole nodes and of the command line.
func folders(name string) []string {
	return []string{path.Join(addOns, name), path.Join("internal", name), path.Join("cmd/carillon/internal/command", name)}
}

// removal is an overlay of the go command in which an add-on does not exist: its folders are
// gone, its tests, and its lines of the registers.
func removal(t *testing.T, name string) (overlay string) {
	t.Helper()
	replaced := map[string]string{}
	remove := func(file string) {
		absolute, err := filepath.Abs(file)
		require.NoError(t, err)
		replaced[absolute] = ""
	}
	for _, folder := range folders(name) {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(file, ".go") {
				remove(file)
			}
			return err
		})
		if folder == path.Join(addOns, name) || !os.IsNotExist(err) { // not each add-on has commands, or shares code with them
			require.NoError(t, err)
		}
	}
	for _, folder := range testsOf {
		pattern := name + "_*test.go"
		if folder == suite {
			pattern = name + "_*.go"
		}
		tests, err := filepath.Glob(filepath.Join(root, folder, pattern))
		require.NoError(t, err)
		for _, file := range tests {
			remove(file)
		}
	}
	line := regexp.MustCompile(`(?m)^.*(/` + name + `"|\t` + name + `\.).*\n`)
	for _, register := range registers {
		file, err := filepath.Abs(filepath.Join(root, register))
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := 2
		if _, err := os.Stat(filepath.Join(root, folders(name)[2])); register != registers[0] && os.IsNotExist(err) {
			lines = 0
		}
		require.Len(t, line.FindAll(text, -1), lines, "%s has an import and one line of %s", register, name)
		without := filepath.Join(t.TempDir(), "addons.go")
		require.NoError(t, os.WriteFile(without, line.ReplaceAll(text, nil), 0o600))
		replaced[file] = without
	}
	raw, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay = filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	return overlay
}

// Without an add-on nothing that is left imports it: the go command can list the product and
// its tests. The proof builds them.
func TestAnAddOnCanBeRemoved(t *testing.T) {
	_, err := deptest.Sources(root)
	require.NoError(t, err)
	for _, name := range addOnNames(t) {
		list := exec.CommandContext(t.Context(), "go", "list", "-overlay", removal(t, name), "-deps", "-test", "-tags", "nomsgpack", "-f", "{{.ImportPath}}",
			"./cmd/...", "./admin/...", "./internal/...")
		list.Dir, list.Env = root, append(os.Environ(), "GOFLAGS=")
		linked := outputOf(t, list)
		require.Contains(t, linked, deptest.Module+"/cmd/carillon")
		for _, folder := range folders(name) {
			require.False(t, slices.ContainsFunc(linked, func(p string) bool {
				return p == deptest.Module+"/"+folder || strings.HasPrefix(p, deptest.Module+"/"+folder+"/")
			}), "%s is still there", folder)
		}
	}
}

// Beside the registers, only tests in files with its name import an add-on. So these files can
// be left out with it.
func TestOnlyOwnTestsImportAnAddOn(t *testing.T) {
	for _, name := range addOnNames(t) {
		imports := regexp.MustCompile(`"` + regexp.QuoteMeta(deptest.Module) + `/(` + addOns + `|cmd/carillon/internal/command)/` + name + `[/"]`)
		for _, top := range []string{"admin", "cmd", "internal", "tools", "examples", "packaging"} {
			require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(file string, entry fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(file, ".go") {
					return err
				}
				at, err := filepath.Rel(root, file)
				require.NoError(t, err)
				at = filepath.ToSlash(at)
				own := slices.ContainsFunc(folders(name), func(f string) bool { return strings.HasPrefix(at, f+"/") }) ||
					slices.Contains(registers, at) || strings.HasPrefix(path.Base(at), name+"_") && slices.Contains(testsOf, path.Dir(at))
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.True(t, own || !imports.Match(text), "%s imports the add-on %s: put that into a file %s_…", at, name, name)
				return nil
			}))
		}
	}
}
