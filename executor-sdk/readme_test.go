package executor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
)

// squeeze removes indentation and empty lines.
func squeeze(code string) string {
	var out []string
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// Every piece of Go in the README stands, word by word, in an example that is
// compiled and run.
func TestReadmeShowsCodeThatRuns(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	tested := ""
	for _, file := range []string{
		"example_test.go", "example_progress_test.go", "examples/first/main.go", "executortest/example_test.go", "proxy/example_test.go",
		"timers/example_test.go", "jobs/example_test.go",
	} {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		tested += squeeze(string(code)) + "\n"
	}
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.Greater(t, len(blocks), 8)
	for _, block := range blocks {
		code, _, ok := strings.Cut(block, "```")
		require.True(t, ok)
		require.True(t, strings.Contains(tested, squeeze(code)), "not in an example:\n%s", code)
	}
	for _, name := range []string{
		"NAME", "ADDRESSES", "TOKEN", "INSTANCE", "VERSION", "GENERATION", "LABELS", "SLOTS", "JOURNAL", "STRICT", "TLS",
	} {
		require.Contains(t, string(readme), "`CARILLON_EXECUTOR_"+name)
	}
}

// The README's program, started and stopped as the README says.
func TestFirstExample(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "first")
	build := exec.Command("go", "build", "-o", binary, "./examples/first")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	admin := startAdmin(t, &fakeadmin.Admin{})
	program := exec.Command(binary)
	program.Dir = t.TempDir()
	program.Env = append(os.Environ(),
		"CARILLON_EXECUTOR_ADDRESSES="+admin.Address(), "CARILLON_EXECUTOR_TOKEN="+fakeadmin.Token)
	log := &output{}
	program.Stderr = log
	require.NoError(t, program.Start())
	defer func() { _ = program.Process.Kill() }()

	s := session(t, admin, 1)
	require.Equal(t, "*/5 * * * *", s.Register.GetHandlers()[0].GetJobs()[0].GetCron())
	require.NoError(t, s.Offer(offer(1, "greet", input(`{"name":"Ada"}`))))
	seen := saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Results) == 1 && len(seen.Lines) == 1 })
	require.Equal(t, `{"text":"Hello, Ada!"}`, string(seen.Results[0].GetOutput()))
	require.Equal(t, `{"name":"Ada"}`, string(seen.Lines[0].GetAttrs()))
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	require.NoError(t, program.Wait())
	require.Contains(t, log.String(), "connected to admin node")
	require.Contains(t, log.String(), "everything is handed over")
}
