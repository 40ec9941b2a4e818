package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which version nodes are upgraded from, and where there is none.
func TestPreviousCommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	commit := func(file, text string) string {
		t.Helper()
		path := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", file)
		return git("rev-parse", "HEAD")
	}
	require.Empty(t, previousCommit(t.Context(), dir, ""), "no history")
	git("init", "-q")
	commit("sql/mysql/00001_cluster.sql", "before")
	require.Empty(t, previousCommit(t.Context(), dir, ""), "none has the file")
	first := commit(firstMigration, "one")
	require.Empty(t, previousCommit(t.Context(), dir, ""), "it is the only one")
	commit("README.md", "text")
	require.Empty(t, previousCommit(t.Context(), dir, ""), "no other program")
	second := commit("main.go", "package main")
	require.Equal(t, first, previousCommit(t.Context(), dir, ""))
	third := commit(firstMigration, "one, with a table more")
	require.Empty(t, previousCommit(t.Context(), dir, ""), "nodes of earlier commits lack the table")
	commit("main.go", "package main // later")
	require.Equal(t, third, previousCommit(t.Context(), dir, ""))
	require.NoError(t, os.WriteFile(filepath.Join(dir, firstMigration), []byte("one, with two tables more"), 0o600))
	require.Empty(t, previousCommit(t.Context(), dir, ""), "the schema is being changed")
	git("tag", "v0.1.0", second)
	require.Equal(t, second, previousCommit(t.Context(), dir, "v0.1.0"))
	require.Empty(t, previousCommit(t.Context(), dir, "v0.2.0"), "a clone without it")
}

// The place of this program has changed between versions.
func TestProgramOfAVersion(t *testing.T) {
	tree := t.TempDir()
	require.Equal(t, "./internal/faults", programOf(tree))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "tools", "faults"), 0o755))
	require.Equal(t, "./tools/faults", programOf(tree))
}
