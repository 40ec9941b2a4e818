package executortest

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The fire times that Quartz 2.3.2 itself gave, as for the admin's engine. What is
// not known here is refused, and what is taken fires as there.
func TestQuartzVectors(t *testing.T) {
	agreed, refused := 0, 0
	for _, name := range []string{"quartz-cron.tsv", "quartz-more.tsv"} {
		file, err := os.Open("../../proto/schedule/testdata/" + name)
		require.NoError(t, err)
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			column := strings.Split(lines.Text(), "\t")
			if len(column) != 4 || column[0] == "" || column[0][0] == '#' {
				continue
			}
			c, err := parseCron(column[0], "quartz")
			if err != nil {
				refused++
				require.Regexp(t, "list with L, W or #|ignores the step", err.Error(), column[0])
				continue
			}
			agreed++
			checkVector(t, c, column)
		}
	}
	require.Greater(t, agreed, 1800)
	require.Less(t, refused, 400)
}

func checkVector(t *testing.T, c cron, column []string) {
	t.Helper()
	zone, err := time.LoadLocation(column[1])
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, column[2])
	require.NoError(t, err)
	for _, want := range strings.Fields(column[3]) {
		at = c.next(at, zone, clockRule{})
		if want == "none" {
			require.Zero(t, at, column[0])
			continue
		}
		fire, err := time.Parse("2006-01-02T15:04:05Z07:00", want)
		if err != nil { // without seconds, which are 0
			fire, err = time.Parse("2006-01-02T15:04Z07:00", want)
		}
		require.NoError(t, err)
		require.True(t, fire.Equal(at), "%s: %s, want %s", column[0], at, want)
	}
}
