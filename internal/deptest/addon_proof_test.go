//go:build proof

package deptest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without an add-on the product and all of its tests build, and the tests of the rules, of
// the API and of whole nodes pass.
func TestTheProductWithoutAnAddOn(t *testing.T) {
	for _, name := range addOnNames(t) {
		t.Run(name, func(t *testing.T) {
			overlay := removal(t, name)
			for _, args := range [][]string{
				{"vet", "-overlay", overlay, "-tags", "nomsgpack", "./cmd/...", "./admin/...", "./internal/..."},
				{"test", "-overlay", overlay, "-tags", "nomsgpack", "-p", "1", "-run", "^(TestAPathOf|TestBuiltIn|TestTimer|TestCheck|TestEverySettingActs|TestOpenAPI|TestInputs)", "./admin", "./admin/internal/api/...", "./admin/internal/domain", "./cmd/carillon"},
			} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir, cmd.Env = root, append(os.Environ(), "GOFLAGS=-trimpath")
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "go %v\n%s", args[:1], out)
			}
		})
	}
}
