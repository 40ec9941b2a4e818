//go:build proof

package crashpoint

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// cells chooses what TestCells plays, by "DATABASE ARROW POINT MODE".
var cells = flag.String("cells",
	`^sqlite (3 offer offer-executions.after-commit idempotent|3 shards spread-executions.after-commit fail|4 grant grant-offers.after-commit fail)|`+
		`^mariadb 4 inventory settle-inventory.after-commit retry`,
	"regular expression of the cells to play")

// TestCells plays a few cells; `make faults` plays them all.
func TestCells(t *testing.T) {
	only := regexp.MustCompile(*cells)
	chdir(t)
	table, err := Run(t.Context(), Options{
		Dir: t.TempDir(),
		Only: func(c Cell) bool {
			return only.MatchString(strings.Join([]string{c.Database, c.Arrow, c.Point, c.Mode}, " "))
		},
		Done: func(c Cell) {
			t.Logf("passed=%v %s %s %s %s: %s %s, %s late", c.Passed, c.Database, c.Arrow, c.Point, c.Mode, c.Outcome, c.Reason, c.Delay.Round(time.Millisecond))
		},
	})
	require.NoError(t, err)
	require.NotEmpty(t, table.Cells)
	var out bytes.Buffer
	table.Print(&out)
	t.Log("\n" + out.String())
	require.Equal(t, len(table.Cells), table.Passed())
}

// chdir goes to the module's root, from which programs are built.
func chdir(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	t.Chdir(root)
}

// TestAReleaseHoldsNoFailpoint looks into the binaries themselves.
func TestAReleaseHoldsNoFailpoint(t *testing.T) {
	chdir(t)
	dir := t.TempDir()
	with, err := lab.Build(t.Context(), dir, "with", "-tags", tags)
	require.NoError(t, err)
	without, err := lab.Build(t.Context(), dir, "without", "-tags", strings.TrimSuffix(tags, ",failpoints"))
	require.NoError(t, err)
	for _, word := range []string{"CARILLON_FAILPOINTS", "send-heartbeat-ack"} {
		for binary, want := range map[string]bool{with: true, without: false} {
			raw, err := os.ReadFile(binary)
			require.NoError(t, err)
			require.Equal(t, want, bytes.Contains(raw, []byte(word)), "%q in %s", word, filepath.Base(binary))
		}
	}
	// The package's own tests exist with the tag only.
	own := exec.CommandContext(t.Context(), "go", "test", "-tags", tags, "./failpoint")
	own.Dir = "proto"
	out, err := own.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestEveryPointIsKnown: a point that a cell names but no code has would make
// the cell wait in vain.
func TestEveryPointIsKnown(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/dev/failpoints.md")
	require.NoError(t, err)
	for _, database := range []string{"mariadb", "sqlite"} {
		list := scenarios(database)
		require.Greater(t, len(list), 100)
		for _, c := range list {
			name, _, _ := strings.Cut(c.point, ".")
			if name == "expand-alert-events" {
				continue // a step like any other
			}
			if name == "handler" {
				name = c.point
			}
			require.Contains(t, string(raw), "`"+name+"`", c.arrow)
		}
	}
}
