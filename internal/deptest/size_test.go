package deptest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

// mostFiles is how many files a package of the product has, without tests: more are
// not read as one thing.
const mostFiles = 40

func TestPackagesAreSmall(t *testing.T) {
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	files := map[string]int{}
	for _, source := range sources {
		name, err := filepath.Rel(root, source)
		require.NoError(t, err)
		if !strings.HasSuffix(name, "_test.go") {
			files[filepath.ToSlash(filepath.Dir(name))]++
		}
	}
	require.Greater(t, len(files), 100)
	rules := deptest.Carillon()
	for path, n := range files {
		if n > mostFiles && !rules.IsMachine(deptest.Module+"/"+path) {
			t.Errorf("%s has %d files without tests, and the most is %d: cut it by noun", path, n, mostFiles)
		}
	}
}
