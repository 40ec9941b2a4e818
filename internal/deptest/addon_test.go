package deptest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outsideAlerting are the packages outside of alerting that import it. Package admin
// registers it. The others hold tests of alerting that have not moved there yet. This list
// may only become shorter.
var outsideAlerting = []string{
	"admin",
	"admin/internal/api (tests)",
	"admin/internal/store/gormstore (tests)",
	"admin/internal/store/storetest",
}

// No room of the core imports alerting.
func TestNoRoomImportsAlerting(t *testing.T) {
	const folder = m + "admin/internal/addon/alerting"
	inside := func(path string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	found := map[string]bool{}
	for _, line := range goList(t, "admin", "-f", `{{.ImportPath}}|{{join .Imports ","}}|{{join .TestImports ","}},{{join .XTestImports ","}}`, "./...", "../cmd/...", "../internal/...") {
		fields := strings.Split(line, "|")
		if inside(fields[0]) {
			continue
		}
		room := strings.TrimPrefix(fields[0], m)
		if slices.ContainsFunc(strings.Split(fields[1], ","), inside) {
			found[room] = true
		} else if slices.ContainsFunc(strings.Split(fields[2], ","), inside) {
			found[room+" (tests)"] = true
		}
	}
	require.Equal(t, outsideAlerting, slices.Sorted(maps.Keys(found)), "the core imports no add-on")
}
