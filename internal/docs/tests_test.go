package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// testCommand is a command of a document that runs tests by their names.
	testCommand = regexp.MustCompile("`go test (\\./\\S+) -run '?([^'`]+)'?`")
	testFunc    = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	// suiteTest is one of the store's suite, which runs below TestSQLite and TestMySQL.
	suiteTest = regexp.MustCompile(`\{"(\w+)", test\w+\}`)
)

// TestTheTestsOfTimerFaultsAreThere: what that page promises by a test's name.
func TestTheTestsOfTimerFaultsAreThere(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/timer-faults.md")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| fault there") {
			continue
		}
		rows++
		commands := testCommand.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, commands, "no test: %s", line)
		for _, c := range commands {
			require.NoError(t, testsAreThere(c[1], c[2]))
		}
	}
	require.Equal(t, 18, rows)
	require.ErrorContains(t, testsAreThere("./admin", "TestTimersFire|TestThatIsNot"), "TestThatIsNot")
	require.ErrorContains(t, testsAreThere("./admin/internal/store/gormstore", "/^TimerThatIsNot$"), "TimerThatIsNot")
}

// testsAreThere looks for each name of a pattern, as it stands in a table.
func testsAreThere(folder, pattern string) error {
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		return err
	}
	find := testFunc
	if strings.HasPrefix(pattern, "/") {
		files, find = []string{"../../admin/internal/store/storetest/suite.go"}, suiteTest
	}
	there := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range find.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
	}
	for name := range strings.SplitSeq(strings.ReplaceAll(pattern, `\|`, "|"), "|") {
		if name = strings.Trim(name, "/^$"); !there[name] {
			return fmt.Errorf("%s has no test %s", folder, name)
		}
	}
	return nil
}
