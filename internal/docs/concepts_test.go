package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every concept of the SDK is used by the shop, where docs/guide/handlers.md says.
func TestTheTableOfConceptsIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../../docs/guide/handlers.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(raw), "## Every concept, in the sample shop\n")
	require.True(t, ok)
	link, code := regexp.MustCompile(`\]\(([^)]+)\)`), regexp.MustCompile("`([^`]+)`")
	concepts := ""
	rows := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") { // the next section
			break
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.Contains(cells[0], "concept") {
			continue
		}
		rows++
		concepts += cells[0] + "\n"
		file := link.FindStringSubmatch(cells[1])
		require.NotNil(t, file, line)
		source, err := os.ReadFile(filepath.Join("../../docs/guide", file[1]))
		require.NoError(t, err)
		symbols := code.FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, symbols, line)
		for _, s := range symbols {
			require.Contains(t, string(source), s[1], line)
		}
	}
	for _, concept := range []string{
		"marker", "proxy", "waits", "handle", "success and failure", "interceptor", "who may", "metrics", "tracing", "permanent",
		"retry after", "snooze", "cancelled", "progress", "durable step", "idempotency key", "fence", "guard", "once", "cap of the result",
		"deaf handler", "drain", "weights", "shards with hooks", "who owns", "version of the build", "labels", "log with attributes",
	} {
		require.Contains(t, concepts, concept)
	}
	require.Greater(t, rows, 30)
}
